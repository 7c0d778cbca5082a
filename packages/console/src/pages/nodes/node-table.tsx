import type { NodeJson } from '@remora/gateway/http/json/cluster';
import type { NodeNowJson } from '@remora/gateway/http/json/history';
import type { ClusterState } from '../../app/cluster-hook.ts';
import { useLive } from '../../app/live.ts';
import { Badge, State } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Since } from '../../kit/time.tsx';
import { bytes, count, latency, percent, rate } from '../../logic/format.ts';
import { dutyProgress } from '../../logic/node-duty.ts';
import { NodeLink } from './node-link.tsx';

/** Silence below this is usual: nodes report every second. */
const SILENCE_USUAL_MS = 3_000;

export function NodeTable({ cluster }: { readonly cluster: ClusterState }) {
  const { nodes } = cluster;
  const rates = useLive('now')?.nodes;
  return (
    <Table
      label="Nodes"
      columns={columnsOf(cluster, rates)}
      rows={nodes.filter(({ duty }) => duty !== 'removed')}
      keyOf={({ id }) => id}
      tone={({ state }) => (state === 'down' ? 'bad' : state === 'suspect' ? 'warn' : undefined)}
    />
  );
}

type Rates = readonly NodeNowJson[] | undefined;

function columnsOf({ nodes, masterLeader, atMs }: ClusterState, rates: Rates): readonly Column<NodeJson>[] {
  const now = (id: number): NodeNowJson | undefined => rates?.find(({ nodeId }) => nodeId === id);
  return [
    { title: 'Node', cell: ({ id }) => <NodeLink id={id} nodes={nodes} /> },
    { title: 'State', cell: (node) => <NodeState node={node} atMs={atMs} /> },
    {
      title: 'Roles',
      isMinor: true,
      cell: ({ id, isMaster, roles }) => (
        <span class="muted">
          {[...roles.filter((role) => role !== 'master'), ...(isMaster ? ['master'] : [])].join(', ')}
          {id === masterLeader && ' (leader)'}
        </span>
      ),
    },
    { title: 'Requests/s', isNumber: true, cell: ({ id }) => rate(now(id)?.requestsPerS ?? Number.NaN) },
    { title: 'p50', isNumber: true, isMinor: true, cell: ({ id }) => latency(now(id)?.p50Ms ?? Number.NaN) },
    { title: 'p99', isNumber: true, cell: ({ id }) => latency(now(id)?.p99Ms ?? Number.NaN) },
    {
      title: 'Disk sync p99',
      isNumber: true,
      isMinor: true,
      cell: ({ id }) => latency(now(id)?.fsyncP99Ms ?? Number.NaN),
    },
    { title: 'Leaders', isNumber: true, cell: ({ leaders }) => count(leaders) },
    { title: 'Replicas', isNumber: true, cell: ({ replicas }) => count(replicas) },
    { title: 'Data', isNumber: true, isMinor: true, cell: (node) => known(node, bytes(node.bytes)) },
    { title: 'Disk free', isNumber: true, cell: (node) => <DiskFree node={node} /> },
    { title: 'Release', isMinor: true, cell: ({ version }) => version },
    { title: 'Address', isMinor: true, cell: ({ clientAddress }) => <span class="mono">{clientAddress}</span> },
  ];
}

/** The present leader of the masters has not heard of the node, so what it has and does is not known. */
export function isUnheard({ silentMs }: NodeJson): boolean {
  return silentMs < 0;
}

function known(node: NodeJson, text: string): string {
  return isUnheard(node) ? '–' : text;
}

/** `atMs`: when the node was as it is given. */
export function NodeState({ node, atMs }: { readonly node: NodeJson; readonly atMs: number }) {
  const { state, duty, silentMs } = node;
  const progress = dutyProgress(node);
  return (
    <span class="row">
      <State name={state} />
      {duty !== 'serving' && <State name={duty} />}
      {progress !== undefined &&
        (progress.isDone ? <Badge tone="ok">{progress.short}</Badge> : <span class="muted">{progress.short}</span>)}
      {silentMs > SILENCE_USUAL_MS && (
        <span class="muted">
          silent for <Since at={atMs - silentMs} />
        </span>
      )}
      {isUnheard(node) && <span class="muted">no report yet</span>}
    </span>
  );
}

const LITTLE = 0.15;

function DiskFree({ node: { capacityBytes, availableBytes } }: { readonly node: NodeJson }) {
  if (capacityBytes <= 0) return <>–</>;
  const share = availableBytes / capacityBytes;
  return share < LITTLE ? <Badge tone="warn">{percent(share)}</Badge> : <span>{percent(share)}</span>;
}
