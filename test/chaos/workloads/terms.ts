/**
 * Locks with terms: leases that are renewed, fixed, capped or conditional, terms that change while the lock is held,
 * lock-delays, and holders that abandon their locks.
 */
import type { HeldLock } from 'remora';
import {
  drawCondition,
  drawTerms,
  drawTtlMs,
  isLimited,
  optionsOf,
  type TermBounds,
  type Terms,
} from '../../support/lock-terms.ts';
import { NS_PER_MS } from '../journal/lines.ts';
import { ask } from './ask.ts';
import { trustedUntilNs } from './fences.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

const LOCKS = 2;
const USERS = 2;
const WAIT_MS_MAX = 4_000;
const BOUNDS: TermBounds = {
  ...{ ttlMsMin: 500, ttlMsSpread: 1_500, delayMsMax: 1_000 },
  ...{ heartbeatMsMin: 100, heartbeatMsSpread: 200 },
};
const CHANGES_MAX = 3;
const HOLD_MS_MAX = 30;
/** How often a client that relies on a lock until it is lost checks it. */
const LOOK_MS = 50;
/** One in this many abandons its lock, and as many rely on it for as long as they may. */
const LEAVES = 12;

interface Use extends Terms {
  readonly client: Client;
  readonly r: number;
  readonly k: string;
  readonly c: string;
}

export function termLocksOf(r: number): readonly string[] {
  return Array.from({ length: LOCKS }, (_, i) => `terms/${r}/${i}`);
}

export const terms: MakeWorkers = (client) => {
  const owner = namesFor(client, 't');
  return Array.from({ length: USERS }, () =>
    inRounds(client, async (r) => {
      const use = drawUse(client, r, owner());
      const held = await acquire(use);
      if (held !== undefined) await work(use, held);
    }),
  );
};

function drawUse(client: Client, r: number, c: string): Use {
  const { random } = client;
  return { client, r, c, k: termLocksOf(r)[random.int(LOCKS)] ?? '', ...drawTerms(random, BOUNDS) };
}

function acquire(use: Use): Promise<HeldLock | undefined> {
  const { client, r, c, k, delayMs, kind, ttlMs } = use;
  const wait = client.random.int(WAIT_MS_MAX);
  return ask(
    client,
    { w: 'terms', r, q: { c, k, op: 'acquire', kind, delayMs } },
    () => client.remora.lock(k).acquire({ ...optionsOf(use, client.random, BOUNDS), wait }),
    (held) => {
      const limit = isLimited(kind) ? { limit: limitNs(client, ttlMs) } : {};
      return { version: held.version, until: trustedUntilNs(client, held), ...limit };
    },
  );
}

async function work(use: Use, held: HeldLock): Promise<void> {
  const { client, r, c, k, kind } = use;
  const { random, journal } = client;
  for (let left = random.int(CHANGES_MAX); left > 0 && held.remainingMs > 0; left--) {
    await client.pause(random.int(HOLD_MS_MAX));
    await change(use, held);
  }
  const how = random.int(LEAVES);
  if (how === 0 && isLimited(kind)) {
    for (let until = 1; until > 0; await client.pause(LOOK_MS)) {
      until = trustedUntilNs(client, held);
      journal.note('terms', r, { c, k, looked: until });
    }
  }
  await client.pause(random.int(HOLD_MS_MAX));
  const q = { c, k, until: trustedUntilNs(client, held) };
  if (how === 1 && kind !== 'session')
    await ask(client, { w: 'terms', r, q: { ...q, op: 'orphan' } }, () => held.orphan());
  else await ask(client, { w: 'terms', r, q: { ...q, op: 'release' } }, () => held.release());
}

async function change({ client, r, c, k, kind }: Use, held: HeldLock): Promise<void> {
  const ttl = drawTtlMs(client.random, BOUNDS);
  const question = (): Promise<void> => {
    if (kind === 'session') return held.extend();
    return kind === 'condition' ? held.setCondition(drawCondition(client.random, BOUNDS)) : held.extend(ttl);
  };
  await ask(client, { w: 'terms', r, q: { c, k, op: 'change' } }, question);
  // Whatever the outcome, the SDK knows until when the hold is certain.
  const limit = kind === 'fixed' ? { limit: limitNs(client, ttl) } : {};
  client.journal.note('terms', r, { c, k, looked: trustedUntilNs(client, held), ...limit });
}

/** When a period of this length, starting now, is over. */
function limitNs({ journal }: Client, ms: number): number {
  return journal.nowNs + ms * NS_PER_MS;
}
