/** Answers to ordinary requests that come near transactions over several ranges. */
import { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { failed, type Outcome } from '../state/outcome-codec.ts';
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
  return outcome.ok && outcome.result.type === 'txnPart';
}

/** What a command is answered whose request id is remembered. Only a coordinator can put together what ranges had of it. */
export function rememberedAnswer(command: Command, outcome: Outcome): Outcome {
  if (!isPartial(outcome) || command.type === 'txnPrepare') return outcome;
  const message = 'the request was applied as a transaction over several ranges, whose results are not known here';
  const details = { applied: true };
  return failed(outcome.revision, new ServiceError('UNKNOWN_OUTCOME', message, { details }));
}
