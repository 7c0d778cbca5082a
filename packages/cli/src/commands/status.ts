import { formatBytes } from '@remora/base';
import { Command } from 'commander';
import type { ClientStatus } from 'remora';
import { conditionTable } from '../format/condition-table.ts';
import { counted } from '../format/sizes.ts';
import { table } from '../format/table.ts';
import type { Shell } from '../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, withClient } from './connection.ts';

const EXAMPLES = examples('remora status', 'remora status --endpoints 10.0.0.1:7480,10.0.0.2:7480 --json');

export function statusCommand(shell: Shell): Command {
  const command = new Command('status')
    .summary('Shows the nodes and ranges of a cluster.')
    .description(
      'Shows the nodes of a cluster, its ranges and their leaders, how many log entries each replica is behind, and problems.',
    )
    .addHelpText('after', EXAMPLES);
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    withClient(flags, async (client) => {
      const status = await client.status();
      shell.out(flags.json ? JSON.stringify(status, jsonValue) : statusText(status));
    }),
  );
}

type ClusterStatus = ClientStatus;
type RangeStatus = NonNullable<ClusterStatus['range']>;

export function statusText({ view, conditions, range }: ClusterStatus): string {
  const names = new Map(view.nodes.map(({ descriptor }) => [descriptor.nodeId, descriptor.name]));
  const nameOf = (nodeId: number) => names.get(nodeId) ?? (nodeId === 0 ? 'none' : `node ${nodeId}`);
  const byId = [...view.nodes].sort((a, b) => a.descriptor.nodeId - b.descriptor.nodeId);
  const listed = byId.filter(({ state }) => state !== 'removed');
  const nodes = listed.map(({ descriptor, state }) => [
    descriptor.nodeId,
    descriptor.name,
    state,
    descriptor.roles.join(','),
    descriptor.clientAddress,
    descriptor.httpAddress,
    descriptor.version,
  ]);
  const leaders = new Map(view.leaders);
  const ranges = view.ranges.map(({ rangeId, epoch, replicas }) => [
    rangeId,
    `${epoch.confVersion}.${epoch.version}`,
    nameOf(leaders.get(rangeId) ?? 0),
    replicas.map(({ nodeId }) => nameOf(nodeId)).join(','),
  ]);
  const sections = [
    `cluster ${view.clusterId}  master ${nameOf(view.masterLeader)}`,
    table(['ID', 'NAME', 'STATE', 'ROLES', 'CLIENT', 'HTTP', 'VERSION'], nodes),
    table(['RANGE', 'EPOCH', 'LEADER', 'REPLICAS'], ranges),
  ];
  if (range !== undefined) {
    const { rangeId, keys, bytes, leases, watches, revision, term, commit, applied } = range;
    sections.push(
      `range ${rangeId}: revision ${revision}, term ${term}, commit ${commit}, applied ${applied}; ` +
        `${counted(keys, 'key')}, ${formatBytes(bytes)}, ${counted(leases, 'lease')}, ${counted(watches, 'watch', 'watches')}`,
      table(['REPLICA', 'NODE', 'STATE', 'LOG BEHIND', 'COMMIT BEHIND'], replicaRows(range, nameOf)),
    );
  }
  if (conditions.length > 0) sections.push(conditionTable(conditions));
  return sections.join('\n\n');
}

/** The number of entries that each replica is known to be behind its leader: in its log, and in what it may apply. */
function replicaRows(range: RangeStatus, nameOf: (nodeId: number) => string): (string | number)[][] {
  const leader = range.replicas.find(({ state }) => state === 'leader');
  return range.replicas.map(({ replicaId, nodeId, state, match, commit }) => {
    const known = leader !== undefined;
    const behind = known ? [Math.max(0, leader.match - match), Math.max(0, leader.commit - commit)] : ['?', '?'];
    return [replicaId, nameOf(nodeId), state, ...behind];
  });
}

/** Lease ids are bigints and keys are bytes; JSON has neither. */
function jsonValue(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  const bytes = value as { readonly type?: unknown; readonly data?: unknown } | null;
  if (bytes?.type === 'Buffer' && Array.isArray(bytes.data)) return Buffer.from(bytes.data).toString('base64');
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}
