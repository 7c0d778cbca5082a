/** Operations of a round as records of a history (test/checkers/history.ts). */
import type { HistoryRecord, Op, Value } from '../../checkers/index.ts';
import type { Workload } from '../journal/lines.ts';
import type { Operation, Round } from './evidence.ts';

/** A question and an answer in the form of histories, as the journals of registers, lists and locks contain them. */
interface Question {
  readonly c: string;
  readonly k: string;
  readonly op: Op;
  readonly v?: Value;
  readonly x?: Value;
}

interface Answer {
  readonly ok: boolean;
  readonly out?: Value;
  readonly revision?: number;
  readonly modRevision?: number;
  readonly until?: number;
}

/** An operation of registers, lists or locks, with its parts typed. */
export interface Asked extends Operation {
  readonly q: Question & { readonly until?: number };
  readonly a: Answer | undefined;
}

export function askedOf({ operations }: Round, w: Workload): readonly Asked[] {
  return operations.filter((operation) => operation.w === w) as unknown as readonly Asked[];
}

/** A refused operation has no record, because it had no effect. */
export function recordOf({ q, a, t0, t1, how }: Asked): HistoryRecord | undefined {
  const { c, k, op, v, x } = q;
  const request = { c, k, op, ...(v !== undefined && { v }), ...(x !== undefined && { x }), t0 };
  switch (how) {
    case 'refused':
      return undefined;
    case 'unknown':
      return { ...request, ok: false, t1: null };
    case 'done':
      return { ...request, ok: a?.ok === true, ...(a?.out !== undefined && { out: a.out }), t1 };
  }
}

export function recordsOf(asked: readonly Asked[]): readonly HistoryRecord[] {
  return inOrder(asked.flatMap((each) => recordOf(each) ?? []));
}

export function inOrder<T extends { readonly t0: number }>(records: readonly T[]): readonly T[] {
  return records.toSorted((a, b) => a.t0 - b.t0);
}
