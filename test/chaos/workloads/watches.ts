/** Watches of the round's registers, from random revisions, through all faults. */
import { ServiceError } from '@remora/base';
import type { KvWatch } from 'remora';
import { registersOf } from './registers.ts';
import { type Client, type MakeWorkers, namesFor } from './workload.ts';

const LIFE_MS_MAX = 4_000;
const BACK_MAX = 400;
const NOTED_AT_ONCE = 200;

/** Revision, key, and the value of a put. Null: a delete. */
export type SeenEvent = readonly [revision: number, key: string, value: string | null];

export const watches: MakeWorkers = (client) => {
  const name = namesFor(client, 'w');
  return [() => one(client, name())];
};

async function one(client: Client, name: string): Promise<void> {
  const { journal, random, remora } = client;
  const r = journal.round;
  const lifeMs = Math.min(random.int(LIFE_MS_MAX), journal.roundLeftMs);
  const from = Math.max(1, client.newestRevision + 1 - random.int(BACK_MAX));
  const prefix = registersOf(r);
  const operation = journal.begin('watches', r, { watch: name, from, prefix });
  const watch = remora.kv.watch({ prefix }, { startRevision: from });
  const seen = follow(client, r, name, watch);
  await client.pause(lifeMs);
  watch.close();
  const end = await seen;
  if (end === 'compacted') operation.end('done', { a: { compacted: true } });
  // Received events are read completely after the close, so everything below the next revision is recorded.
  else operation.end('done', { a: { upTo: watch.nextRevision - 1 } });
}

async function follow(client: Client, r: number, watch: string, events: KvWatch): Promise<'closed' | 'compacted'> {
  const { journal } = client;
  let batch: SeenEvent[] = [];
  const note = (): void => {
    if (batch.length > 0) journal.note('watches', r, { watch, events: batch });
    batch = [];
  };
  try {
    for await (const { type, kv } of events) {
      batch.push([kv.modRevision, kv.key.toString(), type === 'put' ? kv.value.toString() : null]);
      if (batch.length >= NOTED_AT_ONCE) note();
    }
    note();
    return 'closed';
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'COMPACTED') throw error;
    note();
    return 'compacted';
  }
}
