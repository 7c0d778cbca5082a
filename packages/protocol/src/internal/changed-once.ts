/**
 * A transaction changes each key at most once, so that key and revision name one version of it.
 *
 * CO1. Two operations can *meet* when one request can execute both: operations of one list, and everything nested in
 *      that list. The `success` and the `failure` of one transaction exclude each other, with everything nested in
 *      either. What comparisons say does not count: they may be contradictory, or always hold.
 * CO2. A transaction is refused when two puts of one key can meet, or a put of a key and a delete that covers it, in
 *      whichever order they stand and however deep they are nested. Deletes may overlap each other, as the second one
 *      finds nothing; reads may overlap everything.
 * CO3. Which keys exist does not count, so that the same request is refused or accepted whatever is stored.
 *
 * Source: `checkIntervals` of etcd (`server/etcdserver/api/v3rpc/key.go`), which differs in two ways (decision 69): it
 * compares the puts of a nested transaction only with deletes that stand before it or in a list around it, and it
 * does not recognize a delete from a key to the last one.
 */
import { asBuffer, type Bytes, ServiceError } from '@remora/base';
import type { DeleteOp, KvOp, PutOp, Txn } from './kv-types.ts';

/** A put or a delete, and the keys that it may change: as latin1 text, which has the order of bytes. */
interface Change {
  readonly op: PutOp | DeleteOp;
  readonly start: string;
  /** Exclusive; undefined is behind all keys. */
  readonly end: string | undefined;
  /** Changes of one group exclude each other, or were compared before. */
  group: number;
}

/** Two operations that would change one key. */
interface Clash {
  readonly put: PutOp;
  readonly other: PutOp | DeleteOp;
}

/** The reason why a transaction could change a key twice (CO2): an error with DUPLICATE_KEY; undefined if it cannot. */
export function changedTwice({ success, failure }: Pick<Txn, 'success' | 'failure'>): ServiceError | undefined {
  let first: Clash | undefined;
  const onClash = (clash: Clash): void => {
    first ??= clash;
  };
  changesOf(success, onClash);
  changesOf(failure, onClash);
  return first && refusalOf(first);
}

/** All changes of a list, including nested ones, in the order of their keys. */
function changesOf(ops: readonly KvOp[], onClash: (clash: Clash) => void): Change[] {
  const changes: Change[] = [];
  for (const [group, op] of ops.entries()) {
    if (op.type === 'txn') {
      for (const change of changesOf(op.txn.success, onClash)) changes.push(take(change, group));
      for (const change of changesOf(op.txn.failure, onClash)) changes.push(take(change, group));
    } else if (op.type !== 'range') {
      const change = changeOf(op, group);
      if (change !== undefined) changes.push(change);
    }
  }
  if (changes.length < 2) return changes;
  // The changes of nested lists are already in order, which makes sorting faster.
  changes.sort(byStart);
  const clash = firstClash(changes);
  if (clash !== undefined) onClash(clash);
  return changes;
}

function take(change: Change, group: number): Change {
  change.group = group;
  return change;
}

/** Undefined: it changes nothing, because its span is empty. */
function changeOf(op: PutOp | DeleteOp, group: number): Change | undefined {
  const start = textOf(op.key);
  const end = op.type === 'put' ? undefined : op.end;
  if (end === undefined) return { op, start, end: `${start}\0`, group };
  if (end.length === 0) return { op, start, end: undefined, group };
  const to = textOf(end);
  return start < to ? { op, start, end: to, group } : undefined;
}

/** Deletes before puts of the key at which they begin. */
function byStart(a: Change, b: Change): number {
  if (a.start !== b.start) return a.start < b.start ? -1 : 1;
  if (a.op.type === b.op.type) return 0;
  return a.op.type === 'delete' ? -1 : 1;
}

/**
 * Finds two changes of different groups, in the order of `byStart`, that clash. A put is compared with the furthest
 * reaching delete that begins at its key or before it, and with the furthest reaching one of all other groups.
 */
function firstClash(changes: readonly Change[]): Clash | undefined {
  let furthest: Change | undefined;
  let second: Change | undefined;
  let before: Change | undefined;
  for (const change of changes) {
    const { op, start, group } = change;
    if (op.type === 'delete') {
      if (furthest === undefined || reachesFurther(change, furthest)) {
        if (furthest?.group !== group) second = furthest;
        furthest = change;
      } else if (furthest.group !== group && (second === undefined || reachesFurther(change, second))) second = change;
      continue;
    }
    const other = furthest?.group === group ? second : furthest;
    if (other !== undefined && (other.end === undefined || start < other.end)) return { put: op, other: other.op };
    if (before?.start === start && before.group !== group) return { put: op, other: before.op };
    // Puts of one key in one group are adjacent: the first of them represents all.
    if (before?.start !== start) before = change;
  }
  return undefined;
}

function reachesFurther({ end }: Change, { end: other }: Change): boolean {
  return other !== undefined && (end === undefined || end > other);
}

function refusalOf({ put, other }: Clash): ServiceError {
  const what = other.type === 'put' ? 'another put of it' : `the delete of ${spanText(other)}`;
  const message =
    `the transaction can change the key ${keyText(put.key)} twice, by a put and by ${what}: ` +
    'change each key once, or put the operations into branches that exclude each other';
  return new ServiceError('DUPLICATE_KEY', message);
}

function spanText({ key, end }: DeleteOp): string {
  if (end === undefined) return keyText(key);
  return end.length === 0 ? `all keys from ${keyText(key)} on` : `keys from ${keyText(key)} to ${keyText(end)}`;
}

const SHOWN_MAX = 60;

/** A message reaches terminals and logs: everything but printable ASCII is escaped. */
function keyText(key: Bytes): string {
  const shown = textOf(key.subarray(0, SHOWN_MAX)).replace(
    /[^ -~]|["\\]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return `"${shown}"${key.length > SHOWN_MAX ? '…' : ''}`;
}

function textOf(bytes: Bytes): string {
  return asBuffer(bytes).toString('latin1');
}
