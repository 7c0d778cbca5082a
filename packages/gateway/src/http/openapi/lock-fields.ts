/** How a lock and a grant of it are named, in the schemas of locks and of keys. */
import { NAME_BYTES_MAX, NAMESPACE_BYTES_MAX } from '@remora/lock';
import { bytes, count, object, text } from './parts.ts';

export const VERSION_MAX = Number.MAX_SAFE_INTEGER;

export const namespace = text('Separates users of one cluster.', { minLength: 1, maxLength: NAMESPACE_BYTES_MAX });
export const name = bytes(`1 to ${NAME_BYTES_MAX} bytes.`);
export const version = count(
  'The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.',
  { maximum: VERSION_MAX },
);
export const LOCK_VERSION = object({ namespace, name, version }, ['name', 'version']);
