import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { exitCode } from '../../exit-codes.ts';
import { conditionTable } from '../../format/condition-table.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { addViewFlags, show, type ViewFlags } from './run.ts';

export function checkCommand(shell: Shell): Command {
  const command = new Command('check')
    .description(
      'Says what is not as it should be: disks without room, keys that no range has or that two have, ranges without ' +
        'leader or majority, masters without a majority, missing, silent and badly placed replicas, replicas that nobody ' +
        'needs, changes that do not get on or cannot be made, silent nodes. Exit code 1 when anything is critical or a ' +
        'warning. Some of it passes by itself, while nodes restart or ranges move.',
    )
    .addHelpText('after', examples('remora admin check', 'remora admin check --json', 'remora admin check --watch'));
  return addViewFlags(command, shell).action((flags: ViewFlags) =>
    show(flags, shell, async (client) => {
      const report = await client.check();
      const ok = report.conditions.every(({ severity }) => severity === 'info');
      if (flags.watch === undefined && !ok) process.exitCode = exitCode('failed');
      return { text: checkText(report, ok), json: { ok, ...report } };
    }),
  );
}

function checkText({ nodes, ranges, conditions }: admin.CheckClusterResponse, ok: boolean): string {
  const looked = `${counted(nodes, 'node')}, ${counted(ranges, 'range')}`;
  const summary = ok ? 'nothing is wrong' : `${conditions.length} to look at`;
  const list = conditions.length === 0 ? '' : `\n\n${conditionTable(conditions)}`;
  return `${looked}: ${summary}${list}`;
}
