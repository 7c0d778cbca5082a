/**
 * How a range checks and executes its part of a transaction, before and after the decision.
 *
 * PE1. A part is executed whole, or the process stops: when a transaction commits, another range may have executed its
 *      part already, so an operation that fails now would leave the transaction done in one range and undone in
 *      another.
 * PE2. So a prepare checks every reason for which an operation can fail, and the result of these checks stays valid
 *      until the part is resolved (T10 of decision 19):
 *      - A put that keeps the value or the lease needs its key. Intents protect the key, also from the end of its
 *        lease.
 *      - A put names a lease, or keeps the one of its key: the lease is alive at prepare. After that, an end of the
 *        lease waits for the part, or leaves the key to a later entry; a merge may bring the part to a range where the
 *        lease has ended already. Therefore the commit asks only whether the range still knows the lease (`ofPrepared`
 *        of lease-ownership.ts), as it does while a key, a reference or a span of the lease is left.
 *      - No key is changed twice. The gateway has refused a transaction that could (changed-once.ts of protocol), as
 *        only the gateway knows which branches exclude each other; a prepare compares the operations within each
 *        branch.
 *      - The keys that an operation covers stay within the limits of one operation: intents keep them as they were at
 *        prepare.
 * PE3. The one exception changes nothing: a read at an earlier revision has no result when a merge has brought a later
 *      compaction since it was prepared. The gateway reports that the transaction was applied and a result is lost.
 */
import { type Bytes, InvariantError, ServiceError } from '@remora/base';
import {
  type CompareAnswer,
  changedTwice,
  type OpFailure,
  type PartOp,
  type PartResult,
  type PutOp,
  type TxnPart,
} from '@remora/protocol';
import type { KvChanges } from '../state/kv/kv-changes.ts';
import { checkReadRevision, type Prefetched, type RevisionBounds } from '../state/kv/kv-read.ts';
import type { KeyOwners } from '../state/leases/lease-ownership.ts';

export function answerCompares(part: TxnPart, changes: KvChanges, prefetched: Prefetched): readonly CompareAnswer[] {
  return part.compares.map((compare) => changes.compare(compare, prefetched));
}

export interface CheckedAgainst {
  readonly bounds: RevisionBounds;
  readonly leaseKnown: KeyOwners['known'];
  /** The lease that a key belongs to, 0: none; undefined: the key does not exist. */
  readonly leaseOf: (key: Bytes) => bigint | undefined;
}

/** Returns the reasons why operations could not be executed (PE2). */
export function opFailures({ ops }: TxnPart, against: CheckedAgainst): readonly OpFailure[] {
  const failures: OpFailure[] = [];
  const byBranch = new Map<number, PartOp[]>();
  for (const op of ops) {
    const error = refusalOf(op, against);
    if (error !== undefined) failures.push(failureOf(op, error));
    const branch = byBranch.get(op.branch);
    if (branch === undefined) byBranch.set(op.branch, [op]);
    else branch.push(op);
  }
  for (const branch of byBranch.values()) {
    const error = changedTwice({ success: branch.map(({ op }) => op), failure: [] });
    const [first] = branch;
    if (error !== undefined && first !== undefined) failures.push(failureOf(first, error));
  }
  return failures;
}

function failureOf({ number, branch }: PartOp, { code, message, details }: ServiceError): OpFailure {
  return details === undefined ? { number, branch, code, message } : { number, branch, code, message, details };
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
  const lease = op.ignoreLease ? kept : op.lease; // Rows of an ended lease may stay for a while.
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

/** The branches in which an operation would change something: a put does, and a delete of existing keys. */
export function changingBranches({ ops }: TxnPart, changes: KvChanges, prefetched: Prefetched): readonly number[] {
  const changing = new Set<number>();
  for (const { branch, op } of ops) {
    if (changing.has(branch) || op.type === 'range') continue;
    if (op.type === 'put' || changes.has(op, prefetched)) changing.add(branch);
  }
  return [...changing];
}

/** The inputs for executing the branches of a commit. */
export interface CommitMeans {
  readonly changes: KvChanges;
  readonly prefetched: Prefetched;
  /** The range's present compact revision. */
  readonly compactRevision: number;
}

/** Executes the committed branches in the order of their operations. Throws an `InvariantError` (PE1). */
export function executeBranches(
  ops: readonly PartOp[],
  branches: readonly number[],
  means: CommitMeans,
): readonly PartResult[] {
  const committed = new Set(branches);
  const results: PartResult[] = [];
  for (const { number, branch, op } of ops) {
    if (!committed.has(branch)) continue;
    if (op.type === 'range' && op.revision > 0 && op.revision < means.compactRevision) continue; // PE3
    const result = executed(op, number, means);
    if (result.type !== 'txn') results.push({ number, key: op.key, result });
  }
  return results;
}

function executed(op: PartOp['op'], number: number, { changes, prefetched }: CommitMeans) {
  try {
    return changes.evaluate(op, prefetched);
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    const what = `operation ${number} of a committed transaction, a ${op.type}, was prepared and cannot be executed`;
    throw new InvariantError(`PE1: ${what}: ${cause.message} (${cause.code})`, { cause });
  }
}
