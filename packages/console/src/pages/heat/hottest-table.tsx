import type { HeatJson } from '@remora/gateway/http/json/history';
import { Card } from '../../kit/page.tsx';
import { Empty } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { bytes, rate } from '../../logic/format.ts';
import { type HotSpan, hottest } from '../../logic/heat.ts';
import { SpanLink } from './place-link.tsx';

const MINUTES = 5;
const ROWS = 12;

/** The same as the map in words: which keys are hot now. */
export function HottestTable({ matrix }: { readonly matrix: HeatJson }) {
  const isBytes = matrix.what === 'readBytes' || matrix.what === 'writeBytes';
  const columns: readonly Column<HotSpan>[] = [
    { title: 'Key, lock or session', cell: ({ from, to }) => <SpanLink from={from} to={to} /> },
    {
      title: isBytes ? 'Bytes per second' : 'Requests per second',
      isNumber: true,
      cell: ({ perS }) => (isBytes ? bytes(perS) : rate(perS)),
    },
  ];
  return (
    <Card isFlush title="The hottest keys" aside={`the last ${MINUTES} minutes`}>
      <Table
        label="The hottest keys"
        columns={columns}
        rows={hottest(matrix, MINUTES, ROWS)}
        keyOf={({ from }) => from}
        empty={<Empty title="There was no such load." />}
      />
    </Card>
  );
}
