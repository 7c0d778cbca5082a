/** Answers to requests that come near transactions over several ranges. */
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

/** Of a command that has to wait for a transaction; it changed nothing, and is not remembered. */
export function heldOutcome(revision: number, { txnId }: PreparedPart): Outcome {
  const message = 'a transaction over several ranges holds what the request needs; nothing was changed';
  return failed(revision, new ServiceError('UNAVAILABLE', message, { details: { heldBy: txnId } }));
}

/** The transaction that a command has to wait for; undefined when it came to something else. */
export function heldBy(outcome: Outcome): string | undefined {
  if (outcome.ok || outcome.code !== 'UNAVAILABLE') return undefined;
  const txnId = outcome.details?.heldBy;
  return typeof txnId === 'string' ? txnId : undefined;
}

/** Whether an outcome is what one range had of a transaction over several. */
export function isPartial(outcome: Outcome): boolean {
  return partOf(outcome) !== undefined;
}

function partOf(outcome: Outcome): TxnPartOutcome | undefined {
  return outcome.ok && outcome.result.type === 'txnPart' ? outcome.result : undefined;
}

/** The results that are remembered of a transaction; undefined if they are not. */
export function rememberedResults(outcome: Outcome | undefined, txnId: string): readonly PartResult[] | undefined {
  const part = outcome && partOf(outcome);
  return part?.txnId === txnId ? part.results : undefined;
}

/** Pieces of operations, each once: both halves of a range that was split may remember the same. */
export function joinedResults(a: readonly PartResult[], b: readonly PartResult[]): readonly PartResult[] {
  const isIn = (one: PartResult): boolean =>
    a.some(({ number, key }) => number === one.number && compareBytes(key, one.key) === 0);
  return [...a, ...b.filter((one) => !isIn(one))];
}

/**
 * What two ranges that are merged know of a request together; undefined: no more than `mine`. If one of them has lost
 * its results of a transaction, not all of them are known.
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
 * What a command is answered whose request id is remembered. Only a coordinator can put together what ranges had of it.
 */
export function rememberedAnswer(command: Command, outcome: Outcome): Outcome {
  if (!isPartial(outcome) || command.type === 'txnPrepare') return outcome;
  const message = 'the request was applied as a transaction over several ranges, whose results are not known here';
  return failed(outcome.revision, new ServiceError('RESULT_LOST', message));
}

/** The transactions that were in the way of a prepare. */
export function inTheWay(outcome: Outcome): readonly string[] {
  if (!outcome.ok || outcome.result.type !== 'txnPrepare' || outcome.result.answer !== 'conflict') return NOBODY;
  return outcome.result.holders.map(({ txnId }) => txnId);
}

const NOBODY: readonly string[] = [];

/** What a prepare comes to that meets intents of others. */
export function conflictWith(parts: readonly PreparedPart[]): TxnPrepareResult {
  const holders = parts
    .slice(0, TXN_HOLDERS_MAX)
    .map(({ txnId, requestId, primaryKey }) => ({ txnId, requestId, primaryKey }));
  return { type: 'txnPrepare', answer: 'conflict', holders };
}
