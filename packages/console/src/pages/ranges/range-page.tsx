import type { NodeJson, RangeJson, ReplicaJson } from '@remora/gateway/http/json/cluster';
import { operators, rangeAt, range as readRange, why } from '../../api/cluster.ts';
import { useCluster } from '../../app/cluster-hook.ts';
import { useResource } from '../../app/hooks.ts';
import { Badge, State } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { bytes, count, rate, span } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { endText, startText } from '../../logic/routing-key.ts';
import { NodeLink } from '../nodes/node-link.tsx';
import { OperatorTable } from '../scheduling/operator-table.tsx';
import { Reasons } from '../scheduling/reasons.tsx';
import { useRunningOperators } from '../scheduling/running.ts';
import { RangeActions } from './range-actions.tsx';

const EVERY_MS = 2_000;
const WHY_EVERY_MS = 5_000;

/** One range: its keys, its replicas, its load, and what is being changed about it. */
export function RangePage({ id }: { readonly id: number }) {
  const cluster = useCluster();
  const state = useResource(`range ${id}`, (signal) => readRange(id, signal), { everyMs: EVERY_MS });
  const running = useRunningOperators(id);
  const ended = useResource(`ended ${id}`, (signal) => operators({ ended: true, range: id }, signal), {
    everyMs: WHY_EVERY_MS,
  });
  const reasons = useResource(`why range ${id}`, (signal) => why('ranges', id, signal), { everyMs: WHY_EVERY_MS });
  const end = state.data?.end;
  const next = useResource(end === undefined || end === '-' ? undefined : `at ${end}`, (signal) =>
    rangeAt(end ?? '', signal),
  );
  const nodes = cluster.data?.nodes;
  const reload = (): void => {
    state.reload();
    running.reload();
  };
  return (
    <Page
      title={`Range ${id}`}
      trail={[{ text: 'Ranges', href: addressOf('ranges') }]}
      actions={
        state.data &&
        nodes &&
        state.error === undefined && <RangeActions range={state.data} nodes={nodes} next={next.data} done={reload} />
      }
    >
      <Loaded of={state}>
        {(range) => (
          <>
            <RangeFacts range={range} nodes={nodes} />
            <Card isFlush title={`Replicas (${count(range.replicas.length)})`}>
              <Table
                label="Replicas"
                columns={columnsOf(nodes)}
                rows={range.replicas}
                keyOf={({ id: replica }) => replica}
              />
            </Card>
          </>
        )}
      </Loaded>
      <Card isFlush title="In progress">
        <Loaded of={running} lines={2}>
          {(rows) => (
            <OperatorTable operators={rows} hasEnded={false} empty="Nothing changes this range." done={reload} />
          )}
        </Loaded>
      </Card>
      <Reasons of={reasons} title="Why the range is as it is" />
      {ended.data !== undefined && ended.data.length > 0 && (
        <Card isFlush title="What was changed before">
          <OperatorTable operators={ended.data.slice(0, 20)} hasEnded empty="" done={reload} />
        </Card>
      )}
      <Command words={['remora', 'admin', 'ranges', 'show', String(id)]} />
    </Page>
  );
}

function RangeFacts({ range, nodes }: { readonly range: RangeJson; readonly nodes: readonly NodeJson[] | undefined }) {
  const { start, end, leaderNode, epoch, state, load, revisionSource } = range;
  return (
    <Card>
      <Facts
        facts={[
          ['From', <Text key="start" value={startText(start)} />],
          ['Up to, not including', <Text key="end" value={endText(end)} />],
          [
            'Leader',
            leaderNode === 0 ? (
              <Badge key="none" tone="bad">
                none is known
              </Badge>
            ) : (
              <NodeLink key="leader" id={leaderNode} nodes={nodes} />
            ),
          ],
          ['Epoch', `${epoch.confVersion}.${epoch.version}`],
          ...(state === undefined ? [['State', 'its leader does not answer'] as const] : stateFacts(state)),
          ...(load === undefined ? [] : loadFacts(load)),
          ['Revisions are counted', revisionSource === 'range' ? 'by this range alone' : revisionSource],
        ]}
      />
    </Card>
  );
}

function stateFacts(state: NonNullable<RangeJson['state']>): readonly (readonly [string, string])[] {
  return [
    ['Keys', count(state.keys)],
    ['Size', bytes(state.bytes)],
    ['Leases', count(state.leases)],
    ['Watches', count(state.watches)],
    ['Revision', count(state.revision)],
    ['Compacted up to', count(state.compactRevision)],
    ['Term', count(state.term)],
    ['Committed, applied', `${count(state.commit)}, ${count(state.applied)}`],
  ];
}

function loadFacts(load: NonNullable<RangeJson['load']>): readonly (readonly [string, string])[] {
  return [
    ['Reads per second', `${rate(load.readsPerS)} (${bytes(load.readBytesPerS)})`],
    ['Writes per second', `${rate(load.writesPerS)} (${bytes(load.writeBytesPerS)})`],
  ];
}

function columnsOf(nodes: readonly NodeJson[] | undefined): readonly Column<ReplicaJson>[] {
  return [
    { title: 'Node', cell: ({ nodeId }) => <NodeLink id={nodeId} nodes={nodes} /> },
    { title: 'Replica', isNumber: true, isMinor: true, cell: ({ id }) => id },
    { title: 'Type', cell: ({ type }) => type },
    {
      title: 'State',
      cell: ({ state }) => (state === 'leader' ? <Badge tone="ok">leader</Badge> : <State name={state} />),
    },
    { title: 'Log behind', isNumber: true, cell: ({ logBehind }) => known(logBehind, count) },
    { title: 'Commit behind', isNumber: true, isMinor: true, cell: ({ commitBehind }) => known(commitBehind, count) },
    { title: 'Size', isNumber: true, cell: ({ bytes: size }) => known(size, bytes) },
    {
      title: 'Last report',
      isNumber: true,
      isMinor: true,
      cell: ({ silentMs }) => known(silentMs, (ms) => `${span(ms)} ago`),
    },
  ];
}

function known(value: number, text: (value: number) => string): string {
  return value < 0 ? '–' : text(value);
}
