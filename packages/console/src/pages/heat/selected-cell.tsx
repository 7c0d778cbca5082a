import type { HeatJson } from '@remora/gateway/http/json/history';
import { rangeAt } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { Card, Facts } from '../../kit/page.tsx';
import { absolute } from '../../logic/format.ts';
import type { Cell } from '../../logic/heat.ts';
import { RangeLink } from '../nodes/node-link.tsx';
import { amountText } from './heat-map.tsx';
import { SpanLink } from './place-link.tsx';

interface SelectedCellProps {
  readonly cell: Cell;
  readonly matrix: HeatJson;
  zoom(): void;
}

/** The keys of a selected place, and the range that has them now. */
export function SelectedCell({ cell, matrix, zoom }: SelectedCellProps) {
  const { from, to, time, value } = cell;
  const range = useResource(`at ${from}`, (signal) => rangeAt(from, signal));
  return (
    <Card
      title="Selected keys"
      aside={
        <button type="button" class="button button-small" onClick={zoom}>
          Show them closer
        </button>
      }
    >
      <Facts
        facts={[
          ['Keys', <SpanLink key="keys" from={from} to={to} />],
          ['Minute', absolute(time)],
          ['Load', amountText(matrix, value)],
          ['Range', range.data === undefined ? '…' : <RangeLink key="range" id={range.data.id} />],
        ]}
      />
    </Card>
  );
}
