/** One thread of a run: takes a seed, and returns its result. */
import { parentPort } from 'node:worker_threads';
import { holdSignalsBySources } from '../env/abort-signals.ts';
import type { Job, SimResult } from './simulation.ts';

export function serveSeeds(run: (job: Job) => Promise<SimResult>): void {
  const port = parentPort;
  if (port === null) return;
  holdSignalsBySources(); // thousands of seeds are run by one thread
  port.on('message', (job: Job) => {
    void run(job).then((result) => port.postMessage({ ...result, schedule: [] }));
  });
}
