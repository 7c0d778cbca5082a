import { escapeHidden } from '@remora/base';
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
    .summary('Reports problems of the cluster.')
    .description(
      'Reports problems of the cluster: full disks, keys that no range or two ranges contain, ranges without a ' +
        'leader or a majority, masters without a majority, missing, silent, badly placed and surplus replicas, ' +
        'stuck or impossible changes, silent nodes. Exits with 1 if any problem is critical or a ' +
        'warning. Some problems resolve themselves while nodes restart or ranges move.',
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

function checkText(report: admin.CheckClusterResponse, ok: boolean): string {
  const { nodes, ranges, conditions } = report;
  const looked = `${counted(nodes, 'node')}, ${counted(ranges, 'range')}`;
  const summary = ok ? 'no problems found' : `${counted(conditions.length, 'problem')} found`;
  const list = conditions.length === 0 ? '' : `\n\n${conditionTable(conditions)}`;
  return `${looked}: ${summary}\n${usersText(report)}${list}`;
}

/** Exported for tests. */
export function usersText({
  authentication,
  rootUsers,
  conditions,
}: Pick<admin.CheckClusterResponse, 'authentication' | 'rootUsers' | 'conditions'>): string {
  // A cluster that is not founded yet has no users, but its founding members may bring some.
  const isUnknown = !authentication && conditions.some(({ name }) => name === 'noMasters');
  if (isUnknown) return 'whether authentication is on is unknown while the masters have no leader';
  if (!authentication) return 'authentication is off';
  return `authentication is on; users with the role root: ${rootUsers.map((name) => escapeHidden(name)).join(', ')}`;
}
