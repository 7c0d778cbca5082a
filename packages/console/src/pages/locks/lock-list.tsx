import type { SessionInfoJson } from '@remora/gateway/http/json/locks';
import { useMemo, useState } from 'preact/hooks';
import {
  type KnownSessions,
  knownSessions,
  type LockJson,
  lockList,
  namespaces,
  sessionInfo,
} from '../../api/locks.ts';
import { useResource, useSettled } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { go } from '../../app/router.ts';
import { Badge } from '../../kit/badge.tsx';
import { Choice, Search, Select } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Since, Span, Time } from '../../kit/time.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { count, counted } from '../../logic/format.ts';
import { type Query, textOf } from '../../logic/location.ts';
import { foundBy, longestQueueFirst, queueLength } from '../../logic/lock-order.ts';
import { isSilent } from '../../logic/session-text.ts';
import { Silent } from '../sessions/heartbeat.tsx';
import { SessionLink } from '../sessions/session-link.tsx';
import { lockAddress } from './lock-address.ts';
import { Client } from './session-owner.tsx';

const EVERY_MS = 3_000;
const SESSIONS_EVERY_MS = 5_000;

/** Undefined while they are read, or if the user may not see them. */
type Sessions = KnownSessions | undefined;

const KINDS = [
  { value: '', text: 'All' },
  { value: 'exclusive', text: 'Exclusive' },
  { value: 'shared', text: 'Shared' },
  { value: 'semaphore', text: 'Semaphores' },
  { value: 'barrier', text: 'Barriers' },
] as const;

const QUEUES = [
  { value: '', text: 'Any queue' },
  { value: 'true', text: 'With waiters' },
] as const;

/** Locks of a namespace. What is typed is searched by the server, over all of them. */
export function LockList({ query, namespace }: { readonly query: Query; readonly namespace: string }) {
  const [typed, setTyped] = useState(textOf(query, 'search'));
  const contains = useSettled(typed);
  const kind = textOf(query, 'kind');
  const prefix = textOf(query, 'prefix');
  const waiting = textOf(query, 'waiting') === 'true' ? 'true' : '';
  const search = { namespace, prefix, contains, kind, waiting };
  const list = usePages(JSON.stringify(search), (after, signal) => lockList(search, after, signal), {
    everyMs: EVERY_MS,
  });
  const change = (next: Partial<typeof search>): void => {
    const { contains: text, ...rest } = { ...search, contains: typed, ...next };
    go('locks', { ...rest, search: text }, { replace: true });
  };
  const sessions = useResource('sessions', knownSessions, { everyMs: SESSIONS_EVERY_MS }).data;
  const columns = useMemo(() => columnsOf(sessions), [sessions]);
  const rows = useMemo(() => (waiting === '' ? list.rows : longestQueueFirst(list.rows)), [waiting, list.rows]);
  const isFiltered = contains !== '' || kind !== '' || prefix !== '' || waiting !== '';
  return (
    <Page title="Locks">
      <div class="row">
        <Namespaces namespace={namespace} change={(value) => go('locks', { namespace: value })} />
        <Search
          label="Search locks"
          placeholder="Search names …"
          value={typed}
          change={(value) => {
            setTyped(value);
            change({ contains: value });
          }}
          submit={() => {
            const found = foundBy(typed, rows);
            if (found !== undefined) go('locks', { namespace, name: found.name });
          }}
        />
        <Choice
          label="Kind"
          value={KINDS.find(({ value }) => value === kind)?.value ?? ''}
          options={KINDS}
          change={(value) => change({ kind: value })}
        />
        <Choice label="Queue" value={waiting} options={QUEUES} change={(value) => change({ waiting: value })} />
      </div>
      <Card isFlush>
        {list.error !== undefined && <ErrorNote error={list.error} retry={list.reload} />}
        {list.isLoaded ? (
          <Table
            label="Locks"
            columns={columns}
            rows={rows}
            keyOf={({ name }) => identityOf(name)}
            tone={(lock) => toneOf(lock, sessions)}
            atEnd={list.hasMore ? list.more : undefined}
            empty={<NoLocks namespace={namespace} isFiltered={isFiltered} />}
          />
        ) : (
          list.error === undefined && <Loading lines={10} />
        )}
      </Card>
      <p class="muted row" role="status">
        <span>
          {counted(rows.length, 'lock')}
          {waiting !== '' && ' with waiters, the longest queue first'}
          {list.hasMore && ' (read so far; scroll for more)'}
          {list.isFull && ' (more are not shown; search names to find them)'}
        </span>
        {list.hasMore && (
          <button type="button" class="button button-small" onClick={list.more} disabled={list.isLoading}>
            {list.isLoading ? 'Reading …' : 'Read more'}
          </button>
        )}
      </p>
    </Page>
  );
}

/** A queue behind a silent holder is worse than a queue. */
function toneOf(lock: LockJson, sessions: Sessions): 'bad' | 'warn' | undefined {
  if (queueLength(lock) === 0) return undefined;
  const holder = sessions?.byId.get(lock.holders[0]?.session ?? '');
  return holder !== undefined && isSilent(holder) ? 'bad' : 'warn';
}

const columnsOf = (sessions: Sessions): readonly Column<LockJson>[] => [
  {
    title: 'Lock',
    cell: ({ namespace, name }) => (
      <a href={lockAddress({ namespace, name })}>
        <Text value={name} max={120} />
      </a>
    ),
  },
  { title: 'Kind', width: 'shrink', isMinor: true, cell: (lock) => <Kind lock={lock} /> },
  { title: 'Held by', cell: (lock) => <HeldBy lock={lock} sessions={sessions} /> },
  {
    title: 'For',
    isNumber: true,
    cell: ({ holders: [first] }) => (first === undefined ? '–' : <Since at={first.lockTimeMs} />),
  },
  {
    title: 'TTL left',
    isNumber: true,
    isMinor: true,
    cell: ({ holders: [first] }) => (first === undefined ? '–' : <TtlLeft id={first.session} sessions={sessions} />),
  },
  { title: 'Waiters', isNumber: true, cell: (lock) => count(queueLength(lock)) },
];

export function Kind({ lock }: { readonly lock: LockJson }) {
  const { kind, permits = 0, capacity = 0, forced } = lock;
  return (
    <>
      <Badge>{kind}</Badge>
      {kind === 'semaphore' && (
        <span class="muted">
          {' '}
          {count(permits)} / {count(capacity)}
        </span>
      )}
      {forced !== undefined && (
        <>
          {' '}
          <span class="muted">
            forced <Time at={forced.atMs} />
          </span>
        </>
      )}
    </>
  );
}

interface HeldByProps {
  readonly lock: LockJson;
  readonly sessions: Sessions;
}

function HeldBy({ lock: { holders, holderCount }, sessions }: HeldByProps) {
  const [first] = holders;
  if (first === undefined) return <span class="muted">free</span>;
  const known = sessions?.byId.get(first.session);
  return (
    <span class="parts">
      {known !== undefined && <Client attributes={known.attributes} owner={known.owner} />}
      <SessionLink id={first.session} />
      {holderCount > 1 && <span class="muted whole">and {count(holderCount - 1)} more</span>}
    </span>
  );
}

interface TtlLeftProps {
  readonly id: string;
  readonly sessions: Sessions;
}

/** What was left of the TTL when the session was read. It does not count down, because heartbeats renew it. */
function TtlLeft({ id, sessions }: TtlLeftProps) {
  if (sessions === undefined) return <>–</>;
  const known = sessions.byId.get(id);
  if (known !== undefined) return <Ttl session={known} />;
  return sessions.isWhole ? <>–</> : <TtlOfOther id={id} />;
}

/** Of a session that is not among those known; only rows in sight ask for it. */
function TtlOfOther({ id }: { readonly id: string }) {
  const { data } = useResource(id, (signal) => sessionInfo(id, signal), { everyMs: SESSIONS_EVERY_MS });
  return data === undefined ? <>–</> : <Ttl session={data} />;
}

function Ttl({ session }: { readonly session: SessionInfoJson }) {
  return (
    <>
      <Silent {...session} /> <Span ms={session.remainingMs} />
    </>
  );
}

function NoLocks({ namespace, isFiltered }: { readonly namespace: string; readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No lock matches." />;
  return (
    <Empty title={`Nobody holds a lock in namespace ${namespace}.`}>
      <p>
        To take one: <code>remora lock run my-lock -- sleep 60</code>
      </p>
    </Empty>
  );
}

function Namespaces({ namespace, change }: { readonly namespace: string; change(value: string): void }) {
  const known = useResource('namespaces', namespaces, { everyMs: 10_000 });
  const names = [...new Set([namespace, 'default', ...(known.data ?? [])])].sort();
  return (
    <Select
      label="Namespace"
      isBare
      value={namespace}
      options={names.map((name) => ({ value: name, text: name }))}
      change={change}
    />
  );
}
