import type { NodeJson, RangeJson } from '../../api/cluster-types.ts';
import { nodeName } from '../../app/cluster-hook.ts';
import { Badge } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { bytes, count, rate } from '../../logic/format.ts';
import { NodeLink, RangeLink } from '../nodes/node-link.tsx';
import { lagOf } from './lag.ts';

interface RangeTableProps {
  readonly ranges: readonly RangeJson[];
  readonly nodes: readonly NodeJson[] | undefined;
}

export function RangeTable({ ranges, nodes }: RangeTableProps) {
  return (
    <Table
      label="Ranges"
      columns={columnsOf(nodes)}
      rows={ranges}
      keyOf={({ id }) => id}
      tone={(range) => (range.leaderNode === 0 ? 'bad' : lagOf(range) > 0 ? 'warn' : undefined)}
    />
  );
}

function columnsOf(nodes: readonly NodeJson[] | undefined): readonly Column<RangeJson>[] {
  return [
    { title: 'Range', width: 'shrink', cell: ({ id }) => <RangeLink id={id} /> },
    { title: 'From', cell: ({ start }) => <Text value={start} max={80} /> },
    { title: 'To', isMinor: true, cell: ({ end }) => <Text value={end} max={80} /> },
    {
      title: 'Leader',
      cell: ({ leaderNode }) =>
        leaderNode === 0 ? <Badge tone="bad">none</Badge> : <NodeLink id={leaderNode} nodes={nodes} />,
    },
    {
      title: 'Replicas',
      isMinor: true,
      cell: ({ replicas }) => (
        <span class="muted">
          {replicas.map(({ nodeId, type }) => `${nodeName(nodes, nodeId)}${type === 'learner' ? ' (learner)' : ''}`).join(', ')}
        </span>
      ),
    },
    { title: 'Keys', isNumber: true, isMinor: true, cell: ({ state }) => (state === undefined ? '–' : count(state.keys)) },
    { title: 'Size', isNumber: true, cell: ({ state }) => (state === undefined ? '–' : bytes(state.bytes)) },
    { title: 'Reads/s', isNumber: true, cell: ({ load }) => (load === undefined ? '–' : rate(load.readsPerS)) },
    { title: 'Writes/s', isNumber: true, cell: ({ load }) => (load === undefined ? '–' : rate(load.writesPerS)) },
  ];
}
