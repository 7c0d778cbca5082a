/** The load process of the Raft benchmark; tells its parent when the warm-up is over, and the result at the end. */
import { setTimeout as pause } from 'node:timers/promises';
import { quantile } from '../../test/support/quantile.ts';
import type { LoadResult } from '../load-spec.ts';
import { LoadClient } from './load-client.ts';
import type { RaftLoadArguments } from './messages.ts';

const WARM_UP_MS = 1_500;

process.on('disconnect', () => process.exit(1));
const args: RaftLoadArguments = JSON.parse(process.argv[2] ?? '{}');
const client = new LoadClient(args);
client.start();
await pause(WARM_UP_MS);
client.reset();
const begunMs = performance.now();
process.send?.({ type: 'measuring' });
await pause(args.seconds * 1_000);
const { latencies, errors } = client.stop();
const elapsedMs = performance.now() - begunMs;
// Told first of all, so that the parent reads the processes' CPU time at the right moment.
process.send?.({ type: 'measured' });
const ops = latencies.length;
const result: LoadResult = {
  ops,
  opsPerSecond: (ops * 1_000) / elapsedMs,
  p50Ms: quantile(latencies, 0.5),
  p99Ms: quantile(latencies, 0.99),
  errors,
};
process.send?.({ type: 'result', result }, () => process.exit());
