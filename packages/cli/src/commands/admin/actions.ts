import { int, LOG_LEVELS, oneOf } from '@remora/base';
import { Command } from 'commander';
import { NodeNames } from '../../admin/node-names.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, flagReader } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';

export function transferLeaderCommand(shell: Shell): Command {
  const command = new Command('transfer-leader')
    .description(
      'Transfers the leadership of a range to its replica on another node. Writes to the range pause for a moment.',
    )
    .argument('<range>', 'id of the range', flagReader(int({ min: 1 })))
    .argument('<node>', 'id or name of the node that should lead')
    .addHelpText('after', examples('remora admin transfer-leader 2 n3'));
  return addConnectionFlags(command, shell).action((rangeId: number, node: string, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const names = new NodeNames((await client.nodes()).nodes);
      const to = names.find(node);
      const { fromNode } = await client.transferLeader(rangeId, to.id);
      const text =
        fromNode === to.id
          ? `${to.name} already leads range ${rangeId}`
          : `${to.name} now leads range ${rangeId}; the leader was ${names.nameOf(fromNode)}`;
      print({ text, json: { range: rangeId, from: fromNode, to: to.id } }, flags, shell);
    }),
  );
}

export function logLevelCommand(shell: Shell): Command {
  const command = new Command('log-level')
    .summary("Shows or changes the level of a node's log.")
    .description(
      "Shows the level of a node's log, or changes it until the node restarts or gets SIGHUP: then --log-level applies again.",
    )
    .argument('<node>', 'id or name of the node')
    .argument('[level]', `the lowest level that is logged: ${LOG_LEVELS.join(', ')}`, flagReader(oneOf(LOG_LEVELS)))
    .addHelpText('after', examples('remora admin log-level n2', 'remora admin log-level n2 debug'));
  return addConnectionFlags(command, shell).action((node: string, wanted: string | undefined, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const { id, name } = new NodeNames((await client.nodes()).nodes).find(node);
      const { level, before } = await client.setLogLevel(id, wanted ?? '');
      const change = level === before ? '' : `; it logged from ${before} on before`;
      print({ text: `${name} logs from ${level} on${change}`, json: { node: id, level, before } }, flags, shell);
    }),
  );
}

interface CompactFlags extends ConnectionFlags {
  readonly revision?: number;
  readonly yes?: true;
}

export function compactCommand(shell: Shell): Command {
  const command = new Command('compact')
    .summary('Deletes the history of plain keys.')
    .description(
      'Deletes the history of plain keys: reads and watches from before the revision fail with COMPACTED. Current ' +
        'values stay. Nodes do this automatically for history older than --compaction-retention.',
    )
    .option(
      '--revision <number>',
      'delete history up to this revision (default: the current revision)',
      flagReader(int({ min: 1 })),
    )
    .addHelpText('after', examples('remora admin compact --yes', 'remora admin compact --revision 12000'));
  return addConnectionFlags(addYesFlag(command), shell).action(async (flags: CompactFlags) => {
    const upTo = flags.revision === undefined ? 'All history' : `The history up to revision ${flags.revision}`;
    await confirm(`${upTo} will be deleted. This cannot be undone.`, flags.yes, shell);
    await withAdmin(flags, async (client) => {
      const { revision } = await client.compact(flags.revision ?? 0);
      print({ text: `history starts at revision ${revision}`, json: { revision } }, flags, shell);
    });
  });
}
