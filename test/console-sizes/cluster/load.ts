/** Steady requests to all gateways, so that rates, loads and locks change while people look. */
import { type Clock, type Random, SeededRandom } from '@remora/base';
import type { ApiClient } from './api-client.ts';
import { acquirePath, itemJson } from './fill.ts';
import { keyAt } from './state.ts';

export interface LoadOptions {
  readonly clock: Clock;
  readonly clients: readonly ApiClient[];
  readonly perSecond: number;
  readonly keys: number;
}

const TICK_MS = 100;
/** Some keys are hotter than others: of two drawn, the first in the order of keys is used. */
const DRAWS = 2;

export function runLoad({ clock, clients, perSecond, keys }: LoadOptions): void {
  const random = new SeededRandom(4);
  let n = 0;
  const tick = (): void => {
    for (let i = 0; i < (perSecond * TICK_MS) / 1_000; i++) {
      const client = clients[random.int(clients.length)];
      if (client !== undefined) void request(client, random, n++, keys).catch(() => undefined);
    }
    clock.setTimer(TICK_MS, tick);
  };
  tick();
}

async function request(client: ApiClient, random: Random, n: number, keys: number): Promise<void> {
  const key = Math.min(...Array.from({ length: DRAWS }, () => random.int(keys)));
  const path = `/v1/kv/${encodeURIComponent(keyAt(key))}`;
  const drawn = random.int(10);
  if (drawn < 6) await client.call('GET', path);
  else if (drawn < 9) await client.call('PUT', path, { value: itemJson(n) });
  else {
    const lock = acquirePath({ namespace: 'jobs', name: `worker/${random.int(100)}` });
    const { token, version, session } = await client.call<Grant>('POST', lock, { ttl: '30s' });
    await client.call('POST', lock.replace(/acquire$/, 'release'), { token, version, session });
  }
}

interface Grant {
  readonly token: string;
  readonly version: number;
  readonly session: string;
}
