/**
 * Finds the prepared part that a request of one range has to wait for (T2 and T10 of decision 19): the request would
 * write under an intent, read under an exclusive intent, or end something that the part needs.
 */
import { unreachable } from '@remora/base';
import type { LockId } from '@remora/lock';
import type { Command, KeyRange, Query, TxnPart } from '@remora/protocol';
import type { Attached } from '../state/leases/attachments.ts';
import type { LeaseEndingCommand } from '../state/leases/lease-ending.ts';
import { lockName, overlap } from './intents.ts';
import { isEmptyRange, type PreparedPart } from './prepared-part.ts';
import type { PreparedParts } from './prepared-parts.ts';
import { type Touching, touchedByOp, touchedByPart, touchedByQuery, touchedByTxn } from './touched-keys.ts';

/** Returns the plain keys and locks that a command takes from a lease. */
export type TakenBy = (command: LeaseEndingCommand) => Attached;

export function holderOf(command: Command, parts: PreparedParts, takenBy: TakenBy): PreparedPart | undefined {
  switch (command.type) {
    case 'kv':
      return firstOf((found) => touchedByOp(command.op, parts.holding(found)));
    case 'txn':
      return firstOf((found) => touchedByTxn(command.txn, parts.holding(found)));
    case 'leaseRevoke':
    case 'leaseExpire':
    case 'leaseEnd':
      return parts.withLease(command.id) ?? firstOf((found) => touchedByEnd(takenBy(command), parts.holding(found)));
    case 'lock':
      return firstOf((found) => parts.holding(found).changes(command.command.lock));
    case 'compact':
      return parts.againstCompaction(command.revision);
    case 'raiseRevision':
      return parts.all().next().value;
    case 'leaseGrant':
    case 'leaseChange':
    case 'leaseCheckpoint':
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseSettle':
    case 'split':
    case 'txnPrepare': // a conflicting prepare fails at once instead
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
    case 'seal':
    case 'unseal':
    case 'merge':
    case 'refuseMerge':
    case 'recount':
    case 'noop':
      return undefined;
    default:
      return unreachable(command);
  }
}

/** The changes made by the end of the lease that they belong to. */
function touchedByEnd({ keys, locks }: Attached, touching: Touching): void {
  for (const key of keys) touching.writes({ key });
  for (const lock of locks) touching.changes(lock);
}

/**
 * Whatever is prepared, reads at or below `closed` do not change any more. A `serializable` read of the current state
 * returns the state as it is. A read at a named revision has only one result.
 */
export function holderOfQuery(query: Query, parts: PreparedParts, closed: number): PreparedPart | undefined {
  const takesWhatThereIs = 'serializable' in query && query.serializable;
  return firstOf((found) => {
    const at = (revision: number): Touching =>
      parts.holding((part) => {
        if (revision === 0 ? !takesWhatThereIs : revision > Math.max(part.floor, closed)) found(part);
      });
    touchedByQuery(query, {
      ...NOT_TOUCHING,
      reads: (range, revision) => at(revision).reads(range, revision),
      writes: (range) => at(0).reads(range, 0), // a read-only transaction does not have this branch
    });
  });
}

function firstOf(search: (found: (part: PreparedPart) => void) => void): PreparedPart | undefined {
  let first: PreparedPart | undefined;
  search((part) => {
    first ??= part;
  });
  return first;
}

const NOT_TOUCHING: Touching = { reads() {}, writes() {}, requires() {}, changes() {} };

/** Whether a command and a part conflict, so that they must not run at the same time. */
export function overlapsPart(command: Command, part: TxnPart, takenBy: TakenBy): boolean {
  let overlaps = false;
  const meet = (range: KeyRange, exclusive: boolean): void => {
    const against = (held: KeyRange, changed: boolean): void => {
      overlaps ||= (exclusive || changed) && !isEmptyRange(range) && !isEmptyRange(held) && overlap(range, held);
    };
    touchedByPart(part, {
      ...NOT_TOUCHING,
      reads: (held) => against(held, false),
      writes: (held) => against(held, true),
    });
  };
  const changes = (lock: LockId): void => {
    const name = lockName(lock);
    touchedByPart(part, {
      ...NOT_TOUCHING,
      requires: (required) => {
        overlaps ||= lockName(required) === name;
      },
    });
  };
  const touching: Touching = {
    ...NOT_TOUCHING,
    reads: (range) => meet(range, false),
    writes: (range) => meet(range, true),
    changes,
  };
  if (command.type === 'kv') touchedByOp(command.op, touching);
  else if (command.type === 'txn') touchedByTxn(command.txn, touching);
  else if (command.type === 'lock') touching.changes(command.command.lock);
  else if (command.type === 'leaseRevoke' || command.type === 'leaseExpire' || command.type === 'leaseEnd') {
    touchedByEnd(takenBy(command), touching);
    overlaps ||= part.ops.some(({ op }) => op.type === 'put' && op.lease === command.id);
  }
  return overlaps;
}
