import type { HeatMeasure } from '@remora/gateway/http/json/history';
import { useState } from 'preact/hooks';
import { busierMeasure, heat } from '../../api/cluster.ts';
import { useCluster } from '../../app/cluster-hook.ts';
import { useResource } from '../../app/hooks.ts';
import { go } from '../../app/router.ts';
import { Command } from '../../kit/command.tsx';
import { Choice } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, Loaded, Loading } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import type { Cell } from '../../logic/heat.ts';
import { numberOf, type Query, textOf } from '../../logic/location.ts';
import { spanText } from '../../logic/routing-key.ts';
import { RecordedSince } from '../overview/recorded-since.tsx';
import type { PageProps } from '../page-props.ts';
import { HeatMap } from './heat-map.tsx';
import { HottestTable } from './hottest-table.tsx';
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
  const named = measureOf(query);
  const busier = useResource(named === undefined ? 'busier' : undefined, busierMeasure);
  // Without an answer, the page of the error shows why.
  const what = named ?? busier.data ?? (busier.error === undefined ? undefined : 'reads');
  return what === undefined ? <Waiting /> : <HeatOf query={query} what={what} />;
}

function Waiting() {
  return (
    <Page title="Key heat">
      <Loading lines={12} />
    </Page>
  );
}

function HeatOf({ query, what }: PageProps & { readonly what: HeatMeasure }) {
  const asked = askedOf(query, what);
  const cluster = useCluster();
  const { minutes, start, end } = asked;
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
            <Text value={spanText(start, end)} max={120} />
          </span>
        )}
      </div>
      <Card>
        <Loaded of={state} lines={12}>
          {(matrix) =>
            matrix.times.length === 0 ? (
              <Empty title="No minute is recorded yet.">
                <p>
                  <RecordedSince cluster={cluster.data} /> The first minute appears when it is over. The leader keeps
                  six hours.
                </p>
              </Empty>
            ) : (
              <HeatMap
                matrix={matrix}
                selected={selected}
                select={setSelected}
                zoom={(from, to) => change({ start: from, end: to })}
              />
            )
          }
        </Loaded>
      </Card>
      {selected !== undefined && state.data !== undefined && (
        <SelectedCell
          cell={selected}
          matrix={state.data}
          zoom={() => change({ start: selected.from, end: selected.to })}
        />
      )}
      {state.data !== undefined && state.data.times.length > 0 && <HottestTable matrix={state.data} />}
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

/** Undefined: the address names none. */
function measureOf(query: Query): HeatMeasure | undefined {
  return MEASURES.find(({ value }) => value === textOf(query, 'what'))?.value;
}

function askedOf(query: Query, what: HeatMeasure) {
  const minutes = Math.min(360, Math.max(1, numberOf(query, 'minutes') ?? 120));
  return { what, minutes, start: textOf(query, 'start'), end: textOf(query, 'end') };
}
