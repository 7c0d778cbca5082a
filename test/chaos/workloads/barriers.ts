/** Barriers that are held while others wait at them, and double barriers at which parties enter and leave together. */
import type { BarrierStay, HeldLock } from 'remora';
import { NS_PER_MS } from '../journal/lines.ts';
import { ask } from './ask.ts';
import { trustedUntilNs } from './fences.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

const WAIT_MS_MAX = 3_000;
const HOLD_MS_MAX = 200;
const STAY_MS_MAX = 30;
/** How often a new meeting begins: after a meeting it is unknown who is still counted. */
const MEETING_MS = 1_000;
const PARTIES = 2;
/** Per client. */
const USERS = 2;

export function barrierOf(r: number): string {
  return `bar/${r}`;
}

export const barriers: MakeWorkers = (client) => {
  const name = namesFor(client, 'b');
  return Array.from({ length: USERS }, () =>
    inRounds(client, async (r) => {
      const kind = client.random.int(6);
      if (kind === 0) await hold(client, r, name());
      else if (kind < 3) await pass(client, r, name());
      else await meet(client, r, name());
    }),
  );
};

async function hold(client: Client, r: number, c: string): Promise<void> {
  const { random, remora } = client;
  const k = barrierOf(r);
  const until = (held: HeldLock): object => ({ until: trustedUntilNs(client, held) });
  const q = { c, k, op: 'hold' };
  const held = await ask(client, { w: 'barriers', r, q }, () => remora.barrier(k).hold({ wait: WAIT_MS_MAX }), until);
  if (held === undefined) return;
  await client.pause(random.int(HOLD_MS_MAX));
  await ask(client, { w: 'barriers', r, q: { c, k, op: 'lift', ...until(held) } }, () => held.release());
}

async function pass(client: Client, r: number, c: string): Promise<void> {
  const k = barrierOf(r);
  const wait = 1 + client.random.int(WAIT_MS_MAX);
  await ask(client, { w: 'barriers', r, q: { c, k, op: 'pass' } }, () => client.remora.barrier(k).wait({ wait }));
}

async function meet(client: Client, r: number, c: string): Promise<void> {
  const { journal, random, remora } = client;
  const k = `meet/${r}/${Math.floor(journal.nowNs / NS_PER_MS / MEETING_MS)}`;
  const wait = 1 + random.int(WAIT_MS_MAX);
  const stay = await ask(client, { w: 'barriers', r, q: { c, k, op: 'enter', parties: PARTIES } }, () =>
    remora.doubleBarrier(k, { parties: PARTIES }).enter({ wait }),
  );
  if (stay === undefined) return;
  await client.pause(random.int(STAY_MS_MAX));
  await part(client, { r, c, k }, stay);
}

async function part(
  client: Client,
  { r, c, k }: { readonly r: number; readonly c: string; readonly k: string },
  stay: BarrierStay,
): Promise<void> {
  const q = { c, k, op: 'leave', inside: stay.state !== 'lost' };
  await ask(client, { w: 'barriers', r, q }, () => stay.leave({ wait: client.random.int(WAIT_MS_MAX) }));
}
