import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { exitCode } from '../../exit-codes.ts';
import { counted } from '../../format/sizes.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { addViewFlags, show, type ViewFlags } from './run.ts';

export function checkCommand(shell: Shell): Command {
  const command = new Command('check')
    .description(
      'Says what is not as it should be: keys that no range has or that two have, ranges without leader or majority, ' +
        'missing, silent and badly placed replicas, replicas that nobody needs, changes that do not get on or cannot be ' +
        'made, silent nodes. Exit code 1 when there is anything. Some of it passes by itself, while nodes restart or ' +
        'ranges move.',
    )
    .addHelpText('after', examples('remora admin check', 'remora admin check --json', 'remora admin check --watch'));
  return addViewFlags(command, shell).action((flags: ViewFlags) =>
    show(flags, shell, async (client) => {
      const report = await client.check();
      const whole = report.problems.length === 0;
      if (flags.watch === undefined && !whole) process.exitCode = exitCode('failed');
      return { text: checkText(report), json: { ok: whole, ...report } };
    }),
  );
}

function checkText({ nodes, ranges, problems }: admin.CheckClusterResponse): string {
  const looked = `${counted(nodes, 'node')}, ${counted(ranges, 'range')}`;
  if (problems.length === 0) return `${looked}: nothing is wrong`;
  const rows = problems.map(({ severity, kind, text }) => [severity, kind, text]);
  return `${looked}: ${problems.length} to look at\n\n${table(['SEVERITY', 'KIND', 'WHAT'], rows)}`;
}
