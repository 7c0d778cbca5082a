import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { printVerdict, UsageError, wholeNumber } from './report.ts';
import { runSoak, type Sample } from './soak.ts';
import { judgeSoak, live, mebibytes } from './soak-verdict.ts';

const USAGE = `pnpm soak [options]

Loads a cluster of three nodes with everything that clients do, and says whether memory and descriptors of its processes
stay what they were after the warm-up. See docs/testing/soak.md.

  --minutes <n>      of load, the warm-up included and the rests not (default: 30, at least 6)
  --seed <n>         of the load (default: by the clock)
  --snapshots <dir>  leave heap snapshots of the nodes there, of the first rest and of the last
  --json             print all samples as JSON
  --help             print this`;

const MINUTES_MIN = 6;
const WARM_UP_MINUTES = 2;
const SAMPLE_SECONDS = 30;
/** The tail of the log and the recent events take 8 MiB each. */
const WARM_UP_OPERATIONS = 150_000;
const RESTS = 10;

/** `pnpm soak`. Returns the exit code. */
export async function soakMain(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '30' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      snapshots: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const minutes = wholeNumber('minutes', values.minutes);
  if (minutes < MINUTES_MIN) throw new UsageError(`--minutes is at least ${MINUTES_MIN}`);
  const seed = wholeNumber('seed', values.seed);
  const snapshotDir = values.snapshots === undefined ? undefined : resolve(values.snapshots);
  if (snapshotDir !== undefined) mkdirSync(snapshotDir, { recursive: true });
  console.log(`${minutes} minutes, seed ${seed}; live memory (heap and buffers) after a forced collection`);
  const report = await runSoak({
    minutes,
    seed,
    warmUpMinutes: WARM_UP_MINUTES,
    warmUpOperations: WARM_UP_OPERATIONS,
    everySeconds: SAMPLE_SECONDS,
    rests: RESTS,
    ...(snapshotDir === undefined ? {} : { snapshotDir }),
    onSample: (sample) => console.log(lineOf(sample)),
  });
  if (values.json) console.log(JSON.stringify(report, null, 2));
  return printVerdict(judgeSoak(report));
}

function lineOf({ minutes, resting, operations, outcomes, memory }: Sample): string {
  const processes = Object.entries(memory).map(([name, each]) => {
    const sizes = `${mebibytes(live(each))} (heap ${mebibytes(each.heapUsed)}, RSS ${mebibytes(each.rss)})`;
    return `${name} ${sizes}, ${each.descriptors} descriptors, ${each.handles} handles`;
  });
  const head = `${minutes.toFixed(1)} min ${resting ? 'at rest' : 'under load'}: ${operations} operations, ${outcomes} outcomes`;
  return [head, ...processes].join('\n    ');
}
