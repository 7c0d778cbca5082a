import type { SessionAnswer, SessionLockJson, SessionLocksAnswer } from '@remora/gateway/http/json/locks';
import { closeSession, session as readSession, sessionLocks } from '../../api/locks.ts';
import { useResource } from '../../app/hooks.ts';
import { Action } from '../../kit/action.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Empty, Loaded } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Span, Time } from '../../kit/time.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { count } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { endingText } from '../../logic/session-text.ts';
import { lockAddress } from '../locks/lock-address.ts';
import { Client } from '../locks/session-owner.tsx';
import { LastHeartbeat } from './heartbeat.tsx';

const EVERY_MS = 2_000;

/** One client: who it is, whether its heartbeats come, what it holds and waits for. */
export function SessionPage({ id }: { readonly id: string }) {
  const state = useResource(id, (signal) => readSession(id, signal), { everyMs: EVERY_MS });
  const locks = useResource(`locks ${id}`, (signal) => sessionLocks(id, signal), { everyMs: EVERY_MS });
  const reload = (): void => {
    state.reload();
    locks.reload();
  };
  return (
    <Page
      title="Session"
      subject={<span class="mono">{id}</span>}
      subjectText={id}
      trail={[{ text: 'Sessions', href: addressOf('sessions') }]}
      actions={
        state.data && state.error === undefined && <EndSession session={state.data} locks={locks.data} done={reload} />
      }
    >
      <Loaded of={state}>{(answer) => <SessionState session={answer} />}</Loaded>
      {state.data !== undefined && (
        <Loaded of={locks}>
          {({ holds, waits, more }) => (
            <>
              <LockTable title="Holds" empty="It holds no lock." columns={HELD} locks={holds} />
              <LockTable title="Waits for" empty="It waits for no lock." columns={AWAITED} locks={waits} />
              {more && <p class="muted">There are more: each range reports the first 1,000 locks of a session.</p>}
            </>
          )}
        </Loaded>
      )}
      <Command words={['remora', 'session', 'show', id]} />
    </Page>
  );
}

function SessionState({ session }: { readonly session: SessionAnswer }) {
  const { attributes, owner, ttlMs, remainingMs, condition } = session;
  return (
    <Card>
      <Facts
        facts={[
          [
            'User',
            owner === undefined ? 'lease of plain keys' : owner === '' ? 'none' : <Text key="owner" value={owner} />,
          ],
          ['TTL', <Span key="ttl" ms={ttlMs} />],
          ['Last heartbeat', <LastHeartbeat key="beat" ttlMs={ttlMs} remainingMs={remainingMs} />],
          ['Ends without heartbeats in', <Span key="left" ms={remainingMs} />],
          ...(condition === undefined
            ? []
            : [['Condition', <Text key="condition" value={JSON.stringify(condition)} />] as const]),
          ...Object.entries(attributes).map(([name, value]) => [name, <Text key={name} value={value} />] as const),
        ]}
      />
    </Card>
  );
}

interface LockTableProps {
  readonly title: string;
  readonly empty: string;
  readonly columns: readonly Column<SessionLockJson>[];
  readonly locks: readonly SessionLockJson[];
}

function LockTable({ title, empty, columns, locks }: LockTableProps) {
  return (
    <Card isFlush title={`${title} (${count(locks.length)})`}>
      <Table
        label={title}
        columns={columns}
        rows={locks}
        keyOf={({ namespace, name, ownerId }) => `${namespace}/${identityOf(name)}/${ownerId}`}
        empty={<Empty title={empty} />}
      />
    </Card>
  );
}

const WHICH: readonly Column<SessionLockJson>[] = [
  {
    title: 'Lock',
    cell: ({ namespace, name }) => (
      <a href={lockAddress({ namespace, name })}>
        <Text value={name} max={120} />
      </a>
    ),
  },
  { title: 'Namespace', isMinor: true, cell: ({ namespace }) => <Text value={namespace} max={60} /> },
  { title: 'Mode', cell: ({ mode, permits }) => (permits === undefined ? mode : `${mode} × ${count(permits)}`) },
];

const HELD: readonly Column<SessionLockJson>[] = [
  ...WHICH,
  { title: 'Version', isNumber: true, cell: ({ version }) => <span class="mono">{version}</span> },
  { title: 'Held since', isNumber: true, cell: Began },
];

const AWAITED: readonly Column<SessionLockJson>[] = [
  ...WHICH,
  { title: 'Position', isNumber: true, cell: ({ position }) => (position === undefined ? '–' : count(position)) },
  { title: 'Waiting since', isNumber: true, cell: Began },
];

function Began({ sinceMs }: SessionLockJson) {
  return sinceMs === undefined ? <>–</> : <Time at={sinceMs} />;
}

interface EndSessionProps {
  readonly session: SessionAnswer;
  /** Undefined while they are read. */
  readonly locks: SessionLocksAnswer | undefined;
  done(): void;
}

function EndSession({ session, locks, done }: EndSessionProps) {
  const { session: id, attributes, owner } = session;
  return (
    <Action
      label="End session"
      title="End this session?"
      isDangerous
      explanation={
        <div class="stack">
          <Client attributes={attributes} owner={owner} />
          <p>{consequencesOf(locks)} The keys that belong to the session are deleted.</p>
          {locks?.holds.length !== 0 && (
            <p>
              The client is not asked first and may keep working as if it still held its locks. Only storage that checks
              the fencing version refuses its late writes.
            </p>
          )}
        </div>
      }
      command={() => ['remora', 'session', 'close', id]}
      run={async () => {
        const { closed } = await closeSession(id);
        return closed ? 'The session has ended.' : 'The session had ended before.';
      }}
      done={done}
    />
  );
}

/** What the locks of a session lose when it ends. */
function consequencesOf(locks: SessionLocksAnswer | undefined): string {
  if (locks === undefined) return 'All locks that it holds are released at once.';
  return endingText({ holds: locks.holds.length, waits: locks.waits.length, hasMore: locks.more });
}
