import type { SessionInfoJson } from '@remora/gateway/http/json/locks';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { sessionList, sessionLocks } from '../../api/locks.ts';
import { useResource, useSettled } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { go } from '../../app/router.ts';
import { Search } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Span } from '../../kit/time.tsx';
import { counted } from '../../logic/format.ts';
import { type Query, textOf } from '../../logic/location.ts';
import { isSilent } from '../../logic/session-text.ts';
import { Client } from '../locks/session-owner.tsx';
import { LastHeartbeat } from './heartbeat.tsx';
import { SessionLink } from './session-link.tsx';

const EVERY_MS = 5_000;
const LOCKS_EVERY_MS = 15_000;
/** Of how many silent sessions the locks are counted. It takes a query of each range, and an outage silences many. */
const COUNTED_MAX = 5;

/** Sessions, and the leases of etcd's clients. */
export function SessionList({ query }: { readonly query: Query }) {
  const [typed, setTyped] = useState(textOf(query, 'search'));
  const wanted = useSettled(typed).toLowerCase();
  const list = usePages('sessions', (after, signal) => sessionList(undefined, after, signal), { everyMs: EVERY_MS });
  // What is searched may be in a part that has not been read.
  const { more } = list;
  useEffect(() => {
    if (wanted !== '' && list.hasMore && !list.isLoading) more();
  }, [wanted, list.hasMore, list.isLoading, more]);
  const rows = wanted === '' ? list.rows : list.rows.filter((row) => textOfSession(row).includes(wanted));
  const silent = list.rows.filter(isSilent).slice(0, COUNTED_MAX);
  const countedIds = silent.map(({ session }) => session).join();
  const columns = useMemo(() => columnsOf(new Set(countedIds.split(','))), [countedIds]);
  return (
    <Page title="Sessions">
      <div class="row">
        <Search
          label="Search sessions"
          placeholder="Search host, process, user, id …"
          value={typed}
          change={(value) => {
            setTyped(value);
            go('sessions', { search: value }, { replace: true });
          }}
        />
      </div>
      <Card isFlush>
        {list.error !== undefined && <ErrorNote error={list.error} retry={list.reload} />}
        {list.isLoaded ? (
          <Table
            label="Sessions"
            columns={columns}
            rows={rows}
            keyOf={({ session }) => session}
            tone={(session) => (isSilent(session) ? 'warn' : undefined)}
            atEnd={list.hasMore ? list.more : undefined}
            empty={<Empty title={emptyTitle(wanted, list.hasMore)} />}
          />
        ) : (
          list.error === undefined && <Loading lines={10} />
        )}
      </Card>
      <p class="muted" role="status">
        {counted(rows.length, 'session')}{' '}
        {list.hasMore && (wanted === '' ? 'read so far; scroll for more' : 'found so far; searching …')}
        {list.isFull && `among the first ${counted(list.rows.length, 'session')}`}
      </p>
    </Page>
  );
}

function textOfSession({ session, attributes, owner = '' }: SessionInfoJson): string {
  return [session, owner, ...Object.entries(attributes).map((pair) => pair.join('='))].join('\n').toLowerCase();
}

function emptyTitle(wanted: string, hasMore: boolean): string {
  if (wanted === '') return 'No client has a session.';
  return hasMore ? 'Searching …' : 'No session matches.';
}

/** `countedIds`: the sessions whose locks are counted. */
const columnsOf = (countedIds: ReadonlySet<string>): readonly Column<SessionInfoJson>[] => [
  { title: 'Session', cell: ({ session }) => <SessionLink id={session} /> },
  { title: 'Client', cell: ({ attributes }) => <Client attributes={attributes} owner={undefined} /> },
  {
    title: 'User',
    isMinor: true,
    cell: ({ owner }) => {
      if (owner === undefined) return <span class="muted">lease of keys</span>;
      return owner === '' ? <span class="muted">–</span> : <Text value={owner} max={40} />;
    },
  },
  { title: 'TTL', isNumber: true, isMinor: true, cell: ({ ttlMs }) => <Span ms={ttlMs} /> },
  {
    title: 'Last heartbeat',
    isNumber: true,
    cell: (session) => (
      <>
        <LastHeartbeat {...session} /> {countedIds.has(session.session) && <HeldLocks id={session.session} />}
      </>
    ),
  },
];

/** What a silent session blocks. */
function HeldLocks({ id }: { readonly id: string }) {
  const { data } = useResource(id, (signal) => sessionLocks(id, signal), { everyMs: LOCKS_EVERY_MS });
  if (data === undefined) return null;
  return (
    <span class="muted">
      holds {data.more && 'at least '}
      {counted(data.holds.length, 'lock')}
    </span>
  );
}
