/** Candidates, leaders that proclaim and resign, observers, and clients that query the leader. */
import type { Leader, Leadership } from 'remora';
import type { Told } from '../../checkers/index.ts';
import { ask } from './ask.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

const WAIT_MS_MAX = 4_000;
const PROCLAMATIONS_MAX = 4;
const PAUSE_MS_MAX = 30;
const OBSERVES_MS_MAX = 4_000;
const ASKS = 3;

export function electionOf(r: number): string {
  return `elect/${r}`;
}

export const elections: MakeWorkers = (client) => {
  const name = namesFor(client, 'e');
  return [inRounds(client, (r) => campaign(client, r, name())), inRounds(client, (r) => observe(client, r, name()))];
};

async function campaign(client: Client, r: number, c: string): Promise<void> {
  const { random, remora } = client;
  const k = electionOf(r);
  const wait = random.int(WAIT_MS_MAX);
  const leadership = await ask(
    client,
    { w: 'elections', r, q: { c, k, op: 'campaign' } },
    () => remora.election(k).campaign({ value: `${c} 0`, wait }),
    ({ version, state }) => ({ version, leads: state !== 'lost' }),
  );
  if (leadership === undefined) return;
  for (let left = random.int(PROCLAMATIONS_MAX), count = 1; left > 0 && leadership.state !== 'lost'; left--, count++) {
    await client.pause(random.int(PAUSE_MS_MAX));
    // The outcome of an unanswered proclaim is unknown: nothing may follow it.
    if (!(await proclaim(client, { r, k, c, count }, leadership))) break;
  }
  const q = { c, k, op: 'resign', leads: leadership.state !== 'lost' };
  await ask(client, { w: 'elections', r, q }, () => leadership.release());
}

async function proclaim(
  client: Client,
  { r, k, c, count }: { readonly r: number; readonly k: string; readonly c: string; readonly count: number },
  leadership: Leadership,
): Promise<boolean> {
  const done = await ask(
    client,
    { w: 'elections', r, q: { c, k, op: 'proclaim', count } },
    async () => {
      await leadership.proclaim(`${c} ${count}`);
      return true;
    },
    () => ({ version: leadership.version, leads: leadership.state !== 'lost' }),
  );
  return done === true;
}

/** Observes for a while, and queries meanwhile. */
async function observe(client: Client, r: number, c: string): Promise<void> {
  const { journal, random, remora } = client;
  const k = electionOf(r);
  const events = remora.election(k).observe();
  const observing = (async () => {
    for await (const leader of events) journal.note('elections', r, { c, k, told: toldOf(leader) });
  })();
  for (let left = ASKS; left > 0; left--) {
    await client.pause(random.int(OBSERVES_MS_MAX / ASKS));
    await ask(
      client,
      { w: 'elections', r, q: { c, k, op: 'who' } },
      () => remora.election(k).leader(),
      (leader) => ({ told: toldOf(leader) }),
    );
  }
  await events.return();
  await observing;
}

/** Null: there is no leader. */
function toldOf(leader: Leader | undefined): Told | null {
  if (leader === undefined) return null;
  const [name = '', count] = Buffer.from(leader.value).toString().split(' ');
  return { leader: name, count: Number(count), version: leader.version };
}
