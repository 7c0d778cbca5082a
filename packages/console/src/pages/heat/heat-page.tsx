import type { HeatMeasure } from '@remora/gateway/http/json/history';
import { useState } from 'preact/hooks';
import { heat } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { go } from '../../app/router.ts';
import { Command } from '../../kit/command.tsx';
import { Choice } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, Loaded } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { numberOf, type Query, textOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { type Cell, HeatMap } from './heat-map.tsx';
import { SelectedCell } from './selected-cell.tsx';

/** The cluster counts in minutes. */
const EVERY_MS = 20_000;

const MEASURES = [
  { value: 'reads', text: 'Reads' },
  { value: 'writes', text: 'Writes' },
  { value: 'readBytes', text: 'Bytes read' },
  { value: 'writeBytes', text: 'Bytes written' },
] as const;

const SPANS = [
  { value: '30', text: '30 min' },
  { value: '120', text: '2 h' },
  { value: '360', text: '6 h' },
] as const;

/** The key visualizer: which keys were used when. */
export function HeatPage({ query }: PageProps) {
  const asked = askedOf(query);
  const { what, minutes, start, end } = asked;
  const state = useResource(JSON.stringify(asked), (signal) => heat(asked, signal), { everyMs: EVERY_MS });
  const [selected, setSelected] = useState<Cell>();
  const change = (next: Partial<typeof asked>): void => {
    setSelected(undefined);
    go('heat', { ...asked, ...next });
  };
  const isZoomed = start !== '' || end !== '';
  return (
    <Page title="Key heat">
      <div class="row">
        <Choice label="Measure" value={what} options={MEASURES} change={(value) => change({ what: value })} />
        <Choice
          label="Time"
          value={SPANS.find(({ value }) => value === String(minutes))?.value ?? '120'}
          options={SPANS}
          change={(value) => change({ minutes: Number(value) })}
        />
        {isZoomed && (
          <button type="button" class="button" onClick={() => change({ start: '', end: '' })}>
            Show all keys
          </button>
        )}
        {isZoomed && (
          <span class="muted">
            <Text value={start || '-'} max={60} /> to <Text value={end || '-'} max={60} />
          </span>
        )}
      </div>
      <Card>
        <Loaded of={state} lines={12}>
          {(matrix) =>
            matrix.times.length === 0 ? (
              <Empty title="Nothing is recorded yet.">
                <p>The first minute appears when it is over. The leader of the masters keeps six hours.</p>
              </Empty>
            ) : (
              <HeatMap matrix={matrix} select={setSelected} zoom={(from, to) => change({ start: from, end: to })} />
            )
          }
        </Loaded>
      </Card>
      {selected !== undefined && (
        <SelectedCell cell={selected} what={what} zoom={() => change({ start: selected.from, end: selected.to })} />
      )}
      <Command words={['remora', 'admin', 'hot', '--by', BY[what]]} label="The hottest ranges on the command line" />
    </Page>
  );
}

const BY: Readonly<Record<HeatMeasure, string>> = {
  reads: 'reads',
  writes: 'writes',
  readBytes: 'read_bytes',
  writeBytes: 'write_bytes',
};

function askedOf(query: Query) {
  const what = MEASURES.find(({ value }) => value === textOf(query, 'what'))?.value ?? 'reads';
  const minutes = Math.min(360, Math.max(1, numberOf(query, 'minutes') ?? 120));
  return { what, minutes, start: textOf(query, 'start'), end: textOf(query, 'end') };
}
