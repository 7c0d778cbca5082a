import { asBuffer, ServiceError } from '@remora/base';
import type { AcquireAs, LockId } from '@remora/lock';

/** What the error of an acquire says, by what was asked for. */
type Wording = Partial<Record<AcquireAs['type'], string>>;

interface Wanted {
  readonly lock: LockId;
  readonly as?: AcquireAs | undefined;
}

const LOCK_TEXT_MAX = 256;

const BUSY: Wording = {
  permits: 'not enough permits are free, or others wait for them',
  pass: 'somebody still holds it',
};
const LATE: Wording = {
  permits: 'the permits were not granted in time',
  pass: 'somebody still held it when the wait ended',
  enter: 'the other parties did not enter in time',
};

/** LOCK_BUSY: it was not granted at once, and the acquire does not wait. */
export function notAtOnce({ as, lock }: Wanted): ServiceError {
  return new ServiceError('LOCK_BUSY', `${(as && BUSY[as.type]) ?? 'the lock is taken'}: ${lockText(lock)}`);
}

/** LOCK_TIMEOUT: it was not granted within the wait. */
export function notInTime({ as, lock }: Wanted, details: Readonly<Record<string, unknown>>): ServiceError {
  const why = (as && LATE[as.type]) ?? 'the lock was not granted in time';
  return new ServiceError('LOCK_TIMEOUT', `${why}: ${lockText(lock)}`, { details });
}

/** The name of a lock for messages, cut to 256 characters. */
export function lockText({ namespace, name }: LockId): string {
  return `${namespace}/${asBuffer(name).toString('utf8')}`.slice(0, LOCK_TEXT_MAX);
}
