import { parseArgs } from 'node:util';
import { type Judged, printVerdict, UsageError, wholeNumber } from '../report.ts';
import { runChange } from './change.ts';
import { runDeath } from './death.ts';
import { judgeChange, judgeDeath, judgeRestart, phaseLines } from './nodes-verdict.ts';
import { runRestart } from './restart.ts';
import type { LoadReport, StageLimits, StageOptions } from './stage.ts';

const USAGE = `pnpm nodes [scenario…] [options]

Nodes come, go and die under an open-loop load of 30 % of what the cluster was measured to do: gets, puts, transactions over
ranges, locks, leases, watches. Says whether it is repaired and balanced in time, and whether a request failed.
See docs/testing/soak.md. All scenarios unless some are named:

  death-of-master    of five nodes one is killed for good that has a voter of the masters
  death              one that has none
  change             a sixth node joins; then another one is decommissioned
  restart            all nodes are restarted: in maintenance, then by SIGTERM alone

  --ranges <n>       at the beginning (default: 40)
  --clients <n>      (default: 6)
  --rate <n>         requests per second, instead of 30 % of what is measured
  --calm <n>         seconds of load before and after what happens (default: 20)
  --down-after <n>   seconds of silence after which a node is replaced (default: 10)
  --settle <n>       seconds that nodes and ranges rest before balancing moves something there (default: 5)
  --seed <n>         of the load (default: by the clock)
  --json             print what was measured as JSON
  --help             print this`;

interface Played {
  readonly load: LoadReport;
  readonly judged: readonly Judged[];
}

const SCENARIOS: Readonly<Record<string, (options: StageOptions) => Promise<Played>>> = {
  'death-of-master': async (options) => {
    const report = await runDeath(options, 'master');
    return { load: report.load, judged: judgeDeath(report) };
  },
  death: async (options) => {
    const report = await runDeath(options, 'data');
    return { load: report.load, judged: judgeDeath(report) };
  },
  change: async (options) => {
    const report = await runChange(options);
    return { load: report.load, judged: judgeChange(report) };
  },
  restart: async (options) => {
    const report = await runRestart(options);
    return { load: report.load, judged: judgeRestart(report) };
  },
};

const MEASURE_SECONDS = 8;
/** The clients' limits are the defaults of the SDK. */
const LIMITS: StageLimits = { requestTimeoutMs: 10_000, sessionTtlMs: 10_000, repairMs: 60_000, waitMs: 210_000 };

/** `pnpm nodes`. Returns the exit code. */
export async function nodesMain(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      ranges: { type: 'string', default: '40' },
      clients: { type: 'string', default: '6' },
      rate: { type: 'string' },
      calm: { type: 'string', default: '20' },
      'down-after': { type: 'string', default: '10' },
      settle: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const options: StageOptions = {
    ranges: wholeNumber('ranges', values.ranges),
    clients: wholeNumber('clients', values.clients),
    measureSeconds: values.rate === undefined ? MEASURE_SECONDS : 0,
    ratePerSecond: values.rate === undefined ? 0 : wholeNumber('rate', values.rate),
    calmSeconds: wholeNumber('calm', values.calm),
    downAfterMs: 1_000 * wholeNumber('down-after', values['down-after']),
    settleMs: 1_000 * wholeNumber('settle', values.settle),
    seed: wholeNumber('seed', values.seed),
    limits: LIMITS,
    say: (line) => console.log(`  ${line}`),
  };
  const names = positionals.length === 0 ? Object.keys(SCENARIOS) : positionals;
  const judged: Judged[] = [];
  for (const name of names) judged.push(...(await play(name, options, values.json)));
  return printVerdict(judged);
}

async function play(name: string, options: StageOptions, asJson: boolean): Promise<readonly Judged[]> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new UsageError(`there is no scenario "${name}"`);
  console.log(`${name}, seed ${options.seed}`);
  const { load, judged } = await scenario(options);
  for (const line of phaseLines(load)) console.log(`  ${line}`);
  if (asJson) console.log(JSON.stringify(load, null, 2));
  return judged;
}
