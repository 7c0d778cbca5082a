/**
 * What goes through a range's log. Commands are stored: tags and positions are only ever appended to, and a reader
 * refuses fields that it does not know.
 */
import {
  added,
  bytes,
  field,
  int,
  int64,
  list,
  maybe,
  ms,
  optional,
  spread,
  struct,
  text,
  textMap,
  uint,
  union,
  variant,
  wideInt64,
  yes,
} from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { Epoch } from './descriptor.ts';
import { PlainOp, Txn } from './kv-types.ts';
import { LEASE_COMMANDS, OWNER } from './lease-api.ts';
import { ConditionKind, LockCommandKind } from './lock-kinds.ts';
import { MERGE_COMMANDS } from './merge-api.ts';
import { ChildReplica } from './split-api.ts';
import { TXN_COMMANDS } from './transaction-api.ts';

const INCARNATION = field(uint, 'Tells it from earlier leases of the same id; 0: any.');
const TTL_MS = field(ms, 'Milliseconds that it outlives its last heartbeat.');
const SHOWN_CONDITION = 'Shown with it: what holder and cluster agreed on about heartbeats.';

/** Tags 10 to 14 are those of transactions, 15 to 18 those of merges, 20 to 23 those of leases in several ranges. */
export const Command = union('command', 'type', {
  txn: variant(0, { txn: field(Txn, 'A transaction in one range.') }),
  /** A transaction of one operation, answered with its result: the hot path of put and delete. */
  kv: variant(1, { op: field(PlainOp, 'The operation.') }),
  compact: variant(2, { revision: field(uint, 'Older versions of keys than at this revision are dropped.') }),
  leaseGrant: variant(3, {
    id: field(int64, 'Chosen by the client or by the gateway; never 0.'),
    ttlMs: TTL_MS,
    attributes: field(textMap, 'Shown with a session: client name, host, process id.'),
    condition: added(maybe(ConditionKind, SHOWN_CONDITION), { since: '0.1.0', absent: undefined }),
    owner: added(maybe(text, OWNER), { since: '0.1.0', absent: undefined }),
  }),
  /** The incarnation 0 means whichever lease is there (etcd's revoke). */
  leaseRevoke: variant(4, {
    id: field(wideInt64, 'The lease.'),
    incarnation: INCARNATION,
    ifEmpty: added(
      maybe(
        yes,
        'The home refuses it unless the lease is one that ends when it is empty, and has nothing in the home.',
      ),
      { since: '0.1.0', absent: undefined },
    ),
  }),
  /**
   * Internal: proposed by the leader; refused when another term has begun or the lease was renewed since (traps 18).
   */
  leaseExpire: variant(5, {
    id: field(wideInt64, 'The lease.'),
    incarnation: INCARNATION,
    term: field(uint, "The leader's term."),
  }),
  lock: variant(6, { command: field(LockCommandKind, 'What to do with a lock.') }),
  /** Changes nothing; a barrier, and a way to carry range time on. */
  noop: variant(7, {}),
  /**
   * Cuts the range in two at a routing key, from which on the keys are the child's. Internal: its leader proposes it,
   * in an entry of its own, with the ids that the masters gave out for the range as it was at `epoch`.
   */
  split: variant(8, {
    cut: spread(
      struct('split', {
        at: field(bytes, 'The first routing key of the child.'),
        epoch: field(Epoch, 'The epoch of the range for which the ids were allocated.'),
        childId: field(uint, 'The id of the new range.'),
        replicas: field(list(ChildReplica), 'A replica of the child for each of the range, on the same nodes.'),
        keys: field(uint, 'About how many plain keys leave, as measured beforehand.'),
        bytes: field(uint, 'About how many bytes of them leave, with their values.'),
      }),
      'The split.',
    ),
  }),
  /**
   * Begins a restore: revisions up to this one count as used, and their history as compacted. Refused where there are
   * keys or leases. It comes alone in its entry.
   */
  raiseRevision: variant(9, { to: field(uint, 'The revision.') }),
  ...TXN_COMMANDS,
  ...MERGE_COMMANDS,
  ...LEASE_COMMANDS,
  /**
   * Gives a lease another TTL. It is no renewal: the lease keeps the time that it has left, and the next heartbeat is
   * for the new TTL. A change that comes after a later one is refused.
   */
  leaseChange: variant(24, {
    id: field(int64, 'The lease.'),
    incarnation: INCARNATION,
    number: field(uint, 'The client numbers the changes from 1.'),
    ttlMs: TTL_MS,
    condition: maybe(ConditionKind, SHOWN_CONDITION),
  }),
  /**
   * The time that is left of a lease whose client has been silent for a while: leaders after this `term` give it no
   * more. Internal, as `leaseExpire`.
   */
  leaseCheckpoint: variant(25, {
    id: field(int64, 'The lease.'),
    incarnation: INCARNATION,
    term: field(uint, "The leader's term."),
    remainingMs: field(optional(ms), 'Milliseconds that are left; absent: its client was heard since.'),
  }),
  /** Corrects the counts of the range. Internal: its leader proposes it, alone in its entry. */
  recount: variant(26, {
    version: field(uint, 'The version of the range in which the keys were counted.'),
    index: field(uint, 'The index of the last entry that had been applied then.'),
    keys: field(int, 'So many plain keys more, or fewer.'),
    bytes: field(int, 'So many bytes more, or fewer.'),
  }),
});
export type Command = Infer<typeof Command>;
