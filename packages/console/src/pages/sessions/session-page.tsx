import type { SessionAnswer, SessionLockJson } from '@remora/gateway/http/json/locks';
import { closeSession, session as readSession, sessionLocks } from '../../api/locks.ts';
import { useResource } from '../../app/hooks.ts';
import { Action } from '../../kit/action.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Empty, Loaded } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Since, Span } from '../../kit/time.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { count } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { lockAddress } from '../locks/lock-address.ts';
import { LastHeartbeat } from './session-list.tsx';

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
      actions={state.data && state.error === undefined && <EndSession id={id} done={reload} />}
    >
      <Loaded of={state}>{(answer) => <SessionState session={answer} />}</Loaded>
      {state.data !== undefined && (
        <Loaded of={locks}>
          {({ holds, waits, more }) => (
            <>
              <LockTable title="Holds" empty="It holds no lock." locks={holds} />
              <LockTable title="Waits for" empty="It waits for no lock." locks={waits} />
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
  readonly locks: readonly SessionLockJson[];
}

function LockTable({ title, empty, locks }: LockTableProps) {
  return (
    <Card isFlush title={`${title} (${count(locks.length)})`}>
      <Table
        label={title}
        columns={LOCKS}
        rows={locks}
        keyOf={({ namespace, name, ownerId }) => `${namespace}/${identityOf(name)}/${ownerId}`}
        empty={<Empty title={empty} />}
      />
    </Card>
  );
}

const LOCKS: readonly Column<SessionLockJson>[] = [
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
  {
    title: 'Version or place',
    isNumber: true,
    cell: ({ version, position }) => (version === undefined ? `# ${position ?? '?'}` : version),
  },
  { title: 'For', isNumber: true, cell: ({ sinceMs }) => (sinceMs === undefined ? '–' : <Since at={sinceMs} />) },
];

function EndSession({ id, done }: { readonly id: string; done(): void }) {
  return (
    <Action
      label="End session"
      title="End this session?"
      isDangerous
      explanation={
        <>
          Its locks are released and its keys are deleted at once. Its client is not asked, and may continue to work:
          from then on, only the fencing version protects against its writes.
        </>
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
