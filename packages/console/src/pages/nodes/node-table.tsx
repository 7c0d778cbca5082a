import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { Badge, State } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { bytes, count, percent, span } from '../../logic/format.ts';
import { NodeLink } from './node-link.tsx';

/** Silence below this is usual: nodes report every second. */
const SILENCE_USUAL_MS = 3_000;

interface NodeTableProps {
  readonly nodes: readonly NodeJson[];
  readonly masterLeader: number | undefined;
}

export function NodeTable({ nodes, masterLeader }: NodeTableProps) {
  return (
    <Table
      label="Nodes"
      columns={columnsOf(nodes, masterLeader)}
      rows={nodes.filter(({ duty }) => duty !== 'removed')}
      keyOf={({ id }) => id}
      tone={({ state }) => (state === 'down' ? 'bad' : state === 'suspect' ? 'warn' : undefined)}
    />
  );
}

function columnsOf(nodes: readonly NodeJson[], masterLeader: number | undefined): readonly Column<NodeJson>[] {
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
