import { formatBytes } from '@remora/base';
import { Command } from 'commander';
import type { RemoraClient } from 'remora';
import { table } from '../format/table.ts';
import type { Shell } from '../shell.ts';
import { addConnectionFlags, type ConnectionFlags, withClient } from './connection.ts';

const EXAMPLES = `
Examples:
  $ remora status
  $ remora status --endpoints 10.0.0.1:7480,10.0.0.2:7480 --json`;

export function statusCommand(shell: Shell): Command {
  const command = new Command('status')
    .summary('show the nodes and ranges of a cluster')
    .description('Shows the nodes of a cluster, its ranges and who leads them.')
    .addHelpText('after', EXAMPLES);
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    withClient(flags, async (client) => {
      const status = await client.status();
      shell.out(flags.json ? JSON.stringify(status, jsonValue) : statusText(status));
    }),
  );
}

type ClusterStatus = Awaited<ReturnType<RemoraClient['status']>>;

export function statusText({ view, range }: ClusterStatus): string {
  const names = new Map(view.nodes.map(({ descriptor }) => [descriptor.nodeId, descriptor.name]));
  const nameOf = (nodeId: number) => names.get(nodeId) ?? (nodeId === 0 ? 'none' : `node ${nodeId}`);
  const nodes = view.nodes.map(({ descriptor, state }) => [
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
    const { keys, bytes, leases, watches, revision, term } = range;
    sections.push(
      `range ${range.rangeId}: ${keys} keys, ${formatBytes(bytes)}, ${leases} leases, ${watches} watches, revision ${revision}, term ${term}`,
    );
  }
  return sections.join('\n\n');
}

/** Lease ids are bigints and keys are bytes, neither of which JSON knows. */
function jsonValue(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  const bytes = value as { readonly type?: unknown; readonly data?: unknown } | null;
  if (bytes?.type === 'Buffer' && Array.isArray(bytes.data)) return Buffer.from(bytes.data).toString('base64');
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}
