import type { Bytes } from '@remora/base';
import type { LockVerb } from '@remora/protocol';

/** One thing that a request must be allowed to do. A request may have several, and needs all of them. */
export type Need = PlainNeed | LeaseNeed;

/**
 * What roles alone decide. `withoutMasters`: by what the node last knew of them, however long ago (known-auth.ts KA5).
 */
export type PlainNeed =
  /** Plain keys of `[key, end)`. An empty `end`: to the last key; absent: one key. */
  | { readonly type: 'keys'; readonly access: 'read' | 'write'; readonly key: Bytes; readonly end?: Bytes }
  | { readonly type: 'lock'; readonly verb: LockVerb; readonly namespace: string; readonly name: Bytes }
  /** All locks of a namespace whose names begin with the prefix. An empty namespace: of all namespaces. */
  | { readonly type: 'locks'; readonly verb: LockVerb; readonly namespace: string; readonly prefix: Bytes }
  /** The role root. `what` completes "needs the role root to …". `looks`: it changes nothing, so it is not audited. */
  | { readonly type: 'root'; readonly what: string; readonly withoutMasters?: true; readonly looks?: true }
  /** Any user who has logged in. */
  | { readonly type: 'anyUser'; readonly withoutMasters?: true };

/** What depends on a lease, which has to be looked at. */
export type LeaseNeed =
  /** All keys that the lease has at that time, in whichever ranges. */
  | { readonly type: 'leaseKeys'; readonly access: 'read' | 'write'; readonly lease: bigint }
  /** That the same user has begun the session, or has the verb `steer` on every lock that it has. */
  | { readonly type: 'session'; readonly lease: bigint };

export function isPlain(need: Need): need is PlainNeed {
  return need.type !== 'leaseKeys' && need.type !== 'session';
}
