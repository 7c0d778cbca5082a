/** One thread of a run: a seed comes in, its result goes out. */
import { parentPort } from 'node:worker_threads';
import { runSeed } from '../run.ts';

const port = parentPort;
if (port !== null) {
  port.on('message', (seed: number) => {
    void runSeed(seed).then(({ schedule: _, ...result }) => port.postMessage(result));
  });
}
