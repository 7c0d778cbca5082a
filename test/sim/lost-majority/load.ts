/**
 * Clients of a cluster that loses majorities. They put single keys, put one key in each of two ranges at once, and
 * acquire locks.
 */
import type { Random } from '@remora/base';
import type { ScheduledCluster } from '../cluster/scheduled-cluster.ts';
import type { ClientLife } from '../cluster/sdk-client.ts';
import { ask, withHands } from '../cluster/workloads/ask.ts';
import type { Locks } from './locks.ts';
import type { Written } from './written.ts';

/** The start keys of all ranges but the first. */
export const BORDERS: readonly string[] = ['g', 'p'];
/** Several keys in each range. A split separates two of them. */
export const KEYS: readonly string[] = ['a', 'd', 'h', 'm', 'q', 'w'];
const HANDS = 2;

export function startLoad({ world }: ScheduledCluster, written: Written, locks: Locks): void {
  for (const client of world.clients) {
    client.start(async (life) => {
      const locking = locks.work(life);
      await withHands(world, HANDS, async () => {
        const keys = drawKeys(life.random);
        const value = written.newValue();
        const acknowledged = written.begin(keys, value);
        const answer = await ask({ world, life, what: `put ${keys.join(' ')}` }, () => put(life, keys, value));
        if (answer.type === 'answer') acknowledged(answer.value.revision);
        await pause(life, 20 + life.random.int(120));
      });
      await locking;
    });
  }
}

/**
 * Draws a key. In half of the cases it draws a second one that is not the first, so that most pairs are in two ranges.
 */
function drawKeys(random: Random): readonly string[] {
  const first = random.int(KEYS.length);
  const second = (first + 2 + random.int(3)) % KEYS.length;
  const places = random.int(2) === 0 ? [first] : [first, second];
  return places.map((place) => KEYS[place] ?? '');
}

function put({ remora }: ClientLife, keys: readonly string[], value: string): Promise<{ readonly revision: number }> {
  const [key = ''] = keys;
  if (keys.length === 1) return remora.kv.put(key, value);
  return remora.kv.txn({ success: keys.map((each) => ({ put: each, value })) });
}

function pause({ clock }: ClientLife, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(ms, resolve));
}
