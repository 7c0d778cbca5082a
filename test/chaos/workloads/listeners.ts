/** Clients that listen for a while to the events of one of the round's locks. */
import type { LockWatchEvent } from 'remora';
import { plain } from '../../checkers/index.ts';
import { ask } from './ask.ts';
import { barrierOf } from './barriers.ts';
import { electionOf } from './elections.ts';
import { kindLocksOf } from './kinds.ts';
import { termLocksOf } from './terms.ts';
import { type Client, type MakeWorkers, namesFor } from './workload.ts';

const LISTENS_MS_MAX = 4_000;
const NOTED_AT_ONCE = 50;

export const listeners: MakeWorkers = (client) => {
  const name = namesFor(client, 'l');
  return [() => listen(client, name())];
};

async function listen(client: Client, c: string): Promise<void> {
  const { journal, random, remora } = client;
  const r = journal.round;
  const locks = [...termLocksOf(r), ...kindLocksOf(r), electionOf(r), barrierOf(r)];
  const k = locks[random.int(locks.length)] ?? '';
  const question = async (): Promise<void> => {
    const events = remora.lock(k).events();
    const heard = hear(client, { r, c, k }, events);
    await client.pause(random.int(LISTENS_MS_MAX));
    await events.return();
    await heard;
  };
  await ask(client, { w: 'listeners', r, q: { c, k } }, question);
}

async function hear(
  { journal }: Client,
  { r, c, k }: { readonly r: number; readonly c: string; readonly k: string },
  events: AsyncIterable<LockWatchEvent>,
): Promise<void> {
  let batch: LockWatchEvent[] = [];
  const note = (): void => {
    if (batch.length > 0) journal.note('listeners', r, { c, k, heard: plain(batch) });
    batch = [];
  };
  for await (const event of events) {
    batch.push(event);
    if (batch.length >= NOTED_AT_ONCE) note();
  }
  note();
}
