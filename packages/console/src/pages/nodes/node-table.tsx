import type { NodeJson } from '@remora/gateway/http/json/cluster';
import type { NodeNowJson } from '@remora/gateway/http/json/history';
import { useLive } from '../../app/live.ts';
import { Badge, State } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { bytes, count, latency, percent, rate, span } from '../../logic/format.ts';
import { NodeLink } from './node-link.tsx';

/** Silence below this is usual: nodes report every second. */
const SILENCE_USUAL_MS = 3_000;

interface NodeTableProps {
  readonly nodes: readonly NodeJson[];
  readonly masterLeader: number | undefined;
}

export function NodeTable({ nodes, masterLeader }: NodeTableProps) {
  const rates = useLive('now')?.nodes;
  return (
    <Table
      label="Nodes"
      columns={columnsOf(nodes, masterLeader, rates)}
      rows={nodes.filter(({ duty }) => duty !== 'removed')}
      keyOf={({ id }) => id}
      tone={({ state }) => (state === 'down' ? 'bad' : state === 'suspect' ? 'warn' : undefined)}
    />
  );
}

type Rates = readonly NodeNowJson[] | undefined;

function columnsOf(
  nodes: readonly NodeJson[],
  masterLeader: number | undefined,
  rates: Rates,
): readonly Column<NodeJson>[] {
  const now = (id: number): NodeNowJson | undefined => rates?.find(({ nodeId }) => nodeId === id);
  return [
    { title: 'Node', cell: ({ id }) => <NodeLink id={id} nodes={nodes} /> },
    { title: 'State', cell: (node) => <NodeState node={node} /> },
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
    { title: 'Data', isNumber: true, isMinor: true, cell: (node) => bytes(node.bytes) },
    { title: 'Disk free', isNumber: true, cell: (node) => <DiskFree node={node} /> },
    { title: 'Release', isMinor: true, cell: ({ version }) => version },
    { title: 'Address', isMinor: true, cell: ({ clientAddress }) => <span class="mono">{clientAddress}</span> },
  ];
}

export function NodeState({ node }: { readonly node: NodeJson }) {
  const { state, duty, silentMs } = node;
  return (
    <span class="row">
      <State name={state} />
      {duty !== 'serving' && <State name={duty} />}
      {silentMs > SILENCE_USUAL_MS && <span class="muted">silent for {span(silentMs)}</span>}
      {silentMs < 0 && <span class="muted">not heard of</span>}
    </span>
  );
}

const LITTLE = 0.15;

function DiskFree({ node: { capacityBytes, availableBytes } }: { readonly node: NodeJson }) {
  if (capacityBytes <= 0) return <>–</>;
  const share = availableBytes / capacityBytes;
  return share < LITTLE ? <Badge tone="warn">{percent(share)}</Badge> : <span>{percent(share)}</span>;
}
