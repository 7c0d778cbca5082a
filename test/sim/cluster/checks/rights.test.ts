import { describe, expect, test } from 'vitest';
import { Rights, type Verdict } from './rights.ts';

const BOUND_MS = 30;

interface Course {
  readonly name: string;
  /** When a revocation begins and is acknowledged; undefined: never. */
  readonly revokedMs?: number;
  readonly acknowledgedMs?: number;
  /** When it begins to be granted again; it is acknowledged 1 ms later. */
  readonly grantedMs?: number;
  readonly call: { readonly fromMs: number; readonly toMs: number; readonly verdict: Verdict };
  /** Whether all nodes reach the masters (RC3). */
  readonly calm?: boolean;
}

/** What the check finds in one call beside one revocation and one grant. */
function found({ revokedMs, acknowledgedMs, grantedMs, call, calm = false }: Course): string {
  let nowMs = 0;
  const rights = new Rights(() => nowMs, BOUND_MS);
  let acknowledged = (): void => {};
  let ended = (_verdict: Verdict): void => {};
  const begins = (allowed: boolean): void => {
    acknowledged = rights.changes('u', allowed);
  };
  const asks = (): void => {
    ended = rights.asked('u', 'a put');
  };
  const events = new Map<number | undefined, () => void>([
    [revokedMs, () => begins(false)],
    [acknowledgedMs, () => acknowledged()],
    [grantedMs, () => begins(true)],
    [grantedMs === undefined ? undefined : grantedMs + 1, () => acknowledged()],
    [call.fromMs, () => asks()],
    [call.toMs, () => ended(call.verdict)],
  ]);
  rights.begins('u');
  if (calm) rights.allNodesReachMasters();
  try {
    for (nowMs = 0; nowMs <= call.toMs; nowMs++) events.get(nowMs)?.();
    return '';
  } catch (error) {
    return (error as { property?: string }).property ?? String(error);
  }
}

const LET_IN = 'what is revoked is refused';
const REFUSED = 'nobody is refused who is allowed';
const revoked = { revokedMs: 5, acknowledgedMs: 10 };

test.each<Course & { readonly property: string }>([
  { name: 'a call after the bound is let in', ...revoked, call: at(40, 'let in'), property: LET_IN },
  { name: 'a call at rest is let in', ...revoked, calm: true, call: at(11, 'let in'), property: LET_IN },
  { name: 'a user who always was allowed is refused', call: at(3, 'refused'), property: REFUSED },
  {
    name: 'a user is refused long after a grant',
    ...revoked,
    grantedMs: 20,
    call: at(52, 'refused'),
    property: REFUSED,
  },
])('found: $name', ({ property, ...course }) => {
  expect(found(course)).toBe(property);
});

test.each<Course>([
  { name: 'a call within the bound', ...revoked, call: at(39, 'let in') },
  { name: 'a call beside a revocation', ...revoked, call: { fromMs: 1, toMs: 6, verdict: 'refused' } },
  { name: 'a revocation that is never acknowledged', revokedMs: 5, call: at(90, 'let in') },
  { name: 'a refusal after the bound', ...revoked, call: at(40, 'refused') },
  {
    name: 'a call that goes on until the next grant',
    ...revoked,
    grantedMs: 45,
    call: { fromMs: 41, toMs: 48, verdict: 'let in' },
  },
  { name: 'another error', call: at(3, 'neither') },
])('allowed: $name', (course) => {
  expect(found(course)).toBe('');
});

function at(fromMs: number, verdict: Verdict): Course['call'] {
  return { fromMs, toMs: fromMs + 1, verdict };
}

describe('what comes to a user who asked earlier (RC4)', () => {
  /** The right is revoked at 5, which is acknowledged at 10. */
  function cameTo(sinceMs: number, atMs: number, calm = false): () => void {
    let nowMs = 0;
    const rights = new Rights(() => nowMs, BOUND_MS);
    rights.begins('u');
    if (calm) rights.allNodesReachMasters();
    nowMs = 5;
    const acknowledged = rights.changes('u', false);
    if (atMs >= 10) {
      nowMs = 10;
      acknowledged();
    }
    nowMs = atMs;
    return () => rights.cameTo('u', 'an event of a put', sinceMs);
  }

  test('is found if it began after the bound for the revocation', () => {
    expect(cameTo(40, 50)).toThrow('an event of a put came to u; it began 0 ms after the bound');
    expect(cameTo(11, 50, true)).toThrow('began 1 ms after the bound');
  });

  test('is right if it began before, or while the revocation is not acknowledged', () => {
    expect(cameTo(39, 500)).not.toThrow();
    expect(cameTo(9, 500, true)).not.toThrow();
    expect(cameTo(6, 7, true)).not.toThrow();
  });
});
