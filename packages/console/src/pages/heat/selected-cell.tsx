import type { HeatMeasure } from '@remora/gateway/http/json/history';
import { rangeAt } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { Card, Facts } from '../../kit/page.tsx';
import { Text } from '../../kit/text.tsx';
import { absolute, bytes, count } from '../../logic/format.ts';
import { RangeLink } from '../nodes/node-link.tsx';
import type { Cell } from './heat-map.tsx';

interface SelectedCellProps {
  readonly cell: Cell;
  readonly what: HeatMeasure;
  zoom(): void;
}

/** The keys of a selected place, and the range that has them now. */
export function SelectedCell({ cell, what, zoom }: SelectedCellProps) {
  const { from, to, time, value } = cell;
  const range = useResource(`at ${from}`, (signal) => rangeAt(from, signal));
  const isBytes = what === 'readBytes' || what === 'writeBytes';
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
          ['From', <Text key="from" value={from} />],
          ['To, exclusively', <Text key="to" value={to} />],
          ['Minute', absolute(time)],
          [isBytes ? 'Bytes in this minute' : 'Requests in this minute', isBytes ? bytes(value) : count(value)],
          ['Range', range.data === undefined ? '…' : <RangeLink key="range" id={range.data.id} />],
        ]}
      />
    </Card>
  );
}
