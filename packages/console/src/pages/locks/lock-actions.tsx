import type { LockAnswer } from '@remora/gateway/http/json/locks';
import { access } from '../../api/access.ts';
import { forceRelease, forget, type LockName, revoke, setCapacity } from '../../api/locks.ts';
import { useStore } from '../../app/hooks.ts';
import { Action, type ActionField } from '../../kit/action.tsx';
import { Text } from '../../kit/text.tsx';
import { Time } from '../../kit/time.tsx';
import { durationProblem } from '../../logic/duration.ts';
import { count, counted } from '../../logic/format.ts';
import { namespaceFlag } from './lock-address.ts';
import { SessionOwner } from './session-owner.tsx';

interface LockActionsProps {
  readonly lock: LockName;
  readonly state: LockAnswer;
  done(): void;
}

const REASON: ActionField = {
  name: 'reason',
  label: 'Reason',
  hint: 'Recorded with the lock, and shown to its holders.',
  isRequired: true,
};

export function LockActions({ lock, state, done }: LockActionsProps) {
  const { name, namespace } = lock;
  const present = useStore(access);
  const by = present.state === 'in' ? (present.who.user ?? 'console') : 'console';
  const isHeld = state.holderCount > 0;
  const target = [name, ...namespaceFlag(namespace)];
  const newest = Math.max(0, ...state.holders.map(({ version }) => version));
  const free = isHeld ? undefined : 'Nobody holds this lock.';
  const nameShown = <Text value={name} max={120} />;
  return (
    <>
      {state.kind === 'semaphore' && <CapacityAction {...{ lock, state, done }} />}
      {(state.keptData !== undefined || state.forced !== undefined) && (
        <Action
          label="Forget"
          title="Forget what earlier holders left?"
          explanation={
            <>Deletes the data left with {nameShown} and its record of a forced release. Holders keep the lock.</>
          }
          command={() => ['remora', 'lock', 'forget', ...target]}
          run={async () => {
            await forget(lock);
            return 'What was left with the lock is deleted.';
          }}
          done={done}
        />
      )}
      <Action
        label="Revoke"
        title="Ask the holders to release the lock?"
        explanation={
          <>
            {counted(state.holderCount, 'holder')} of {nameShown} will be asked. They finish their work first, or
            decline: nobody is forced.
          </>
        }
        refusal={free}
        fields={[
          { ...REASON, isRequired: false },
          { name: 'for', label: 'How long the request stands', initial: '30s', check: durationProblem },
        ]}
        command={({ reason = '', for: wait = '' }) => [
          ...['remora', 'lock', 'revoke', '--wait', wait],
          ...(reason === '' ? [] : ['--reason', reason]),
          ...target,
        ]}
        run={async ({ reason = '', for: wait = '' }) => {
          await revoke(lock, { reason, for: wait, by });
          return 'The holders are asked to release the lock.';
        }}
        done={done}
      />
      <Action
        label="Force release"
        title="Take the lock from its holders?"
        isDangerous
        explanation={
          <>
            <p>
              {nameShown} is taken from{' '}
              {state.holderCount === 1 ? 'its holder' : `all ${count(state.holderCount)} holders`}, and the next in the
              queue gets it at once. Do this when you know that the holder is dead: one that still runs may not notice,
              and only systems that check the fencing version then refuse its writes.
            </p>
            <HolderLines holders={state.holders} />
          </>
        }
        refusal={free}
        fields={[
          REASON,
          {
            name: 'version',
            label: 'Up to version',
            hint: 'Who was granted the lock after you opened this dialog, by a higher version, keeps it.',
            initial: String(newest),
            isRequired: true,
            check: (value) =>
              /^\d{1,16}$/.test(value) ? undefined : 'Expected a version, as the list of holders shows it.',
          },
        ]}
        command={({ reason = '', version = '' }) => [
          ...['remora', 'lock', 'release', '--force', '--up-to-version', version, '--reason', reason],
          ...target,
        ]}
        run={async ({ reason = '', version: upToVersion = '' }) => {
          const { version } = await forceRelease(lock, { reason, by, upToVersion: Number(upToVersion) });
          return `The lock was taken from its holder (version ${version}).`;
        }}
        done={done}
      />
    </>
  );
}

const HOLDERS_NAMED = 3;

/** Who would lose the lock, as it is at the moment. */
function HolderLines({ holders }: { readonly holders: LockAnswer['holders'] }) {
  return (
    <ul class="reasons">
      {holders.slice(0, HOLDERS_NAMED).map(({ session, ownerId, version, lockTimeMs }) => (
        <li key={`${session} ${ownerId}`}>
          <SessionOwner id={session} /> <span class="muted">session</span> <code>{session}</code>, version {version},
          since <Time at={lockTimeMs} isFocusable={false} />
        </li>
      ))}
      {holders.length > HOLDERS_NAMED && <li>and {count(holders.length - HOLDERS_NAMED)} more</li>}
    </ul>
  );
}

function CapacityAction({ lock, state, done }: LockActionsProps) {
  const target = [lock.name, ...namespaceFlag(lock.namespace)];
  return (
    <Action
      label="Set capacity"
      title="Set the capacity of the semaphore"
      explanation="Present holders keep their permits, also if there are more of them than the new capacity."
      fields={[
        {
          name: 'capacity',
          label: 'Permits',
          hint: '0 removes the setting: the next one who acquires sets the capacity.',
          initial: String(state.capacity ?? 1),
          isRequired: true,
          check: (value) => (/^\d{1,7}$/.test(value) ? undefined : 'Expected a whole number.'),
        },
      ]}
      command={({ capacity = '' }) => {
        const [name, ...flags] = target;
        return ['remora', 'lock', 'capacity', name ?? '', capacity, ...flags];
      }}
      run={async ({ capacity = '' }) => {
        await setCapacity(lock, Number(capacity));
        return `The capacity is ${capacity}.`;
      }}
      done={done}
    />
  );
}
