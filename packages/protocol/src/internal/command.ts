import type {
  Condition,
  LockCommand,
  LockId,
  LockQuery,
  LockQueryResult,
  LockResult,
  Owner,
  Revocation,
  SessionRef,
} from '@remora/lock';
import type { Epoch, RangeDescriptor } from './descriptor.ts';
import type { KeyValue, KvResult, RangeOp, Txn } from './kv-types.ts';
import type { LeaseCommand, LeaseCommandResult } from './lease-api.ts';
import type { MergeCommand, MergeCommandResult } from './merge-api.ts';
import type { SessionQuery, SessionQueryResult } from './session-api.ts';
import type { TxnCommand, TxnCommandResult, TxnState } from './transaction-api.ts';

/**
 * What goes through a range's log. `leaseExpire` is internal: only the range's leader proposes it, and apply refuses
 * it when another term has begun or the lease was renewed since (traps 18).
 */
export type Command =
  | { readonly type: 'txn'; readonly txn: Txn }
  /** A transaction of one operation, answered with that operation's result: the hot path of put and delete. */
  | { readonly type: 'kv'; readonly op: Exclude<Txn['success'][number], { type: 'txn' }> }
  | { readonly type: 'compact'; readonly revision: number }
  /**
   * Begins a restore: revisions up to this one count as used, and their history as compacted. Refused where there are
   * keys or leases. It comes alone in its entry.
   */
  | { readonly type: 'raiseRevision'; readonly to: number }
  /**
   * Corrects how many plain keys the range counts, and how many bytes, by so many more or fewer: they were counted in the
   * range as it was at `version`, once this entry of its log was applied. Internal: its leader proposes it. It comes alone
   * in its entry.
   */
  | {
      readonly type: 'recount';
      readonly version: number;
      readonly index: number;
      readonly keys: number;
      readonly bytes: number;
    }
  /** `id` was chosen by the client or by the gateway; never 0. */
  | {
      readonly type: 'leaseGrant';
      readonly id: bigint;
      readonly ttlMs: number;
      /** Shown with a session: client name, host, pid. */
      readonly attributes: Readonly<Record<string, string>>;
      /** Shown with it: what its client keeps to. The TTL says when it ends. */
      readonly condition?: Condition;
    }
  /**
   * Gives a lease another TTL. It is no renewal: the time that it has left by now it keeps, and the next heartbeat is for
   * the new TTL. Changes are numbered by the client from 1; one that comes after a later one is refused.
   */
  | {
      readonly type: 'leaseChange';
      readonly id: bigint;
      readonly incarnation: number;
      readonly number: number;
      readonly ttlMs: number;
      readonly condition?: Condition;
    }
  /**
   * `incarnation` 0 means whichever is there (etcd's revoke). With `ifEmpty` the home refuses it unless the lease is one that
   * ends when it is empty, and has nothing in the home.
   */
  | {
      readonly type: 'leaseRevoke';
      readonly id: bigint;
      readonly incarnation: number;
      readonly ifEmpty?: true;
    }
  | { readonly type: 'leaseExpire'; readonly id: bigint; readonly incarnation: number; readonly term: number }
  /**
   * How much is left of a lease whose client has been silent for a while: whoever leads after this `term` gives it no
   * more. Undefined: its client was heard of since. Internal, as `leaseExpire`.
   */
  | {
      readonly type: 'leaseCheckpoint';
      readonly id: bigint;
      readonly incarnation: number;
      readonly term: number;
      readonly remainingMs: number | undefined;
    }
  | LeaseCommand
  | { readonly type: 'lock'; readonly command: LockCommand }
  /**
   * Cuts the range in two at a routing key, from which on the keys are the child's. Internal: its leader proposes it, in
   * an entry of its own, with the ids that the master gave out for the range as it was at `epoch`.
   */
  | {
      readonly type: 'split';
      readonly at: Uint8Array;
      readonly epoch: Epoch;
      readonly childId: number;
      /** A replica of the child for each of the range, on the same nodes. */
      readonly replicas: readonly { readonly nodeId: number; readonly replicaId: number }[];
      /** What leaves, as it was measured beforehand: about how many plain keys, and bytes of them with their values. */
      readonly keys: number;
      readonly bytes: number;
    }
  /** Of a transaction over several ranges; only where the master numbers changes. */
  | TxnCommand
  /** Steps of a merge of neighbours. */
  | MergeCommand
  /** Changes nothing; a barrier, and a way to carry range time on. */
  | { readonly type: 'noop' };

/** Answered by the leader without a log entry, after ReadIndex where it says so. */
export type Query =
  /** `serializable` reads what the asked replica has applied, without ReadIndex. */
  | { readonly type: 'range'; readonly op: RangeOp; readonly serializable: boolean }
  /**
   * The first plain keys of `[key, end)`, in order, at a revision (0: the newest), until their pairs have so many bytes;
   * an empty `end` is to the last. It costs what it gives, however large the span is. The newest is told by the answer's
   * revision, and what lies behind can be read at it, too.
   */
  | {
      readonly type: 'scan';
      readonly key: Uint8Array;
      readonly end: Uint8Array;
      readonly revision: number;
      readonly bytes: number;
    }
  /** A transaction that writes nothing. */
  | { readonly type: 'readTxn'; readonly txn: Txn; readonly serializable: boolean }
  /** Renews; acknowledged only by a leader confirmed after receipt (design §9). `incarnation` 0: whichever is there. */
  | { readonly type: 'leaseKeepAlive'; readonly id: bigint; readonly incarnation: number }
  | { readonly type: 'leaseTimeToLive'; readonly id: bigint; readonly keys: boolean }
  /** The plain keys that belong to this very lease in a range that is not its home. */
  | { readonly type: 'leaseKeys'; readonly id: bigint; readonly incarnation: number }
  | { readonly type: 'leases' }
  | SessionQuery
  | { readonly type: 'lock'; readonly query: LockQuery }
  /** Waits for a queued acquire: answered when that owner is granted, refused or no longer in the queue. */
  | { readonly type: 'lockAwait'; readonly lock: LockId; readonly owner: Owner }
  /**
   * Waits for the end of a grant: answered at once when `version` is not the current one, otherwise when the lock was
   * taken from its holder or handed on. That its holder released it for nobody else need not be answered. `session`
   * is the holder's. With `known` it is also answered when somebody asks the holder to let go, unless that is the request
   * that it knows of; 0: of none.
   */
  | {
      readonly type: 'grantEnd';
      readonly lock: LockId;
      readonly version: number;
      readonly session: SessionRef;
      readonly known?: number;
    }
  /**
   * Waits until the range has closed a revision that was drawn from the master: it writes nothing at or below it any
   * more, and can be read at it. 0: tells what is closed now.
   */
  | { readonly type: 'closedRevision'; readonly revision: number }
  /** How a transaction over several ranges stands, as its record says; changes nothing, unlike a push. */
  | { readonly type: 'txnStatus'; readonly txnId: string; readonly primaryKey: Uint8Array }
  | { readonly type: 'status' };

/** Most bytes that a scan may ask for. */
export const SCAN_BYTES_MAX = 4 * 1024 * 1024;

export interface LeaseInfo {
  readonly id: bigint;
  readonly incarnation: number;
  readonly grantedTtlMs: number;
  /** Left before it expires unless renewed; -1 when the lease is unknown. */
  readonly remainingMs: number;
  readonly keys: readonly Uint8Array[];
  readonly attributes: Readonly<Record<string, string>>;
  /** It never expires, and is ended when no lock and no key belongs to it any more. */
  readonly endsEmpty: boolean;
}

export type CommandResult =
  | KvResult
  | { readonly type: 'compact' }
  | { readonly type: 'raiseRevision' }
  | { readonly type: 'recount' }
  | { readonly type: 'leaseGrant'; readonly id: bigint; readonly incarnation: number; readonly ttlMs: number }
  | { readonly type: 'leaseChange'; readonly ttlMs: number }
  | { readonly type: 'leaseRevoke' }
  | { readonly type: 'leaseCheckpoint' }
  | LeaseCommandResult
  | { readonly type: 'lock'; readonly result: LockResult }
  | { readonly type: 'split'; readonly left: RangeDescriptor; readonly right: RangeDescriptor }
  | TxnCommandResult
  | MergeCommandResult
  | { readonly type: 'noop' };

export type QueryResult =
  | KvResult
  /** `next`: the key to go on from; absent when the span is read whole. There may be a `next` and no pairs. */
  | { readonly type: 'scan'; readonly kvs: readonly KeyValue[]; readonly next: Uint8Array | undefined }
  /** `ttlMs` -1: the lease is unknown. */
  | { readonly type: 'leaseKeepAlive'; readonly id: bigint; readonly incarnation: number; readonly ttlMs: number }
  | { readonly type: 'leaseTimeToLive'; readonly lease: LeaseInfo }
  | { readonly type: 'leaseKeys'; readonly keys: readonly Uint8Array[] }
  | { readonly type: 'leases'; readonly ids: readonly bigint[] }
  | SessionQueryResult
  | { readonly type: 'lock'; readonly result: LockQueryResult }
  | { readonly type: 'lockAwait'; readonly result: LockResult }
  /** `sessionAlive`: it was taken away from a holder whose session goes on. */
  | { readonly type: 'grantEnd'; readonly sessionAlive: boolean }
  /** The grant is the current one, and its holder is asked to let go; another answer to `grantEnd`. */
  | { readonly type: 'grantAsked'; readonly revocation: Revocation }
  /**
   * `floor`: the range may have counted revisions up to it by itself, of which the master did not know. Who asked for a
   * lower one may miss writes that were acknowledged before, and draws another, naming this as the floor.
   */
  | { readonly type: 'closedRevision'; readonly closed: number; readonly floor: number }
  | { readonly type: 'txnStatus'; readonly outcome: TxnState }
  | { readonly type: 'status'; readonly status: RangeStatus };

export interface RangeStatus {
  readonly rangeId: number;
  readonly leaderNode: number;
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly revision: number;
  readonly compactRevision: number;
  /** Approximate bytes of keys and values. */
  readonly bytes: number;
  readonly keys: number;
  readonly leases: number;
  readonly watches: number;
  /** As the leader sees them; only the answering replica itself when it does not lead. */
  readonly replicas: readonly {
    readonly replicaId: number;
    readonly nodeId: number;
    /** The highest log index known to be durable there. */
    readonly match: number;
    /** The highest log index known to be committed there; it applies up to it. */
    readonly commit: number;
    /** `leader`, or how the leader sends to it: `probe`, `replicate`, `snapshot`; `unknown` to one that does not lead. */
    readonly state: string;
  }[];
}
