/** The keys that requests are about, and the borders of ranges among them. */

/** With the one among leases these make eight ranges, all of which have keys. */
export const KEY_BORDERS: readonly string[] = ['c', 'f', 'k', 'p', 't', 'x'];

/** Leases have their records in two ranges: those with a first byte below, and the others. */
export const LEASE_BORDER = 0x20n << 56n;

/** On both sides of each border, with the smallest and the largest bytes, and prefixes of each other. */
export const KEYS: readonly string[] = [
  ...['\0', 'a', 'b', 'b\0', 'c', 'c\0', 'ca', 'e', 'f', 'fa', 'f\xff', 'j', 'k', 'k/1', 'k/2', 'm'],
  ...['p', 'pp', 's', 't', 't\0', 'w', 'x', 'xyz', 'z', '\xfe', '\xff', '\xff\xff'],
];

/** The end of all keys that begin with the text; "\0", which is none, where there is no such end. */
export function prefixEnd(prefix: string): string {
  const kept = prefix.replace(/\xff+$/, '');
  if (kept === '') return '\0';
  return kept.slice(0, -1) + String.fromCharCode(kept.charCodeAt(kept.length - 1) + 1);
}

/** Leases that requests name. The ids of the last few are chosen by the server. */
export const LEASE_SLOTS = 10;
const SLOTS_OF_SERVER = 3;

export function isChosenByServer(slot: number): boolean {
  return slot >= LEASE_SLOTS - SLOTS_OF_SERVER;
}

/** The id under which a lease is granted: small, large and negative ones. */
export function leaseId(slot: number): bigint {
  if (isChosenByServer(slot)) return 0n;
  if (slot === 0) return -7n;
  return slot % 2 === 0 ? BigInt(slot) : (0x7fn << 56n) - BigInt(slot);
}
