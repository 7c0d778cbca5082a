import { equalBytes, utf8 } from '@remora/base';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryView } from '../test/memory-view.ts';
import { gist, NaiveLock, type Now, name, noticeGist } from '../test/naive-lock.ts';
import {
  applyLockCommand,
  type LockCommand,
  type LockId,
  type LockState,
  lockSpan,
  type Owner,
  queryLocks,
  sessionEnded,
} from './index.ts';

const LOCK: LockId = { namespace: 'n', name: Buffer.from([0, 1, 0, 255]) };
/** A neighbour whose records must stay as they are. */
const NEXT: LockId = { namespace: 'n', name: Buffer.from([0, 1, 0, 255, 0]) };
const LEASES = [1n, 2n, 3n];

type Step =
  | { readonly type: 'command'; readonly command: LockCommand; readonly afterMs: number }
  /** Ends the session; when unheard, the lock hears of it only later (or at the end). */
  | { readonly type: 'end'; readonly lease: bigint; readonly heard: boolean };

const owner: fc.Arbitrary<Owner> = fc.record({
  session: fc.constantFrom(...LEASES).map((lease) => ({ lease, incarnation: 1 })),
  token: fc.constantFrom('x', 'y'),
});
const attempt = fc.integer({ min: 0, max: 4 });
const deadlineMs = fc.constantFrom(0, 1_020, 1_040, 1_080, 2_000);
const lock = fc.constant(LOCK);

const command: fc.Arbitrary<LockCommand> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('acquire' as const),
      lock,
      owner,
      wait: fc.boolean(),
      waitUntilMs: fc.constantFrom(0, 0, 1_020, 1_050),
      deadlineMs: deadlineMs.map((ms) => ms + 1_000),
      depthMax: fc.constantFrom(1, 3),
      data: fc.constant(utf8('d')),
      attempt,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('release' as const),
      lock,
      owner,
      all: fc.boolean(),
      deadlineMs,
      attempt,
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('cancel' as const), lock, owner, deadlineMs, attempt }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forceRelease' as const), lock }) },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 15,
    arbitrary: fc.record({ type: fc.constant('command' as const), command, afterMs: fc.integer({ min: 0, max: 8 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('end' as const), lease: fc.constantFrom(...LEASES), heard: fc.boolean() }),
  },
);

function stateOf(view: MemoryView): LockState | undefined {
  const shown = queryLocks(
    { get: (k) => view.get(k), scan: (s, e, l) => view.scan(s, e, l), timeMs: 0 },
    { type: 'show', lock: LOCK },
  );
  return shown.type === 'show' ? shown.state : undefined;
}

function expectSame(view: MemoryView, naive: NaiveLock): void {
  const state = stateOf(view);
  const holder = state?.holders[0];
  expect(holder && `${name(holder.owner)} ${holder.version} ${holder.depth}`).toBe(
    naive.holder && `${name(naive.holder.owner)} ${naive.holder.version} ${naive.holder.depth}`,
  );
  expect((state?.waiters ?? []).map((w) => name(w.owner))).toEqual(naive.queue.map((w) => name(w.owner)));
  expect(state?.waiterCount ?? 0).toBe(naive.queue.length);
}

/** W4. A session is attached exactly while it holds the lock or has a row in it (a place in the queue, a mark). */
function expectAttached(view: MemoryView, naive: NaiveLock): void {
  for (const lease of LEASES) {
    const prefix = Buffer.concat([lockSpan(LOCK).start, Buffer.alloc(9, 2)]);
    prefix.writeBigUInt64BE(lease, prefix.length - 8);
    const rows = view.rows.some((row) => equalBytes(row.key.subarray(0, prefix.length), prefix));
    const holds = naive.holder?.owner.session.lease === lease;
    expect(view.attachedLocks({ lease, incarnation: 1 }).length > 0).toBe(rows || holds);
  }
}

it('every sequence of commands does what the rules say, and leaves nothing once all sessions ended', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const view = new MemoryView();
      for (const lease of LEASES) view.begin({ lease, incarnation: 1 });
      const stranger: Owner = { session: { lease: 9n, incarnation: 1 }, token: 'z' };
      view.begin(stranger.session);
      const base = { wait: true, waitUntilMs: 0, deadlineMs: 9_000, depthMax: 1, data: utf8('') };
      applyLockCommand(view, { type: 'acquire', lock: NEXT, owner: stranger, ...base });
      const neighbour = [...view.rows];

      const naive = new NaiveLock();
      let lastVersion = 0;
      const now = (): Now => ({
        revision: view.revision,
        timeMs: view.timeMs,
        alive: (who) => view.sessionAlive(who.session),
      });
      const end = (lease: bigint) => {
        view.end({ lease, incarnation: 1 });
        const session = { lease, incarnation: 1 };
        view.revision += 1;
        const notices = view.attachedLocks(session).flatMap((id) => sessionEnded(view, session, id));
        const expected = naive.sessionEnded(now(), lease);
        expect(notices.map(noticeGist)).toEqual(expected);
        expect(view.attachedLocks(session)).toEqual([]);
      };

      for (const each of steps) {
        view.revision += 1;
        if (each.type === 'end') {
          if (each.heard) end(each.lease);
          else view.end({ lease: each.lease, incarnation: 1 });
        } else {
          view.timeMs += each.afterMs;
          const expected = naive.apply(now(), each.command);
          const outcome = applyLockCommand(view, each.command);
          expect({ result: gist(outcome.result), notices: outcome.notices.map(noticeGist) }).toEqual(expected);
          if (outcome.result.type === 'queued') {
            const { owner: who } = each.command as Extract<LockCommand, { type: 'acquire' }>;
            const rank = naive.queue.findIndex((w) => name(w.owner) === name(who)) + 1;
            expect(outcome.result.position).toBeGreaterThanOrEqual(rank);
            expect(outcome.result.position).toBeLessThanOrEqual(naive.queue.length);
          }
        }
        expectSame(view, naive);
        expectAttached(view, naive);
        const version = naive.holder?.version ?? lastVersion;
        expect(version).toBeGreaterThanOrEqual(lastVersion);
        lastVersion = version;
      }

      for (const lease of LEASES) end(lease);
      expect(view.rows).toEqual(neighbour);
      expect(view.attachments).toBe(1);
    }),
    { numRuns: 1_000 },
  );
});
