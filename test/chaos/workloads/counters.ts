/**
 * Increments of a few counters per round, through the SDK, patient and hasty. Some have a name (`once`): they are
 * repeated after unknown outcomes, and some names are shared by all clients, which use them at the same time.
 */
import { ServiceError } from '@remora/base';
import type { RemoraClient } from 'remora';
import { NS_PER_MS } from '../journal/lines.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

/** What each counter is incremented by. */
const STEPS = [1, 7, -3] as const;
const REPEATS_MAX = 3;
/** How long all clients use the same shared name. */
const SHARED_MS = 500;

/** The prefix of the counters of a round, and of their records. */
function countersOf(r: number): string {
  return `counter/${r}/`;
}

export interface Counter {
  readonly key: string;
  readonly by: number;
}

export function counterKeys(r: number): readonly Counter[] {
  return STEPS.map((by, i) => ({ key: `${countersOf(r)}${i}`, by }));
}

/** The prefix of the records of a counter. */
export function recordsOf({ key }: Counter): string {
  return `${key}/by/`;
}

export const counters: MakeWorkers = (client) => {
  const call = namesFor(client, 'i');
  return [client.remora, client.hasty].map((remora) => inRounds(client, (r) => turn({ client, remora, call, r })));
};

interface Turn {
  readonly client: Client;
  readonly remora: RemoraClient;
  readonly call: () => string;
  readonly r: number;
}

async function turn(of: Turn): Promise<void> {
  const { client, call, r } = of;
  const all = counterKeys(r);
  const counter = all[client.random.int(all.length)] ?? { key: countersOf(r), by: 1 };
  const kind = client.random.int(6);
  if (kind < 2) return void (await add(of, counter, undefined));
  const name = kind === 2 ? `shared${Math.floor(client.journal.nowNs / NS_PER_MS / SHARED_MS)}` : call();
  for (let repeats = 0; repeats <= REPEATS_MAX; repeats++) {
    const isAnswered = await add(of, counter, name);
    // What begins later might be applied after the auditor has read the round.
    if (client.journal.round !== r || (isAnswered && client.random.int(4) > 0)) return;
  }
}

/** Returns whether it was answered. */
async function add({ client, remora, call, r }: Turn, counter: Counter, name: string | undefined): Promise<boolean> {
  const { key, by } = counter;
  const once = name === undefined ? undefined : `${recordsOf(counter)}${name}`;
  const q = { op: 'add', c: call(), k: key, by, ...(name !== undefined && { name }) };
  const operation = client.journal.begin('counters', r, q);
  try {
    const { value, revision, repeated } = await remora.kv.increment(key, { by, once });
    client.newestRevision = Math.max(client.newestRevision, revision);
    operation.end('done', { a: { value, revision, repeated } });
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    operation.end(error.mayBeApplied ? 'unknown' : 'refused', { code: error.code });
    return false;
  }
}
