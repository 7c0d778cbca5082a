/** Keys as borders of columns: short, and still readable (routing-key-text.ts). */
import { type Bytes, binaryString, concatBytes, prefixEnd } from '@remora/base';
import { LOCK_SPACE, lockStart } from '@remora/lock';
import { LEASE_SPACE } from '../descriptor.ts';

/** The longest border. */
export const HEAT_BORDER_BYTES_MAX = 64;
/** The space and the id. */
const LEASE_KEY_BYTES = 9;
/** Ends the name in the routing key of a lock (lock/records/keys.ts). */
const NAME_END = Uint8Array.of(0, 1);
/** A zero within the name. */
const NAME_ZERO = Uint8Array.of(0, 0xff);
/** So that the border behind it is not too long either. */
const KEY_BYTES_MAX = HEAT_BORDER_BYTES_MAX - NAME_END.length;

/** A routing key as a border: the key itself, or if it is long, one that is a little before it. */
export function heatBorder(key: Bytes): string {
  if (key.length <= KEY_BYTES_MAX) return binaryString(key);
  const nameStart = 2 + (key[1] ?? 0);
  let end = KEY_BYTES_MAX - NAME_END.length;
  if (key[0] !== LOCK_SPACE || end <= nameStart) return binaryString(key.subarray(0, KEY_BYTES_MAX));
  while (key[end - 1] === 0) end--;
  return binaryString(concatBytes(key.subarray(0, end), NAME_END));
}

/** A border that somebody else made, which is not too long either. */
export function givenBorder(key: Bytes): string {
  return key.length <= HEAT_BORDER_BYTES_MAX ? binaryString(key) : heatBorder(key);
}

/** The next border behind the one that `heatBorder` returned: so the key has a column of its own. */
export function heatBorderAfter(border: string): string {
  const key = Buffer.from(border, 'latin1');
  if (key[0] === LEASE_SPACE && key.length === LEASE_KEY_BYTES) return binaryString(prefixEnd(key));
  if (key[0] !== LOCK_SPACE || lockStart(key)?.length !== key.length) return `${border}\0`;
  return binaryString(concatBytes(key.subarray(0, -NAME_END.length), NAME_ZERO, NAME_END));
}
