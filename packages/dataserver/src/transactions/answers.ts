/** Answers to requests that touch transactions over several ranges. */
import { compareBytes, ServiceError } from '@remora/base';
import {
  type Command,
  type PartResult,
  TXN_HOLDERS_MAX,
  type TxnPartOutcome,
  type TxnPrepareResult,
} from '@remora/protocol';
import { failed, type Outcome, rememberable } from '../state/outcomes/outcome-codec.ts';
import type { PreparedPart } from './prepared-part.ts';

/**
 * The outcome of a command that has to wait for a transaction. The command changed nothing, and the outcome is not
 * remembered.
 */
export function heldOutcome(revision: number, { txnId }: PreparedPart): Outcome {
  const message = 'a transaction over several ranges holds what the request needs; nothing was changed';
  return failed(revision, new ServiceError('UNAVAILABLE', message, { details: { heldBy: txnId } }));
}

/** Returns the transaction that a command has to wait for; undefined for any other outcome. */
export function heldBy(outcome: Outcome): string | undefined {
  if (outcome.ok || outcome.code !== 'UNAVAILABLE') return undefined;
  const txnId = outcome.details?.heldBy;
  return typeof txnId === 'string' ? txnId : undefined;
}

/** Whether an outcome holds only one range's share of a transaction over several ranges. */
export function isPartial(outcome: Outcome): boolean {
  return partOf(outcome) !== undefined;
}

function partOf(outcome: Outcome): TxnPartOutcome | undefined {
  return outcome.ok && outcome.result.type === 'txnPart' ? outcome.result : undefined;
}

/** Returns the remembered results of a transaction; undefined if they are not remembered. */
export function rememberedResults(outcome: Outcome | undefined, txnId: string): readonly PartResult[] | undefined {
  const part = outcome && partOf(outcome);
  return part?.txnId === txnId ? part.results : undefined;
}

/** Joins pieces of operations without duplicates: both halves of a range that was split may remember the same piece. */
export function joinedResults(a: readonly PartResult[], b: readonly PartResult[]): readonly PartResult[] {
  const isIn = (one: PartResult): boolean =>
    a.some(({ number, key }) => number === one.number && compareBytes(key, one.key) === 0);
  return [...a, ...b.filter((one) => !isIn(one))];
}

/**
 * Combines what two merged ranges remember of a request; undefined: no more than `mine`. If one of them has lost its
 * results of a transaction, the combined results are incomplete.
 */
export function joinedOutcome(mine: Outcome, theirs: Outcome): Outcome | undefined {
  const own = partOf(mine);
  if (own === undefined || !mine.ok) return undefined;
  if (!theirs.ok) return theirs;
  const other = rememberedResults(theirs, own.txnId);
  if (other === undefined) return undefined;
  const results = joinedResults(own.results, other);
  return results.length === own.results.length ? undefined : rememberable({ ...mine, result: { ...own, results } });
}

/**
 * The answer to a command whose request id is remembered. Only a coordinator can combine the results of several ranges.
 */
export function rememberedAnswer(command: Command, outcome: Outcome): Outcome {
  if (!isPartial(outcome) || command.type === 'txnPrepare') return outcome;
  const message = 'the request was applied as a transaction over several ranges, whose results are not known here';
  return failed(outcome.revision, new ServiceError('RESULT_LOST', message));
}

/** Returns the transactions that conflicted with a prepare. */
export function inTheWay(outcome: Outcome): readonly string[] {
  if (!outcome.ok || outcome.result.type !== 'txnPrepare' || outcome.result.answer !== 'conflict') return NOBODY;
  return outcome.result.holders.map(({ txnId }) => txnId);
}

const NOBODY: readonly string[] = [];

/** The result of a prepare that meets intents of other transactions. */
export function conflictWith(parts: readonly PreparedPart[]): TxnPrepareResult {
  const holders = parts
    .slice(0, TXN_HOLDERS_MAX)
    .map(({ txnId, requestId, primaryKey }) => ({ txnId, requestId, primaryKey }));
  return { type: 'txnPrepare', answer: 'conflict', holders };
}
