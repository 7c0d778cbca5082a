import { useMemo, useState } from 'preact/hooks';
import { type LockJson, type LockRow, lockList, namespaces, sessionNames } from '../../api/locks.ts';
import { useResource, useSettled } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { go } from '../../app/router.ts';
import { Badge } from '../../kit/badge.tsx';
import { Choice, Search, Select } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Countdown, Since, Time } from '../../kit/time.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { count, counted } from '../../logic/format.ts';
import { type Query, textOf } from '../../logic/location.ts';
import { SessionLink } from '../sessions/session-link.tsx';
import { lockAddress } from './lock-address.ts';
import { Client } from './session-owner.tsx';

const EVERY_MS = 3_000;
const NAMES_EVERY_MS = 20_000;

/** Sessions by their ids; undefined while they are read, or if the user may not see them. */
type Names = Awaited<ReturnType<typeof sessionNames>> | undefined;

const KINDS = [
  { value: '', text: 'All' },
  { value: 'exclusive', text: 'Exclusive' },
  { value: 'shared', text: 'Shared' },
  { value: 'semaphore', text: 'Semaphores' },
  { value: 'barrier', text: 'Barriers' },
] as const;

/** Locks of a namespace. What is typed is searched by the server, over all of them. */
export function LockList({ query, namespace }: { readonly query: Query; readonly namespace: string }) {
  const [typed, setTyped] = useState(textOf(query, 'search'));
  const contains = useSettled(typed);
  const kind = textOf(query, 'kind');
  const prefix = textOf(query, 'prefix');
  const search = { namespace, prefix, contains, kind };
  const list = usePages(JSON.stringify(search), (after, signal) => lockList(search, after, signal), {
    everyMs: EVERY_MS,
  });
  const change = (next: Partial<typeof search>): void => {
    const { contains: text, ...rest } = { ...search, contains: typed, ...next };
    go('locks', { ...rest, search: text }, { replace: true });
  };
  const names = useResource('session names', sessionNames, { everyMs: NAMES_EVERY_MS }).data;
  const columns = useMemo(() => columnsOf(names), [names]);
  const isFiltered = contains !== '' || kind !== '' || prefix !== '';
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
        />
        <Choice
          label="Kind"
          value={KINDS.find(({ value }) => value === kind)?.value ?? ''}
          options={KINDS}
          change={(value) => change({ kind: value })}
        />
      </div>
      <Card isFlush>
        {list.error !== undefined && <ErrorNote error={list.error} retry={list.reload} />}
        {list.isLoaded ? (
          <Table
            label="Locks"
            columns={columns}
            rows={list.rows}
            keyOf={({ name }) => identityOf(name)}
            tone={({ waiterCount }) => (waiterCount > 0 ? 'warn' : undefined)}
            atEnd={list.hasMore ? list.more : undefined}
            empty={<NoLocks namespace={namespace} isFiltered={isFiltered} />}
          />
        ) : (
          list.error === undefined && <Loading lines={10} />
        )}
      </Card>
      <p class="muted row" role="status">
        <span>
          {counted(list.rows.length, 'lock')} {list.hasMore && 'read so far; scroll for more'}
          {list.isFull && 'shown; search names to find the others'}
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

const columnsOf = (names: Names): readonly Column<LockRow>[] => [
  {
    title: 'Lock',
    cell: ({ namespace, name }) => (
      <a href={lockAddress({ namespace, name })}>
        <Text value={name} max={120} />
      </a>
    ),
  },
  { title: 'Kind', width: 'shrink', isMinor: true, cell: (lock) => <Kind lock={lock} /> },
  { title: 'Held by', cell: (lock) => <HeldBy lock={lock} names={names} /> },
  {
    title: 'For',
    isNumber: true,
    cell: ({ holders: [first] }) => (first === undefined ? '–' : <Since at={first.lockTimeMs} />),
  },
  {
    title: 'TTL left',
    isNumber: true,
    isMinor: true,
    cell: ({ holders: [first], readAtMs }) =>
      first?.remainingMs === undefined ? '–' : <Countdown until={readAtMs + first.remainingMs} />,
  },
  { title: 'Waiters', isNumber: true, cell: ({ waiterCount, passing = 0 }) => count(waiterCount + passing) },
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

function HeldBy({ lock: { holders, holderCount }, names }: { readonly lock: LockJson; readonly names: Names }) {
  const [first] = holders;
  if (first === undefined) return <span class="muted">free</span>;
  const known = names?.get(first.session);
  return (
    <span class="parts">
      {known !== undefined && <Client attributes={known.attributes} owner={known.owner} />}
      <SessionLink id={first.session} />
      {holderCount > 1 && <span class="muted">and {count(holderCount - 1)} more</span>}
    </span>
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
