import { parseArgs } from 'node:util';
import { runOverload } from './overload.ts';
import { judgeFunction, judgeSpeed } from './overload-verdict.ts';
import { printVerdict, wholeNumber } from './report.ts';

const USAGE = `pnpm overload [options]

Offers a cluster of three nodes, whose gateways have a limit of requests per second, a multiple of it, and says whether
it keeps what is promised. See docs/testing/soak.md.

  --seconds <n>  how long (default: 120)
  --limit <n>    requests per second that a gateway takes (default: 1000); ten times that must be possible to offer
  --times <n>    how many times the limit is offered (default: 10)
  --json         print what was measured as JSON
  --help         print this`;

const CALM_SECONDS = 15;
const SESSIONS = 30;
/** Much shorter than the overload. */
const SESSION_TTL_MS = 4_000;

/** `pnpm overload`. Returns the exit code. */
export async function overloadMain(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '120' },
      limit: { type: 'string', default: '1000' },
      times: { type: 'string', default: '10' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const report = await runOverload({
    limit: wholeNumber('limit', values.limit),
    times: wholeNumber('times', values.times),
    seconds: wholeNumber('seconds', values.seconds),
    calmSeconds: CALM_SECONDS,
    sessions: SESSIONS,
    sessionTtlMs: SESSION_TTL_MS,
    say: (line) => console.log(`  ${line}`),
  });
  if (values.json) console.log(JSON.stringify(report, null, 2));
  return printVerdict([...judgeFunction(report), ...judgeSpeed(report)]);
}
