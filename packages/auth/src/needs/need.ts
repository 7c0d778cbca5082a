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
  /** What only the owner of a lease may do, or also a user who may steer all locks: decisions look the owner up. */
  | OwnerNeed
  /** To list the sessions of one user, which may be the caller; undefined: of all. */
  | { readonly type: 'sessions'; readonly owner: string | undefined }
  /** The role root. `what` completes "needs the role root to …". `looks`: it changes nothing, so it is not audited. */
  | { readonly type: 'root'; readonly what: string; readonly withoutMasters?: true; readonly looks?: true }
  /** Any user who has logged in. */
  | { readonly type: 'anyUser'; readonly withoutMasters?: true };

export interface OwnerNeed {
  readonly type: 'owner';
  readonly lease: bigint;
  /** Of a session; `NO_OWNER` (empty): it was begun without a user. Undefined: a lease of plain keys. */
  readonly owner: string | undefined;
  /** What is done with it, as a verb: "use", "end". */
  readonly what: string;
  /** Users who may steer all locks may do it, too. */
  readonly orSteer: boolean;
}

/**
 * What depends on a lease, whose record decisions look up. A lease of plain keys (etcd's LeaseGrant) belongs to every
 * user who may write its keys. A session belongs to the user who began it.
 */
export type LeaseNeed =
  /** To read all keys that the lease has at that time, in whichever ranges. */
  | { readonly type: 'leaseKeys'; readonly lease: bigint }
  /**
   * To attach a key to the lease, to renew it, or to end it. Needs to write all keys of a lease of plain keys. Only the
   * owner of a session may, and who may steer all locks may end it if he may write its keys.
   */
  | {
      readonly type: 'lease';
      readonly use: 'attach' | 'renew' | 'end';
      readonly lease: bigint;
      /** 0: the present one. */
      readonly incarnation: number;
    }
  /**
   * What needs a session: to use or change it, for its owner only; to show it, also for who may steer all locks.
   */
  | {
      readonly type: 'session';
      readonly use: 'use' | 'change' | 'show';
      readonly lease: bigint;
      readonly incarnation: number;
    };

export function isPlain(need: Need): need is PlainNeed {
  return need.type !== 'leaseKeys' && need.type !== 'lease' && need.type !== 'session';
}
