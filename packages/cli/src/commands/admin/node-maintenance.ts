import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import type { AdminClient } from 'remora';
import { awaitNode, isEmpty, leadsNothing } from '../../admin/await-node.ts';
import { NodeNames } from '../../admin/node-names.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, durationOption, examples } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';
import { addWaitFlag, lookingOn, type WaitFlags } from './wait.ts';

const WINDOW = { desc: 'how long', defaultMs: 3_600_000, limits: { min: 1_000, max: 30 * 24 * 3_600_000 } };

export function drainCommand(shell: Shell): Command {
  const command = new Command('drain')
    .description(
      'Lets a node give its leaders away and take nothing new, until `undrain`; its replicas stay. Waits until it leads ' +
        'nothing. For a restart, `maintenance` is better: it ends by itself, and the silence counts as planned.',
    )
    .argument('<node>', 'its id or its name')
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
    .description(
      'Lets a node give its leaders away, as `drain` does, and calls its silence planned for a time: its replicas are not ' +
        'replaced meanwhile. Waits until it leads nothing: then stop it. `undrain` ends it before its time.',
    )
    .argument('<node>', 'its id or its name')
    .addOption(durationOption('--for', WINDOW))
    .addHelpText('after', examples('remora admin nodes maintenance n2 --for 30m', 'remora admin nodes undrain n2'));
  return addConnectionFlags(addWaitFlag(command), shell).action((wanted: string, flags: MaintenanceFlags) =>
    withNode(flags, wanted, async (client, node) => {
      await client.setNodeDuty(node.id, 'maintenance', flags.for);
      await untilAway(client, { node, until: leadsNothing, done: 'leads nothing, and can be stopped' }, flags, shell);
    }),
  );
}

export function undrainCommand(shell: Shell): Command {
  const command = new Command('undrain')
    .description('Lets a node take replicas and leaders again: ends drain, maintenance and decommissioning alike.')
    .argument('<node>', 'its id or its name')
    .addHelpText('after', examples('remora admin nodes undrain n2'));
  return addConnectionFlags(command, shell).action((wanted: string, flags: ConnectionFlags) =>
    withNode(flags, wanted, async (client, node) => {
      await client.setNodeDuty(node.id, 'serving');
      await printNode(client, node, 'takes replicas and leaders again', flags, shell);
    }),
  );
}

interface DestructiveFlags extends WaitFlags {
  readonly yes?: true;
}

export function decommissionCommand(shell: Shell): Command {
  const command = new Command('decommission')
    .description(
      'Empties a node for good: its replicas move to others, one by one, each with a new one in place before the old one ' +
        'goes. Waits until it has none; then it can be stopped and removed. `undrain` takes it back.',
    )
    .argument('<node>', 'its id or its name')
    .addHelpText('after', examples('remora admin nodes decommission n2', 'remora admin nodes decommission n2 --yes'));
  return addConnectionFlags(addWaitFlag(addYesFlag(command)), shell).action((wanted: string, flags: DestructiveFlags) =>
    withNode(flags, wanted, async (client, node) => {
      const { name } = node;
      await confirm(`All replicas of ${name}, ${node.replicas}, move to other nodes.`, flags.yes, shell);
      await client.setNodeDuty(node.id, 'decommissioning');
      const done = `is empty. Stop it, then: remora admin nodes remove ${name}`;
      await untilAway(client, { node, until: isEmpty, done }, flags, shell);
    }),
  );
}

export function removeCommand(shell: Shell): Command {
  const command = new Command('remove')
    .description(
      'Strikes a node off: it never comes back under this id, and replicas that it still has are replaced at once, without ' +
        'waiting for it. For nodes that are empty, or down for good. Its machine can join again, with an empty data directory.',
    )
    .argument('<node>', 'its id or its name')
    .addHelpText('after', examples('remora admin nodes remove n2', 'remora admin nodes remove n2 --yes'));
  return addConnectionFlags(addYesFlag(command), shell).action(
    (wanted: string, flags: ConnectionFlags & { readonly yes?: true }) =>
      withNode(flags, wanted, async (client, node) => {
        const left = node.replicas === 0 ? '' : ` What it has, ${counted(node.replicas, 'replica')}, is given up.`;
        await confirm(`${node.name} is removed for good.${left}`, flags.yes, shell);
        await client.setNodeDuty(node.id, 'removed');
        await printNode(client, node, 'is removed', flags, shell);
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
  if (!flags.wait) return printNode(client, node, 'gives up what it has', flags, shell);
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
