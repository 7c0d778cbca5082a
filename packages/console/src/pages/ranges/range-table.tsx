import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { nodeName } from '../../app/cluster-hook.ts';
import { Badge } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { bytes, count, rate } from '../../logic/format.ts';
import { endText, startText } from '../../logic/routing-key.ts';
import { NodeLink, RangeLink } from '../nodes/node-link.tsx';
import type { RangeRow } from './range-row.ts';

interface RangeTableProps {
  readonly ranges: readonly RangeRow[];
  readonly nodes: readonly NodeJson[] | undefined;
}

export function RangeTable({ ranges, nodes }: RangeTableProps) {
  return (
    <Table
      label="Ranges"
      columns={columnsOf(nodes)}
      rows={ranges}
      keyOf={({ id }) => id}
      tone={(range) => (range.leaderNode === 0 ? 'bad' : (range.behind ?? 0) > 0 ? 'warn' : undefined)}
    />
  );
}

function columnsOf(nodes: readonly NodeJson[] | undefined): readonly Column<RangeRow>[] {
  return [
    { title: 'Range', width: 'shrink', cell: ({ id }) => <RangeLink id={id} /> },
    { title: 'From', cell: ({ start }) => <Text value={startText(start)} max={80} /> },
    { title: 'To', isMinor: true, cell: ({ end }) => <Text value={endText(end)} max={80} /> },
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
          {replicas
            .map(({ nodeId, type }) => `${nodeName(nodes, nodeId)}${type === 'learner' ? ' (learner)' : ''}`)
            .join(', ')}
        </span>
      ),
    },
    {
      title: 'Keys',
      isNumber: true,
      isMinor: true,
      cell: ({ keys }) => (keys === undefined ? '–' : count(keys)),
    },
    { title: 'Size', isNumber: true, cell: ({ bytes: size }) => (size === undefined ? '–' : bytes(size)) },
    { title: 'Reads/s', isNumber: true, cell: ({ load }) => (load === undefined ? '–' : rate(load.readsPerS)) },
    { title: 'Writes/s', isNumber: true, cell: ({ load }) => (load === undefined ? '–' : rate(load.writesPerS)) },
  ];
}
