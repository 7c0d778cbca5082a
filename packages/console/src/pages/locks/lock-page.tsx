import type { LockAnswer } from '@remora/gateway/http/json/locks';
import type { HolderJson, LockName, WaiterJson } from '../../api/locks.ts';
import { lock as readLock } from '../../api/locks.ts';
import { useResource } from '../../app/hooks.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Empty, Loaded, Note } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Countdown, Time } from '../../kit/time.tsx';
import { identityOf, isEmpty } from '../../logic/bytes.ts';
import { count, counted, span } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { LastHeartbeat } from '../sessions/heartbeat.tsx';
import { SessionLink } from '../sessions/session-link.tsx';
import { LockActions } from './lock-actions.tsx';
import { namespaceFlag } from './lock-address.ts';
import { LockEvents } from './lock-events.tsx';
import { Kind } from './lock-list.tsx';
import { SessionOwner } from './session-owner.tsx';

const EVERY_MS = 2_000;

/** One lock: who holds it and since when, who waits, and what happens to it. */
export function LockPage({ lock }: { readonly lock: LockName }) {
  const { namespace, name } = lock;
  const key = `${namespace}/${identityOf(name)}`;
  const state = useResource(key, (signal) => readLock(lock, signal), { everyMs: EVERY_MS });
  return (
    <Page
      title="Lock"
      subject={<Text value={name} max={400} />}
      subjectText={typeof name === 'string' ? name : 'binary name'}
      trail={[
        { text: 'Locks', href: addressOf('locks') },
        { text: namespace, href: addressOf('locks', { namespace }) },
      ]}
      actions={state.data && <LockActions lock={lock} state={state.data} done={state.reload} />}
    >
      <Loaded of={state}>{(answer) => <LockState state={answer} />}</Loaded>
      <LockEvents key={key} lock={lock} changed={state.reload} />
      <Command words={['remora', 'lock', 'show', name, ...namespaceFlag(namespace)]} />
    </Page>
  );
}

function LockState({ state }: { readonly state: LockAnswer }) {
  const { holders, holderCount, waiters, waiterCount, keptData, passing = 0, forced } = state;
  return (
    <>
      {forced !== undefined && (
        <Note tone="warn">
          The lock was taken from its holders by force <Time at={forced.atMs} />
          {forced.by !== '' && (
            <>
              {' '}
              by <Text value={forced.by} />
            </>
          )}
          {forced.reason !== '' && (
            <>
              : <Text value={forced.reason} />
            </>
          )}
        </Note>
      )}
      <Card>
        <Facts
          facts={[
            ['Kind', <Kind key="kind" lock={state} />],
            ['State', holderCount === 0 ? 'free' : `held by ${counted(holderCount, 'owner')}`],
            ['Waiters', count(waiterCount)],
            ...(passing > 0 ? [['Waiting at the barrier', count(passing)] as const] : []),
            ...(keptData === undefined ? [] : [['Data left behind', <Text key="kept" value={keptData} />] as const]),
          ]}
        />
      </Card>
      <Card isFlush title={`Holders (${count(holderCount)})`}>
        <Table
          label="Holders"
          columns={HOLDERS}
          rows={holders.map((holder) => ({ ...holder, readAtMs: state.nowMs }))}
          keyOf={({ session, ownerId }) => `${session} ${ownerId}`}
          empty={<Empty title="Nobody holds this lock." />}
        />
      </Card>
      <Card isFlush title={`Queue (${count(waiterCount)})`}>
        <Table
          label="Queue"
          columns={WAITERS}
          rows={waiters}
          keyOf={({ session, ownerId }) => `${session} ${ownerId}`}
          empty={<Empty title="Nobody waits." />}
        />
      </Card>
    </>
  );
}

type HolderRow = HolderJson & { readonly readAtMs: number };

const HOLDERS: readonly Column<HolderRow>[] = [
  { title: 'Session', cell: ({ session }) => <SessionLink id={session} /> },
  { title: 'Client', cell: ({ session }) => <SessionOwner id={session} /> },
  { title: 'Since', cell: ({ lockTimeMs }) => <Time at={lockTimeMs} /> },
  { title: 'Last heartbeat', isNumber: true, cell: (holder) => <Heartbeat holder={holder} /> },
  { title: 'TTL left', isNumber: true, cell: (holder) => <TtlLeft holder={holder} /> },
  { title: 'Version', isNumber: true, cell: ({ version }) => <span class="mono">{version}</span> },
  {
    title: 'Mode',
    isMinor: true,
    cell: ({ mode = '', permits, depth }) => (
      <>
        {mode}
        {permits !== undefined && ` × ${count(permits)}`}
        {depth > 1 && <span class="muted"> entered {count(depth)} times</span>}
      </>
    ),
  },
  {
    title: 'Data',
    isMinor: true,
    cell: ({ data, keepData = false }) => (
      <>
        {isEmpty(data) ? <span class="muted">–</span> : <Text value={data} max={80} />}
        {keepData && <span class="muted"> (kept)</span>}
      </>
    ),
  },
];

/** Of a hold whose session has ended, and of holders beyond the first ones, there is nothing to show. */
function Heartbeat({ holder: { ttlMs, remainingMs } }: { readonly holder: HolderRow }) {
  if (ttlMs === undefined || remainingMs === undefined) return <>–</>;
  return <LastHeartbeat ttlMs={ttlMs} remainingMs={remainingMs} />;
}

function TtlLeft({ holder }: { readonly holder: HolderRow }) {
  const { remainingMs, readAtMs, delayed = false, lockDelayMs = 0, condition } = holder;
  if (delayed) return <Badge tone="warn">ended; blocked for {span(lockDelayMs)}</Badge>;
  if (remainingMs === undefined) return <>–</>;
  return (
    <>
      <Countdown until={readAtMs + remainingMs} />
      {condition !== undefined && <span class="muted"> while its condition holds</span>}
    </>
  );
}

const WAITERS: readonly Column<WaiterJson>[] = [
  { title: '#', isNumber: true, width: 'shrink', cell: ({ position }) => count(position) },
  { title: 'Session', cell: ({ session }) => <SessionLink id={session} /> },
  { title: 'Client', cell: ({ session }) => <SessionOwner id={session} /> },
  {
    title: 'Wants',
    isMinor: true,
    cell: ({ mode, permits }) => (permits === undefined ? mode : `${mode} × ${count(permits)}`),
  },
  { title: 'Waiting since', isNumber: true, cell: ({ sinceMs }) => <Time at={sinceMs} /> },
];
