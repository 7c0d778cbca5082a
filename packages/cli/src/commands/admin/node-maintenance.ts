import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import type { AdminClient } from 'remora/admin';
import { awaitNode, isEmpty, leadsNothing } from '../../admin/await-node.ts';
import { NodeNames } from '../../admin/node-names.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, durationOption, examples } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';
import { addWaitFlag, lookingOn, type WaitFlags } from './wait.ts';

const WINDOW = {
  desc: 'how long the maintenance lasts',
  defaultMs: 3_600_000,
  limits: { min: 1_000, max: 30 * 24 * 3_600_000 },
};

export function drainCommand(shell: Shell): Command {
  const command = new Command('drain')
    .summary('Transfers all leaders away from a node.')
    .description(
      'Drains a node: it transfers its leaders away and accepts no new replicas or leaders until `undrain`. Its ' +
        'replicas stay. Waits until the node leads nothing. For a restart, use `maintenance`, which ends automatically.',
    )
    .argument('<node>', 'id or name of the node')
    .addHelpText('after', examples('remora admin nodes drain n2', 'remora admin nodes drain n2 --no-wait'));
  return addConnectionFlags(addWaitFlag(command), shell).action((wanted: string, flags: WaitFlags) =>
    withNode(flags, wanted, async (client, node) => {
      await client.setNodeDuty(node.id, 'draining');
      await untilAway(client, { node, until: leadsNothing, done: 'leads nothing; its replicas stay' }, flags, shell);
    }),
  );
}

interface MaintenanceFlags extends WaitFlags {
  readonly for: number;
}

export function maintenanceCommand(shell: Shell): Command {
  const command = new Command('maintenance')
    .summary('Prepares a node for a restart.')
    .description(
      'Prepares a node for a restart: it transfers its leaders away, as with `drain`, and for the given time its replicas ' +
        'are not replaced while it is down. Waits until the node leads nothing: then stop it. `undrain` ends maintenance early.',
    )
    .argument('<node>', 'id or name of the node')
    .addOption(durationOption('--for', WINDOW))
    .addHelpText('after', examples('remora admin nodes maintenance n2 --for 30m', 'remora admin nodes undrain n2'));
  return addConnectionFlags(addWaitFlag(command), shell).action((wanted: string, flags: MaintenanceFlags) =>
    withNode(flags, wanted, async (client, node) => {
      await client.setNodeDuty(node.id, 'maintenance', flags.for);
      await untilAway(client, { node, until: leadsNothing, done: 'leads nothing; you can stop it now' }, flags, shell);
    }),
  );
}

export function undrainCommand(shell: Shell): Command {
  const command = new Command('undrain')
    .summary('Lets a node accept replicas and leaders again.')
    .description('Lets a node accept replicas and leaders again. Ends drain, maintenance and decommissioning.')
    .argument('<node>', 'id or name of the node')
    .addHelpText('after', examples('remora admin nodes undrain n2'));
  return addConnectionFlags(command, shell).action((wanted: string, flags: ConnectionFlags) =>
    withNode(flags, wanted, async (client, node) => {
      await client.setNodeDuty(node.id, 'serving');
      await printNode(client, node, 'accepts replicas and leaders again', flags, shell);
    }),
  );
}

interface DestructiveFlags extends WaitFlags {
  readonly yes?: true;
}

export function decommissionCommand(shell: Shell): Command {
  const command = new Command('decommission')
    .summary('Moves all replicas away from a node.')
    .description(
      'Empties a node permanently: its replicas move to other nodes one by one, and each new replica is in place before the ' +
        'old one is removed. Waits until the node is empty; then stop and remove it. `undrain` reverts this.',
    )
    .argument('<node>', 'id or name of the node')
    .addHelpText('after', examples('remora admin nodes decommission n2', 'remora admin nodes decommission n2 --yes'));
  return addConnectionFlags(addWaitFlag(addYesFlag(command)), shell).action((wanted: string, flags: DestructiveFlags) =>
    withNode(flags, wanted, async (client, node) => {
      const { name } = node;
      await confirm(`${counted(node.replicas, 'replica')} will move from ${name} to other nodes.`, flags.yes, shell);
      await client.setNodeDuty(node.id, 'decommissioning');
      const done = `is empty. Stop it, then: remora admin nodes remove ${name}`;
      await untilAway(client, { node, until: isEmpty, done }, flags, shell);
    }),
  );
}

export function removeCommand(shell: Shell): Command {
  const command = new Command('remove')
    .summary('Removes a node from the cluster.')
    .description(
      'Removes a node from the cluster: it can never return under this id, and its remaining replicas are replaced at once, ' +
        'without waiting for it. For nodes that are empty or permanently down. Its machine can rejoin with an empty data directory.',
    )
    .argument('<node>', 'id or name of the node')
    .addHelpText('after', examples('remora admin nodes remove n2', 'remora admin nodes remove n2 --yes'));
  return addConnectionFlags(addYesFlag(command), shell).action(
    (wanted: string, flags: ConnectionFlags & { readonly yes?: true }) =>
      withNode(flags, wanted, async (client, node) => {
        const left =
          node.replicas === 0 ? '' : ` It still has ${counted(node.replicas, 'replica')}, which will be lost.`;
        await confirm(`${node.name} will be removed permanently.${left}`, flags.yes, shell);
        await client.setNodeDuty(node.id, 'removed');
        await printNode(client, node, 'was removed', flags, shell);
      }),
  );
}

function withNode(
  flags: ConnectionFlags,
  wanted: string,
  work: (client: AdminClient, node: admin.Node) => Promise<void>,
): Promise<void> {
  return withAdmin(flags, async (client) => work(client, new NodeNames((await client.nodes()).nodes).find(wanted)));
}

interface Departure {
  readonly node: admin.Node;
  readonly until: (node: admin.Node) => boolean;
  readonly done: string;
}

async function untilAway(
  client: AdminClient,
  { node, until, done }: Departure,
  flags: WaitFlags,
  shell: Shell,
): Promise<void> {
  if (!flags.wait) return printNode(client, node, 'is being emptied', flags, shell);
  const last = await lookingOn(shell, (follower) => awaitNode(client, { node, until }, follower));
  if (last !== undefined) print({ text: `${node.name} ${done}`, json: last }, flags, shell);
}

async function printNode(
  client: AdminClient,
  { id, name }: admin.Node,
  text: string,
  flags: ConnectionFlags,
  shell: Shell,
): Promise<void> {
  const json = (await client.nodes()).nodes.find((node) => node.id === id) ?? null;
  print({ text: `${name} ${text}`, json }, flags, shell);
}
