/** What a range does with its part of a transaction: before anybody has decided, and afterwards. */
import { type Bytes, ServiceError } from '@remora/base';
import type { CompareAnswer, OpFailure, PartOp, PartResult, PutOp, TxnPart } from '@remora/protocol';
import type { KeyOwners } from '../state/belongings.ts';
import type { KvChanges } from '../state/kv-changes.ts';
import { checkReadRevision, type Prefetched, type RevisionBounds } from '../state/kv-read.ts';
import { overlap } from './intents.ts';
import { isEmptyRange } from './prepared-part.ts';

export function answerCompares(part: TxnPart, changes: KvChanges, prefetched: Prefetched): readonly CompareAnswer[] {
  return part.compares.map((compare) => changes.compare(compare, prefetched));
}

export interface CheckedAgainst {
  readonly bounds: RevisionBounds;
  readonly leaseKnown: KeyOwners['known'];
  /** The lease that a key belongs to, 0: none; undefined: there is no such key. */
  readonly leaseOf: (key: Bytes) => bigint | undefined;
}

/**
 * Why operations could not be executed: all that they may fail for, as keys and leases are as they are now until the part
 * is resolved (T10 of decision 19).
 */
export function opFailures({ ops }: TxnPart, against: CheckedAgainst): readonly OpFailure[] {
  const failures: OpFailure[] = [];
  for (const [i, op] of ops.entries()) {
    const error = refusalOf(op, against) ?? secondChange(op, ops.slice(0, i));
    if (error === undefined) continue;
    const failure = { number: op.number, branch: op.branch, code: error.code, message: error.message };
    failures.push(error.details === undefined ? failure : { ...failure, details: error.details });
  }
  return failures;
}

function refusalOf({ op }: PartOp, { bounds, leaseKnown, leaseOf }: CheckedAgainst): ServiceError | undefined {
  switch (op.type) {
    case 'put':
      return refusalOfPut(op, leaseKnown, leaseOf);
    case 'range':
      return thrownBy(() => checkReadRevision(op.revision, bounds));
    case 'delete':
      return undefined;
  }
}

function refusalOfPut(
  op: PutOp,
  leaseKnown: KeyOwners['known'],
  leaseOf: CheckedAgainst['leaseOf'],
): ServiceError | undefined {
  const kept = op.ignoreValue || op.ignoreLease ? leaseOf(op.key) : 0n;
  if (kept === undefined) {
    return new ServiceError('INVALID_ARGUMENT', 'ignore_value and ignore_lease need a key that exists', {
      details: { etcd: 'keyNotFound' },
    });
  }
  const lease = op.ignoreLease ? kept : op.lease; // What is left of one that has ended is there for a while yet.
  if (lease === 0n || leaseKnown(lease, op.key)) return undefined;
  return new ServiceError('LEASE_NOT_FOUND', `lease ${lease} does not exist or has expired`);
}

function thrownBy(check: () => void): ServiceError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

/** Two puts, or a put and a delete, of one key in one branch: etcd's rule. That no path has any is for the coordinator. */
function secondChange({ op, branch }: PartOp, earlier: readonly PartOp[]): ServiceError | undefined {
  if (op.type === 'range' || isEmptyRange(op)) return undefined;
  const twice = earlier.some(
    (other) =>
      other.branch === branch &&
      other.op.type !== 'range' &&
      (op.type === 'put' || other.op.type === 'put') &&
      !isEmptyRange(other.op) &&
      overlap(op, other.op),
  );
  return twice ? new ServiceError('DUPLICATE_KEY', 'a transaction may change a key only once') : undefined;
}

/**
 * Executes the branches that were committed, in the order of their operations. An operation that cannot be executed,
 * although that was checked, changes nothing and has no result: the coordinator let a path change a key twice.
 */
export function executeBranches(
  ops: readonly PartOp[],
  branches: readonly number[],
  changes: KvChanges,
  prefetched: Prefetched,
): readonly PartResult[] {
  const results: PartResult[] = [];
  for (const { number, branch, op } of ops) {
    if (!branches.includes(branch)) continue;
    try {
      const result = changes.evaluate(op, prefetched);
      if (result.type !== 'txn') results.push({ number, key: op.key, result });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
    }
  }
  return results;
}
