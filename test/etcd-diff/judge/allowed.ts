/**
 * Where Remora differs from etcd 3.4 on purpose. Each row names one difference, as narrowly as it can be told, why it
 * is there, and where users read of it. Whatever no row covers is a finding.
 */

import { type Operation, operationsOf, type RangeStep, type Step, type TxnStep, writes } from '../requests/requests.ts';
import { type Answer, failed, Moment } from './answers.ts';
import type { Difference } from './compare.ts';
import { overlap } from './overlap.ts';

interface Reason {
  readonly name: string;
  readonly why: string;
  /** Where it is documented, or what decides. */
  readonly source: string;
}

/** Remora refuses what etcd may take. etcd does not get the request then, so that both keep the same state. */
export interface AllowedRefusal extends Reason {
  covers(step: Step, error: string): boolean;
}

/** A part of two answers that may differ. */
export interface AllowedDifference extends Reason {
  covers(step: Step, difference: Difference, answers: { readonly etcd: Answer; readonly remora: Answer }): boolean;
}

const DUPLICATE_KEY = '3 etcdserver: duplicate key given in txn request';
const TOO_MANY_OPERATIONS = '3 etcdserver: too many operations in txn request';
const DEPTH_MAX = 16;
const INVALID_SORT = '3 etcdserver: invalid sort option';
const FUTURE_REVISION = '11 etcdserver: mvcc: required revision is a future revision';

const REFUSALS: readonly AllowedRefusal[] = [
  {
    name: 'put and delete of one key',
    why: 'etcd takes a delete in a nested transaction beside a put in another one that comes before it, and a delete from a key on beside any put',
    source: 'docs/reference/etcd.md',
    covers: (step, error) => step.do === 'txn' && error === DUPLICATE_KEY && overlap(step),
  },
  {
    name: 'past revision in a transaction that writes',
    why: 'a range whose last change is older than a revision cannot tell whether it is in the future',
    source: 'docs/reference/etcd.md, decision 19',
    covers: (step, error) => step.do === 'txn' && error === FUTURE_REVISION && writes(step) && readsKnownRevision(step),
  },
  {
    name: 'depth of transactions',
    why: 'they are nested 16 deep at most; in etcd only by the number of operations on a path',
    source: 'docs/reference/etcd.md',
    covers: (step, error) => step.do === 'txn' && error === TOO_MANY_OPERATIONS && depthOf(step) > DEPTH_MAX,
  },
  {
    name: 'unknown sort option',
    why: 'refused as etcd does since 3.5; 3.4 takes an unknown order for none, and ends upon an unknown target',
    source: 'etcd 3.6, api/v3rpc/key.go, checkRangeRequest',
    covers: (step, error) => error === INVALID_SORT && rangesOf(step).some(hasUnknownSort),
  },
  {
    name: 'unknown comparison',
    why: 'etcd takes an unknown result as one that holds, and an unknown target as one that is equal',
    source: 'docs/reference/etcd.md',
    covers: (step, error) =>
      step.do === 'txn' && /^3 the compare (result|target) is unknown$/.test(error) && hasUnknownCompare(step),
  },
];

const COMPACTED = '11 etcdserver: mvcc: required revision has been compacted';
const WATCH_COMPACTED = 'etcdserver: mvcc: required revision has been compacted';
const KEY_NOT_FOUND = '3 etcdserver: key not found';
const LEASE_NOT_FOUND = '5 etcdserver: requested lease not found';

export const DIFFERENCES: readonly AllowedDifference[] = [
  {
    name: 'older header of a keep-alive or a watch',
    why: 'nobody reads at it. In etcd, too, a member that lags answers both with what it has',
    source: 'docs/reference/etcd.md, decision 71',
    covers: (step, { path, why = '' }, { remora }) =>
      (step.do === 'keepAlive' ||
        step.do === 'cancel' ||
        (step.do === 'watch' && (step.start !== undefined || isRefused(remora)))) &&
      path === 'header.revision' &&
      /(is part of|is before) it$|^only one side/.test(why),
  },
  {
    name: 'which of two faults of a put is told',
    why: 'Remora looks for the key first, as etcd does in transactions',
    source: 'docs/reference/etcd.md',
    covers: (step, { path, etcd, remora }) =>
      step.do === 'put' && path === 'error' && etcd === LEASE_NOT_FOUND && remora === KEY_NOT_FOUND,
  },
  {
    name: 'end of a watch whose events are compacted',
    why: 'it names a revision and a reason beside the compacted revision; in etcd it has neither',
    source: 'docs/reference/etcd.md',
    covers: (_, { path, etcd, remora }, answers) =>
      ((path === 'reason' && etcd === '' && remora === WATCH_COMPACTED) ||
        (path === 'header.revision' && etcd instanceof Moment && etcd.revision === 0)) &&
      reasonOf(answers.remora) === WATCH_COMPACTED,
  },
  {
    name: 'negative start of a watch',
    why: 'refused as compacted when the watch is created, as etcd does since 3.6; 3.4 creates the watch and then ends it',
    source: 'etcd 3.6, server/etcdserver/api/v3rpc/watch.go, recvLoop',
    covers: (step, _, { remora }) =>
      step.do === 'watch' &&
      step.start !== undefined &&
      'raw' in step.start &&
      step.start.raw < 0n &&
      reasonOf(remora) === WATCH_COMPACTED,
  },
  {
    name: 'which of several faults of a transaction is told',
    why: 'Remora tells of the first one in the order of operations, as etcd does since 3.6; 3.4 looks at puts before reads',
    source: 'etcd 3.6, server/etcdserver/txn/txn.go, checkTxn',
    covers: (step, { path, etcd, remora }) =>
      step.do === 'txn' &&
      path === 'error' &&
      (etcd === LEASE_NOT_FOUND || etcd === KEY_NOT_FOUND) &&
      (remora === COMPACTED || remora === FUTURE_REVISION),
  },
];

/** A request that etcd understands otherwise is asked of it in the words for what Remora understands. */
export interface Translation extends Reason {
  /** Undefined: it means the same to both. */
  range(step: RangeStep, isInTxn: boolean): RangeStep | undefined;
}

const TRANSLATIONS: readonly Translation[] = [
  {
    name: 'limit without a sort order',
    why: 'Remora sorts, then cuts; etcd cuts by keys first when no order is named, and sorts what is left',
    source: 'docs/reference/etcd.md',
    range: (step) =>
      (step.limit ?? 0n) > 0n && (step.sortTarget ?? 0) !== 0 && (step.sortOrder ?? 0) === 0
        ? { ...step, sortOrder: 1 }
        : undefined,
  },
  {
    name: 'negative revision in a transaction',
    why: 'means none, as outside of transactions; etcd calls it compacted, but only there',
    source: 'docs/reference/etcd.md',
    range: ({ revision, ...step }, isInTxn) =>
      isInTxn && revision !== undefined && 'raw' in revision && revision.raw < 0n ? step : undefined,
  },
];

/** Of a watch. */
function isRefused(answer: Answer): boolean {
  return (answer as { readonly canceled?: unknown }).canceled === true;
}

function reasonOf(answer: Answer): unknown {
  return (answer as { readonly reason?: unknown }).reason;
}

const SORT_ORDERS = 3;
const SORT_TARGETS = 5;
const COMPARE_RESULTS = 4;
const COMPARE_TARGETS = 5;

function depthOf({ success, failure }: TxnStep): number {
  const inner = [...success, ...failure].map((op) => (op.do === 'txn' ? depthOf(op) : 0));
  return 1 + Math.max(0, ...inner);
}

function hasUnknownSort({ sortOrder = 0, sortTarget = 0 }: RangeStep): boolean {
  return sortOrder >= SORT_ORDERS || sortTarget >= SORT_TARGETS;
}

function hasUnknownCompare(step: TxnStep): boolean {
  return [step, ...operationsOf(step)].some(
    (op) =>
      op.do === 'txn' &&
      op.compare.some(({ result, target }) => result >= COMPARE_RESULTS || target >= COMPARE_TARGETS),
  );
}

function rangesOf(step: Step): readonly RangeStep[] {
  const all = step.do === 'txn' ? [...operationsOf(step)] : [step];
  return all.filter((each) => each.do === 'range');
}

function readsKnownRevision(step: TxnStep): boolean {
  return [...operationsOf(step)].some((op) => op.do === 'range' && op.revision !== undefined && 'ago' in op.revision);
}

/** What etcd is to be asked. `onRow` hears of each translation. */
export function askedOfEtcd<T extends Step | Operation>(
  step: T,
  onRow: (row: Translation) => void,
  isInTxn = false,
): T {
  const inside = (op: Operation): Operation => askedOfEtcd(op, onRow, true);
  if (step.do === 'txn') return { ...step, success: step.success.map(inside), failure: step.failure.map(inside) };
  if (step.do !== 'range') return step;
  let range: RangeStep = step;
  for (const row of TRANSLATIONS) {
    const translated = row.range(range, isInTxn);
    if (translated === undefined) continue;
    onRow(row);
    range = translated;
  }
  return range as T;
}

/** What Remora refuses whatever etcd does, so that it must not take it. */
export function wronglyTaken(step: Step, remora: Answer): Difference | undefined {
  if (step.do !== 'txn' || failed(remora) !== undefined || !overlap(step)) return undefined;
  return { path: 'taken', etcd: null, remora: true, why: 'a put and a delete, or two puts, can meet on one key' };
}

/** The refusal that covers the answer, if it is one. */
export function refusalOf(step: Step, remora: Answer): AllowedRefusal | undefined {
  const error = failed(remora);
  return error === undefined ? undefined : REFUSALS.find((row) => row.covers(step, error));
}
