/** Fills the cluster through its own HTTP API: sessions hold all locks, some locks have a queue, and there are keys. */
import type { ApiClient } from './api-client.ts';
import { keyAt, type LockPlace, lockPlaces, type Sizes } from './state.ts';

const TTL = '24h';
/** Calls at a time. */
const HANDS = 512;
const USERS = 50;
/** Every 50th lock has a queue, of up to five. */
const QUEUED_EVERY = 50;
const QUEUE_MAX = 5;
/** A waiter asks again after this time: the API bounds how long a call waits. */
const WAIT = '10m';

export interface Filled {
  readonly sessions: readonly string[];
  readonly places: readonly LockPlace[];
}

export async function fill(client: (n: number) => ApiClient, sizes: Sizes): Promise<Filled> {
  const sessions = await each(sizes.sessions, async (i) => {
    const attributes = { host: `web-${i % 40}.eu-central.example`, pid: String(2_000 + i), service: 'checkout' };
    return (await client(i).call<{ readonly session: string }>('POST', '/v1/sessions', { ttl: TTL, attributes }))
      .session;
  });
  const places = lockPlaces(sizes.locks);
  await each(places.length, (i) =>
    client(i).call('POST', acquirePath(places[i]), { ...hold(i), session: sessions[i % sessions.length] }),
  );
  await each(sizes.keys, (i) =>
    client(i).call('PUT', `/v1/kv/${encodeURIComponent(keyAt(i))}`, { value: itemJson(i) }),
  );
  for (let i = 0; i < USERS; i++) {
    await client(0)
      .call('PUT', `/v1/roles/team-${i}`, {})
      .catch(() => undefined);
  }
  return { sessions, places };
}

/** Queues for the locks; each waiter stays for as long as the cluster runs. */
export function queue(client: (n: number) => ApiClient, { sessions, places }: Filled): void {
  for (let i = 0; i < places.length; i += QUEUED_EVERY) {
    for (let n = 0; n <= (i / QUEUED_EVERY) % QUEUE_MAX; n++) {
      void wait(client(i + n), places[i], {
        ...hold(i, n + 1),
        session: sessions[(i + 7 * (n + 1)) % sessions.length],
      });
    }
  }
}

async function wait(client: ApiClient, place: LockPlace | undefined, body: object): Promise<void> {
  for (;;) await client.call('POST', acquirePath(place), { ...body, wait: WAIT }).catch(() => undefined);
}

function hold(i: number, place = 0) {
  return { token: `token-of-lock-${i}-${place}`.padEnd(24, '0'), data: `order ${i}` };
}

export function acquirePath(place: LockPlace = { namespace: '', name: '' }): string {
  return `/v1/locks/${encodeURIComponent(place.namespace)}/${encodeURIComponent(place.name)}/acquire`;
}

export function itemJson(i: number): string {
  return JSON.stringify({ id: i, price: (i % 500) / 10, stock: i % 97, updated: '2026-11-28T08:00:00Z' });
}

/** Runs `work` for 0 to `count - 1`, a bounded number at a time. */
async function each<Result>(count: number, work: (i: number) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const hand = async (): Promise<void> => {
    while (next < count) {
      const i = next++;
      results[i] = await work(i);
    }
  };
  await Promise.all(Array.from({ length: HANDS }, hand));
  return results;
}
