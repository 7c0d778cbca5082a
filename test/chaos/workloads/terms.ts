/**
 * Locks that live by terms of their own: leases that are renewed, fixed, capped or by a condition, which are changed while they
 * are held, lock-delays, and holders that leave them to their time.
 */
import type { AcquireOptions, HeldLock } from 'remora';
import { NS_PER_MS } from '../journal/lines.ts';
import { ask } from './ask.ts';
import { trustedUntilNs } from './fences.ts';
import { type Client, type MakeWorkers, namesFor, type Turn } from './workload.ts';

const LOCKS = 2;
const USERS = 2;
const WAIT_MS_MAX = 4_000;
const TTL_MS_MIN = 500;
const TTL_MS_SPREAD = 1_500;
const DELAY_MS_MAX = 1_000;
const HEARTBEAT_MS_MIN = 100;
const HEARTBEAT_MS_SPREAD = 200;
const MISSES_MIN = 5;
const MISSES_SPREAD = 5;
const CHANGES_MAX = 3;
const HOLD_MS_MAX = 30;
/** Whoever relies on a lock until it is lost looks so often whether it is. */
const LOOK_MS = 50;
/** One in so many leaves its lock to its time, and as many rely on it for as long as they may. */
const LEAVES = 12;

const KINDS = ['session', 'renewed', 'fixed', 'capped', 'condition'] as const;
type Kind = (typeof KINDS)[number];

interface Use {
  readonly client: Client;
  readonly r: number;
  readonly k: string;
  readonly c: string;
  readonly kind: Kind;
  readonly ttlMs: number;
  readonly delayMs: number;
}

export function termLocksOf(r: number): readonly string[] {
  return Array.from({ length: LOCKS }, (_, i) => `terms/${r}/${i}`);
}

export const terms: MakeWorkers = (client) => {
  const owner = namesFor(client, 't');
  return Array.from(
    { length: USERS },
    (): Turn => async () => {
      const r = client.journal.round;
      const over = client.journal.hold(r);
      const use = drawUse(client, r, owner());
      const held = await acquire(use);
      if (held !== undefined) await work(use, held);
      over();
    },
  );
};

function drawUse(client: Client, r: number, c: string): Use {
  const { random } = client;
  return {
    ...{ client, r, c, k: termLocksOf(r)[random.int(LOCKS)] ?? '' },
    kind: KINDS[random.int(KINDS.length)] ?? 'renewed',
    ttlMs: TTL_MS_MIN + random.int(TTL_MS_SPREAD),
    delayMs: random.int(2) === 0 ? 0 : 1 + random.int(DELAY_MS_MAX),
  };
}

function acquire(use: Use): Promise<HeldLock | undefined> {
  const { client, r, c, k, delayMs, kind, ttlMs } = use;
  const wait = client.random.int(WAIT_MS_MAX);
  return ask(
    client,
    { w: 'terms', r, q: { c, k, op: 'acquire', kind, delayMs } },
    () => client.remora.lock(k).acquire({ ...optionsOf(use), wait }),
    (held) => {
      const limit = kind === 'fixed' || kind === 'capped' ? { limit: limitNs(client, ttlMs) } : {};
      return { version: held.version, until: trustedUntilNs(client, held), ...limit };
    },
  );
}

function optionsOf({ client, kind, ttlMs: ttl, delayMs: lockDelay }: Use): AcquireOptions {
  switch (kind) {
    case 'session':
      return { lockDelay };
    case 'renewed':
      return { lockDelay, ttl };
    case 'fixed':
      return { lockDelay, ttl, renew: false };
    case 'capped':
      return { lockDelay, ttl: TTL_MS_MIN, maxHold: ttl };
    case 'condition':
      return { lockDelay, condition: conditionOf(client) };
  }
}

function conditionOf({ random }: Client): { readonly heartbeat: number; readonly serverMisses: number } {
  return {
    heartbeat: HEARTBEAT_MS_MIN + random.int(HEARTBEAT_MS_SPREAD),
    serverMisses: MISSES_MIN + random.int(MISSES_SPREAD),
  };
}

async function work(use: Use, held: HeldLock): Promise<void> {
  const { client, r, c, k, kind } = use;
  const { random, journal } = client;
  for (let left = random.int(CHANGES_MAX); left > 0 && held.remainingMs > 0; left--) {
    await client.pause(random.int(HOLD_MS_MAX));
    await change(use, held);
  }
  const how = random.int(LEAVES);
  if (how === 0 && (kind === 'fixed' || kind === 'capped')) {
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
  const ttl = TTL_MS_MIN + client.random.int(TTL_MS_SPREAD);
  const question = (): Promise<void> => {
    if (kind === 'session') return held.extend();
    return kind === 'condition' ? held.setCondition(conditionOf(client)) : held.extend(ttl);
  };
  await ask(client, { w: 'terms', r, q: { c, k, op: 'change' } }, question);
  // Whatever came of it, the SDK knows until when it is certain.
  const limit = kind === 'fixed' ? { limit: limitNs(client, ttl) } : {};
  client.journal.note('terms', r, { c, k, looked: trustedUntilNs(client, held), ...limit });
}

/** When something that lasts so long from now on is over. */
function limitNs({ journal }: Client, ms: number): number {
  return journal.nowNs + ms * NS_PER_MS;
}
