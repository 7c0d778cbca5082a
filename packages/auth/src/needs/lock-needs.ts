import { EMPTY_BYTES } from '@remora/base';
import type { LockCommand, LockQuery, SessionRef } from '@remora/lock';
import type { LockVerb } from '@remora/protocol';
import type { Need } from './need.ts';

/** Undefined: only the leader of the lock's range sends it. */
const VERBS: Readonly<Record<LockCommand['type'], LockVerb | undefined>> = {
  acquire: 'acquire',
  release: 'acquire',
  cancel: 'acquire',
  downgrade: 'acquire',
  setData: 'acquire',
  setDepth: 'acquire',
  forceRelease: 'steer',
  setCapacity: 'steer',
  forget: 'steer',
  revoke: 'steer',
  endDelay: undefined,
};

/** What one does with a hold also needs that the session is one's own: a token alone does not release it. */
export function needsOfLockCommand(command: LockCommand): readonly Need[] {
  const verb = VERBS[command.type];
  if (verb === undefined) return [{ type: 'root', what: `send ${command.type}` }];
  const lock: Need = { type: 'lock', verb, ...command.lock };
  return 'owner' in command ? [lock, needOfSession('use', command.owner.session)] : [lock];
}

export function needOfSession(use: 'use' | 'change' | 'show', { lease, incarnation }: SessionRef): Need {
  return { type: 'session', use, lease, incarnation };
}

export function needsOfLockQuery(query: LockQuery): readonly Need[] {
  switch (query.type) {
    case 'show':
      return [{ type: 'lock', verb: 'read', ...query.lock }];
    case 'list':
    case 'search':
      return [{ type: 'locks', verb: 'read', namespace: query.namespace, prefix: query.prefix }];
    case 'namespaces':
      return [{ type: 'locks', verb: 'read', namespace: '', prefix: EMPTY_BYTES }];
    case 'check':
      return query.checks.map(({ lock }) => ({ type: 'lock', verb: 'read', ...lock }));
  }
}
