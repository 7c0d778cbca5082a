import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import type { AdminClient } from 'remora/admin';
import { NodeNames } from '../../admin/node-names.ts';
import { agoText, sizeText } from '../../format/sizes.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import {
  decommissionCommand,
  drainCommand,
  maintenanceCommand,
  removeCommand,
  undrainCommand,
} from './node-maintenance.ts';
import { addViewFlags, show, type View, type ViewFlags } from './run.ts';

export function nodesCommand(shell: Shell): Command {
  return new Command('nodes')
    .description('Shows the nodes of a cluster, and drains, decommissions or removes them.')
    .addHelpText(
      'after',
      examples('remora admin nodes', 'remora admin nodes show n2', 'remora admin nodes maintenance n2 --for 30m'),
    )
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(showCommand(shell))
    .addCommand(drainCommand(shell))
    .addCommand(undrainCommand(shell))
    .addCommand(maintenanceCommand(shell))
    .addCommand(decommissionCommand(shell))
    .addCommand(removeCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description(
      'Lists the nodes: their state, when they last reported, and what they hold. With --json, also removed ones.',
    )
    .addHelpText('after', examples('remora admin nodes', 'remora admin nodes ls --watch 5s'));
  return addViewFlags(command, shell).action((flags: ViewFlags) => show(flags, shell, nodesView));
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description('Shows the details of one node.')
    .argument('<node>', 'id or name of the node')
    .addHelpText('after', examples('remora admin nodes show n2', 'remora admin nodes show 2 --json'));
  return addViewFlags(command, shell).action((node: string, flags: ViewFlags) =>
    show(flags, shell, (client) => nodeView(client, node)),
  );
}

async function nodesView(client: AdminClient): Promise<View> {
  const answer = await client.nodes();
  // A removed node leaves the list once nothing is left on it.
  const listed = answer.nodes.filter(({ duty, replicas }) => duty !== 'removed' || replicas > 0);
  const rows = listed.map((node) => [
    node.id,
    node.name,
    node.state,
    dutyText(node),
    node.roles.join(','),
    agoText(node.silentMs),
    node.replicas,
    node.leaders,
    sizeText(node.bytes),
    diskText(node),
    labelsText(node),
    node.clientAddress,
    node.version,
  ]);
  const head = [
    'ID',
    'NAME',
    'STATE',
    'DUTY',
    'ROLES',
    'HEARD',
    'REPLICAS',
    'LEADERS',
    'BYTES',
    'DISK',
    'LABELS',
    'CLIENT',
    'VERSION',
  ];
  const names = new NodeNames(answer.nodes);
  const title = `cluster ${answer.clusterId}  master ${names.nameOf(answer.masterLeader)}, leading for ${agoText(answer.leadingMs)}`;
  return { text: `${title}\n\n${table(head, rows)}`, json: answer };
}

async function nodeView(client: AdminClient, wanted: string): Promise<View> {
  const { nodes } = await client.nodes();
  const node = new NodeNames(nodes).find(wanted);
  return { text: nodeText(node), json: node };
}

function nodeText(node: admin.Node): string {
  return table(
    ['NODE', node.name],
    [
      ['id', node.id],
      ['state', node.state],
      ['duty', dutyText(node)],
      ['labels', labelsText(node) || 'none'],
      ['disk', diskText(node)],
      ['heard', node.silentMs < 0 ? 'not heard by the current master' : `${agoText(node.silentMs)} ago`],
      ['roles', node.roles.join(',')],
      ['one of the masters', node.isMaster ? 'yes' : 'no'],
      ['client', node.clientAddress],
      ['peer', node.peerAddress],
      ['http', node.httpAddress],
      ['version', node.version],
      ['replicas', node.replicas],
      ['leaders', node.leaders],
      ['bytes', sizeText(node.bytes)],
    ],
  );
}

/** The duty of a node, and the rest of its maintenance window. */
function dutyText({ duty, maintenanceLeftMs }: admin.Node): string {
  if (duty !== 'maintenance') return duty;
  return maintenanceLeftMs > 0 ? `maintenance for ${agoText(maintenanceLeftMs)}` : 'maintenance, overdue';
}

function diskText({ capacityBytes, availableBytes }: admin.Node): string {
  return capacityBytes === 0 ? '?' : `${sizeText(availableBytes)} of ${sizeText(capacityBytes)} free`;
}

function labelsText({ labels }: admin.Node): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}
