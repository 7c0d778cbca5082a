// A holder is paused and loses its lock. Its write comes late, and is refused.
import { connect } from 'remora';
import { messageOf, startChild } from '../support/children.ts';
import { ENDPOINTS } from '../support/servers.ts';
import type { FencedStore } from './fenced-store.ts';
import { STORES } from './stores.ts';

const HOLDER = new URL('./holder.js', import.meta.url);
const LAMPS = 10;

const remora = await connect({ endpoints: ENDPOINTS });
const stories = await Promise.all(Object.entries(STORES).map(([kind, open]) => tell(kind, open)));
console.log(stories.flat().join('\n'));
await remora.close();

/** Returns what happened with one kind of store. */
async function tell(kind: string, open: () => Promise<FencedStore>): Promise<readonly string[]> {
  const lines = [kind];
  const id = `lamps-in-${kind}`;
  const store = await open();
  await store.create(id, LAMPS);

  const paused = startChild(HOLDER, [kind, id]);
  const { version, value } = await messageOf<{ version: number; value: number }>(paused);
  paused.kill('SIGSTOP');
  lines.push(`  the first holder reads ${value} with version ${version}, and is paused`);

  // Waits until the paused holder's session has ended.
  await remora.lock(id).run(async (lock) => {
    const left = await store.read(id, lock.version);
    lines.push(`  the second holder reads ${left} with version ${lock.version}`);
    paused.kill('SIGCONT');
    paused.send('write');
    const { outcome } = await messageOf<{ outcome: string }>(paused);
    lines.push(`  the first holder goes on and writes: ${outcome}`);
    await store.write(id, left - 1, lock.version);
    lines.push(`  the second holder writes: ${await store.read(id, lock.version)} left`);
  });
  await store.close();
  return lines;
}
