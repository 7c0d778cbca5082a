import { parseArgs } from 'node:util';
import { printVerdict, wholeNumber } from '../report.ts';
import { runAttack } from './attack.ts';
import { judgeFunction, judgeSpeed } from './attack-verdict.ts';

const USAGE = `pnpm attack [options]

Anonymous attackers begin input of every kind at all ports of a node, and finish none. Says whether memory stays within
the budgets, whether clients go on and whether health is answered. See docs/testing/soak.md.

  --seconds <n>      how long (default: 60)
  --connections <n>  attackers (default: 1000)
  --json             print what was measured as JSON
  --help             print this`;

/** `pnpm attack`. Returns the exit code. */
export async function attackMain(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      connections: { type: 'string', default: '1000' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const report = await runAttack({
    seconds: wholeNumber('seconds', values.seconds),
    connections: wholeNumber('connections', values.connections),
    say: (line) => console.log(`  ${line}`),
  });
  if (values.json) console.log(JSON.stringify(report, null, 2));
  return printVerdict([...judgeFunction(report), ...judgeSpeed(report)]);
}
