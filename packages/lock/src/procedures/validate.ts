/**
 * Bounds of commands and queries. They are checked where a message arrives: at the gateway, and at the data server for
 * messages of other nodes. Nothing is checked again behind that.
 */
import type { Bytes } from '@remora/base';
import {
  CHECKS_MAX,
  DATA_BYTES_MAX,
  DEPTH_MAX,
  FORCED_BY_BYTES_MAX,
  FORCED_REASON_BYTES_MAX,
  LEASE_MAX,
  LIST_LIMIT_MAX,
  LOCK_DELAY_MAX_MS,
  NAME_BYTES_MAX,
  NAMESPACE_BYTES_MAX,
  PERMITS_MAX,
  REASON_BYTES_MAX,
  REVOKE_MAX_MS,
  REVOKER_BYTES_MAX,
  SHARERS_MAX,
  TOKEN_BYTES_MAX,
} from '../limits.ts';
import type { AcquireAs, LockCommand, LockId, LockQuery, LockResult, Owner } from '../types.ts';

const LONE_SURROGATE = /\p{Surrogate}/u;

/** A refusal with code INVALID_ARGUMENT. */
export type Refusal = Extract<LockResult, { readonly type: 'refused' }>;

/** Undefined when the command is within its bounds; otherwise a refusal that says what is allowed. */
export function validateLockCommand(command: LockCommand): Refusal | undefined {
  const problem = lockProblem(command.lock) ?? commandProblem(command);
  return problem === undefined ? undefined : invalid(problem);
}

/** Undefined when the query is within its bounds; otherwise a refusal that says what is allowed. */
export function validateLockQuery(query: LockQuery): Refusal | undefined {
  const problem = queryProblem(query);
  return problem === undefined ? undefined : invalid(problem);
}

function commandProblem(command: LockCommand): string | undefined {
  if (command.type === 'forget') return undefined;
  if (command.type === 'forceRelease') {
    const { by = '', reason = '', upToVersion = 0 } = command;
    return (
      integerProblem('`upToVersion`', upToVersion, { min: 0, max: Number.MAX_SAFE_INTEGER }) ??
      saidProblem('`by` of a forced release', by, FORCED_BY_BYTES_MAX) ??
      saidProblem('`reason` of a forced release', reason, FORCED_REASON_BYTES_MAX)
    );
  }
  if (command.type === 'setCapacity') {
    return integerProblem('the capacity of a semaphore', command.capacity, { min: 0, max: PERMITS_MAX });
  }
  if (command.type === 'revoke') {
    return (
      saidProblem('`by` of a revocation', command.by, REVOKER_BYTES_MAX) ??
      saidProblem('`reason` of a revocation', command.reason, REASON_BYTES_MAX) ??
      integerProblem('forMs', command.forMs, { min: 1, max: REVOKE_MAX_MS })
    );
  }
  if (command.type === 'setData' || command.type === 'setDepth' || command.type === 'endDelay') {
    return (
      ownerProblem(command.owner) ??
      integerProblem('version', command.version, { min: 1, max: Number.MAX_SAFE_INTEGER }) ??
      (command.type === 'setData' ? dataProblem(command.data) : undefined) ??
      (command.type === 'setDepth' ? integerProblem('depth', command.depth, { min: 1, max: DEPTH_MAX }) : undefined)
    );
  }
  const problem =
    ownerProblem(command.owner) ??
    integerProblem('attempt', command.attempt ?? 0, { min: 0, max: Number.MAX_SAFE_INTEGER });
  if (problem !== undefined || command.type === 'downgrade') return problem;
  const late = timeProblem('deadlineMs', command.deadlineMs);
  if (late !== undefined || command.type !== 'acquire') return late;
  return (
    asProblem(command.as, command.attempt ?? 0) ??
    timeProblem('waitUntilMs', command.waitUntilMs) ??
    integerProblem('depthMax', command.depthMax, { min: 1, max: DEPTH_MAX }) ??
    dataProblem(command.data) ??
    integerProblem('the lock-delay in ms', command.delayMs ?? 0, { min: 0, max: LOCK_DELAY_MAX_MS })
  );
}

function dataProblem(data: Bytes): string | undefined {
  return bytesProblem('the data of a lock', data, { min: 0, max: DATA_BYTES_MAX });
}

function asProblem(as: AcquireAs | undefined, attempt: number): string | undefined {
  if (as?.type === 'upgrade') return attempt > 0 ? undefined : 'attempt: an upgrade needs a number above 0';
  if (as?.type === 'pass' || as?.type === 'enter') {
    if (attempt === 0) return 'attempt: a wait at a barrier needs a number above 0';
    return as.type === 'pass'
      ? undefined
      : integerProblem('the number of parties', as.parties, { min: 1, max: SHARERS_MAX });
  }
  if (as?.type !== 'permits') return undefined;
  return (
    integerProblem('the number of permits', as.permits, { min: 1, max: PERMITS_MAX }) ??
    integerProblem('the capacity of a semaphore', as.capacity, { min: 1, max: PERMITS_MAX })
  );
}

function queryProblem(query: LockQuery): string | undefined {
  switch (query.type) {
    case 'show':
      return lockProblem(query.lock);
    case 'list':
      return (
        textProblem('a namespace', query.namespace, NAMESPACE_BYTES_MAX) ??
        bytesProblem('a prefix of lock names', query.prefix, { min: 0, max: NAME_BYTES_MAX }) ??
        bytesProblem('after', query.after, { min: 0, max: NAME_BYTES_MAX }) ??
        integerProblem('limit', query.limit, { min: 1, max: LIST_LIMIT_MAX })
      );
    case 'check':
      return checksProblem(query.checks);
    case 'search':
      return (
        queryProblem({ ...query, type: 'list' }) ??
        bytesProblem('contains', query.contains, { min: 0, max: NAME_BYTES_MAX })
      );
    case 'namespaces':
      return (
        saidProblem('after', query.after, NAMESPACE_BYTES_MAX) ??
        integerProblem('limit', query.limit, { min: 1, max: LIST_LIMIT_MAX })
      );
  }
}

function checksProblem(checks: Extract<LockQuery, { readonly type: 'check' }>['checks']): string | undefined {
  if (checks.length === 0 || checks.length > CHECKS_MAX) {
    return `one query checks 1 to ${CHECKS_MAX} versions, not ${checks.length}`;
  }
  for (const { lock, version } of checks) {
    const problem = lockProblem(lock) ?? integerProblem('version', version, { min: 0, max: Number.MAX_SAFE_INTEGER });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function lockProblem(lock: LockId): string | undefined {
  return (
    textProblem('a namespace', lock.namespace, NAMESPACE_BYTES_MAX) ??
    bytesProblem('the name of a lock', lock.name, { min: 1, max: NAME_BYTES_MAX })
  );
}

function ownerProblem({ session, token }: Owner): string | undefined {
  if (session.lease < 1n || session.lease > LEASE_MAX) {
    return `the lease of a session is a number from 1 to 2^63 - 1, not ${session.lease}`;
  }
  return (
    integerProblem('incarnation', session.incarnation, { min: 0, max: Number.MAX_SAFE_INTEGER }) ??
    textProblem('an owner token', token, TOKEN_BYTES_MAX)
  );
}

/** For text that may be empty. */
function saidProblem(what: string, text: string, max: number): string | undefined {
  return text === '' ? undefined : textProblem(what, text, max);
}

function textProblem(what: string, text: string, max: number): string | undefined {
  const length = Buffer.byteLength(text);
  if (length < 1 || length > max) return `${what} has 1 to ${max} bytes of UTF-8, not ${length}`;
  // A lone surrogate has no UTF-8 form: two such texts would become one.
  return LONE_SURROGATE.test(text)
    ? `${what} is well-formed Unicode; this one has half of a surrogate pair`
    : undefined;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

function bytesProblem(what: string, bytes: Bytes, { min, max }: Bounds): string | undefined {
  if (bytes.length >= min && bytes.length <= max) return undefined;
  return `${what} has ${min} to ${max} bytes, not ${bytes.length}`;
}

function integerProblem(what: string, value: number, { min, max }: Bounds): string | undefined {
  if (Number.isInteger(value) && value >= min && value <= max) return undefined;
  return `${what} is an integer from ${min} to ${max}, not ${value}`;
}

function timeProblem(what: string, value: number): string | undefined {
  if (Number.isFinite(value) && value >= 0) return undefined;
  return `${what} is a time in milliseconds, 0 or later, not ${value}`;
}

function invalid(message: string): Refusal {
  return { type: 'refused', code: 'INVALID_ARGUMENT', message };
}
