import { useState } from 'preact/hooks';
import { hotRanges, RANGES_MAX, rangeAt, ranges } from '../../api/cluster.ts';
import { messageOf } from '../../api/errors.ts';
import { useCluster } from '../../app/cluster-hook.ts';
import { useResource } from '../../app/hooks.ts';
import { useLiveResource } from '../../app/live.ts';
import { go } from '../../app/router.ts';
import { Command } from '../../kit/command.tsx';
import { Choice, Search } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Loaded, Loading } from '../../kit/states.tsx';
import { announce } from '../../kit/toast.tsx';
import { counted } from '../../logic/format.ts';
import { numberOf, textOf } from '../../logic/location.ts';
import { routingKey } from '../../logic/routing-key.ts';
import type { PageProps } from '../page-props.ts';
import { Band } from './band.tsx';
import { RangePage } from './range-page.tsx';
import { type RangeRow, rangeRow } from './range-row.ts';
import { RangeTable } from './range-table.tsx';

const EVERY_MS = 5_000;

const ORDERS = [
  { value: 'keys', text: 'By key' },
  { value: 'hot', text: 'Hottest' },
] as const;

export function RangesPage({ query }: PageProps) {
  const id = numberOf(query, 'range');
  return id === undefined ? <RangeList isHot={textOf(query, 'order') === 'hot'} /> : <RangePage id={id} />;
}

/** The key space: which range has which keys, and which nodes have the range. */
function RangeList({ isHot }: { readonly isHot: boolean }) {
  const cluster = useCluster();
  const all = useLiveResource('ranges', {
    of: (rows): readonly RangeRow[] => rows,
    key: 'ranges',
    load: async (signal) => (await ranges(signal)).map(rangeRow),
    everyMs: EVERY_MS,
  });
  const hot = useResource(
    isHot ? 'hot' : undefined,
    async (signal) => (await hotRanges('requests', signal)).map(rangeRow),
    { everyMs: EVERY_MS },
  );
  const nodes = cluster.data?.nodes;
  // The table moves when the band above it appears, so it waits for the band.
  const isBandShown = all.data !== undefined || all.error !== undefined;
  return (
    <Page title="Ranges">
      <div class="row">
        <FindKey />
        <Choice
          label="Order"
          value={isHot ? 'hot' : 'keys'}
          options={ORDERS}
          change={(order) => go('ranges', order === 'hot' ? { order } : {}, { replace: true })}
        />
      </div>
      <Card title="Key space" aside="from the first key to the last, a column a range">
        <Loaded of={all} lines={3}>
          {(rows) =>
            nodes === undefined && cluster.error === undefined ? (
              <Loading lines={3} />
            ) : (
              <Band ranges={rows} nodes={nodes ?? []} />
            )
          }
        </Loaded>
      </Card>
      <Card isFlush>
        <Loaded of={isHot && isBandShown ? hot : all}>{(rows) => <RangeTable ranges={rows} nodes={nodes} />}</Loaded>
      </Card>
      {all.data !== undefined && (
        <p class="muted" role="status">
          {counted(all.data.length, 'range')}
          {all.data.length >= RANGES_MAX && ' shown; search a key to find the others'}
        </p>
      )}
      <Command words={['remora', 'admin', isHot ? 'hot' : 'ranges']} />
    </Page>
  );
}

/** Goes to the range that has a key. */
function FindKey() {
  const [typed, setTyped] = useState('');
  const find = async (): Promise<void> => {
    try {
      const found = await rangeAt(routingKey(typed), new AbortController().signal);
      if (found === undefined) announce('No range has this key.', 'warn');
      else go('ranges', { range: found.id });
    } catch (error) {
      announce(messageOf(error), 'warn');
    }
  };
  return (
    <form
      class="search-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== '') void find();
      }}
    >
      <Search label="Find the range of a key" placeholder="Range of key … (Enter)" value={typed} change={setTyped} />
    </form>
  );
}
