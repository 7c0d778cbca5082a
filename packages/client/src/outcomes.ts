import { ServiceError } from '@remora/base';
import type { AcquireAs } from '@remora/lock';

/** What an acquire that came to nothing says, in the words of what was asked for. */
type Wording = Partial<Record<AcquireAs['type'], string>>;

const BUSY: Wording = {
  permits: 'there are not enough permits free, or others wait for them',
  pass: 'somebody is still there',
};
const LATE: Wording = {
  permits: 'the permits were not granted in time',
  pass: 'somebody was still there when the wait was over',
  enter: 'the other parties did not come in time',
};

/** LOCK_BUSY: of what was not given at once. */
export function notAtOnce(as: AcquireAs | undefined): ServiceError {
  return new ServiceError('LOCK_BUSY', (as && BUSY[as.type]) ?? 'the lock is taken');
}

/** LOCK_TIMEOUT: of what was not given within the wait. */
export function notInTime(as: AcquireAs | undefined, details: Readonly<Record<string, unknown>>): ServiceError {
  return new ServiceError('LOCK_TIMEOUT', (as && LATE[as.type]) ?? 'the lock was not granted in time', { details });
}
