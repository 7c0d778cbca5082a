/** What the cluster holds: names like those of a shop's services, and ranges that divide them. */

export interface Sizes {
  readonly locks: number;
  readonly sessions: number;
  readonly ranges: number;
  readonly nodes: number;
  readonly keys: number;
}

export interface LockPlace {
  readonly namespace: string;
  readonly name: string;
}

const DIGITS = 6;
const SHARES: readonly { readonly namespace: string; readonly of: (n: string) => string; readonly share: number }[] = [
  { namespace: 'default', of: (n) => `orders/eu-central/${n}`, share: 0.7 },
  { namespace: 'billing', of: (n) => `invoices/2026/${n}`, share: 0.2 },
  { namespace: 'jobs', of: (n) => `nightly/report-${n}`, share: 0.1 },
];

/** The place of each lock, in a fixed order. */
export function lockPlaces(count: number): readonly LockPlace[] {
  return SHARES.flatMap(({ namespace, of, share }) =>
    Array.from({ length: Math.round(count * share) }, (_, i) => ({ namespace, name: of(padded(i)) })),
  );
}

export function keyAt(i: number): string {
  return `shop/${['carts', 'prices', 'stock', 'users'][i % 4]}/${padded(i)}`;
}

/** Half of the ranges divide the locks, the other half the keys; the first one has sessions and leases. */
export function borders({ ranges, locks, keys }: Sizes): readonly string[] {
  const ofLocks = Math.floor((ranges - 1) / 2);
  const ofKeys = ranges - 1 - ofLocks;
  const places = lockPlaces(locks);
  const at = (i: number): LockPlace => places[Math.floor((i * places.length) / ofLocks)] ?? { namespace: '', name: '' };
  const named = Array.from({ length: keys }, (_, i) => keyAt(i)).sort();
  return [
    ...Array.from({ length: ofLocks }, (_, i) => {
      const { namespace, name } = at(i);
      return namespace === 'default' ? `lock:${name}` : `lock@${namespace}:${name}`;
    }),
    ...Array.from({ length: ofKeys }, (_, i) => `key:${named[Math.floor((i * keys) / ofKeys)] ?? ''}`),
  ];
}

function padded(n: number): string {
  return String(n).padStart(DIGITS, '0');
}
