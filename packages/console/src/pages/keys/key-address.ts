import type { JsonBytes } from '../../logic/bytes.ts';
import { addressOf } from '../../logic/location.ts';

export function keyAddress(key: JsonBytes): string {
  return addressOf('keys', { key });
}
