import { parseArgs } from 'node:util';
import { runGrowth } from './growth.ts';
import { judgeGrowth, judgeMemory } from './growth-verdict.ts';
import { printVerdict, wholeNumber } from './report.ts';

const USAGE = `pnpm growth [options]

Loads a cluster of three nodes whose ranges split by themselves, in the random order of keys, and reads all of it back.
See docs/testing/soak.md.

  --mib <n>          how much to load (default: 2048)
  --value-bytes <n>  of one value (default: 1024)
  --split-mib <n>    where ranges are split; they are measured from half of it on, and have at most twice of it
                     (default: 64)
  --inflight <n>     writes under way (default: 256)
  --shrinks          delete all of it at the end, and wait until its ranges are merged
  --json             print what was measured as JSON
  --help             print this`;

const MIB = 2 ** 20;

/** `pnpm growth`. Returns the exit code. */
export async function growthMain(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mib: { type: 'string', default: '2048' },
      'value-bytes': { type: 'string', default: '1024' },
      'split-mib': { type: 'string', default: '64' },
      inflight: { type: 'string', default: '256' },
      shrinks: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const valueBytes = wholeNumber('value-bytes', values['value-bytes']);
  const split = wholeNumber('split-mib', values['split-mib']) * MIB;
  const report = await runGrowth({
    values: Math.ceil((wholeNumber('mib', values.mib) * MIB) / valueBytes),
    valueBytes,
    sizes: { check: split / 2, split, max: 2 * split },
    inflight: wholeNumber('inflight', values.inflight),
    shrinks: values.shrinks,
    say: (line) => console.log(`  ${line}`),
  });
  if (values.json) console.log(JSON.stringify(report, null, 2));
  const { writesPerSecond, longestWriteMs, seconds } = report;
  const speed = `${writesPerSecond.toFixed(0)} writes per second, the longest ${longestWriteMs.toFixed(0)} ms`;
  console.log(`  loaded in ${seconds.toFixed(0)} s: ${speed}`);
  return printVerdict([...judgeGrowth(report), judgeMemory(report)]);
}
