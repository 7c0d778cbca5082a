import { assert, type Bytes, type ErrorCode, isErrorCode, ServiceError } from '@remora/base';
import { type CommandResult, decodeCommandResult, encodeCommandResult } from '@remora/protocol';
import { Packr } from 'msgpackr';
import type { Remembered } from './outcomes.ts';

/** What a command came to: the same on every replica, and what a retry is answered with. */
export type Outcome =
  | { readonly ok: true; readonly revision: number; readonly result: CommandResult }
  | {
      readonly ok: false;
      readonly revision: number;
      readonly code: ErrorCode;
      readonly message: string;
      readonly details?: Readonly<Record<string, unknown>>;
    };

/** Results above this are not kept: a retry learns that the command was applied, but not what it returned. */
export const OUTCOME_BYTES_MAX = 16_384;
const FORMAT = 1;
const packr = new Packr({ useRecords: false });

export function failed(revision: number, error: ServiceError): Outcome {
  const outcome = { ok: false as const, revision, code: error.code, message: error.message };
  return error.details === undefined ? outcome : { ...outcome, details: error.details };
}

export function errorOf(outcome: Extract<Outcome, { ok: false }>): ServiceError {
  return new ServiceError(
    outcome.code,
    outcome.message,
    outcome.details === undefined ? {} : { details: outcome.details },
  );
}

/** A rough size of a result in memory, cheap for the small ones of the hot path. */
export function outcomeBytes(outcome: Outcome): number {
  if (!outcome.ok) return 200;
  return 200 + resultBytes(outcome.result);
}

function resultBytes(result: CommandResult): number {
  switch (result.type) {
    case 'put':
      return result.prev === undefined ? 0 : result.prev.key.length + result.prev.value.length;
    case 'delete':
      return result.prev.reduce((sum, kv) => sum + kv.key.length + kv.value.length + 64, 0);
    case 'range':
      return result.kvs.reduce((sum, kv) => sum + kv.key.length + kv.value.length + 64, 0);
    case 'txn':
      return result.results.reduce((sum, inner) => sum + 32 + resultBytes(inner), 0);
    default:
      return 64;
  }
}

/** What is remembered of an outcome: itself, or when it is large that the command was applied. */
export function rememberable(outcome: Outcome): Outcome {
  if (outcomeBytes(outcome) <= OUTCOME_BYTES_MAX) return outcome;
  return {
    ok: false,
    revision: outcome.revision,
    code: 'UNKNOWN_OUTCOME',
    message: 'the request was applied by an earlier attempt, but its result was too large to keep',
    details: { applied: true },
  };
}

export function encodeOutcomePage(entries: readonly Remembered[]): Buffer {
  return packr.pack([FORMAT, entries.map((e) => [e.requestId, e.deadlineMs, encodeOutcome(e.outcome)])]);
}

export function decodeOutcomePage(bytes: Bytes): readonly Remembered[] {
  const [format, entries] = packr.unpack(bytes) as [number, [string, number, unknown[]][]];
  assert(format === FORMAT, `a page of outcomes has format ${format}`);
  return entries.map(([requestId, deadlineMs, outcome]) => ({
    requestId,
    deadlineMs,
    outcome: decodeOutcome(outcome),
  }));
}

function encodeOutcome(outcome: Outcome): unknown[] {
  if (outcome.ok) return [outcome.revision, encodeCommandResult(outcome.result)];
  return [outcome.revision, null, outcome.code, outcome.message, outcome.details ?? null];
}

function decodeOutcome(raw: readonly unknown[]): Outcome {
  const revision = raw[0] as number;
  if (raw[1] !== null) return { ok: true, revision, result: decodeCommandResult(raw[1]) };
  const code = raw[2] as string;
  assert(isErrorCode(code), `a stored outcome has the unknown code ${code}`);
  const details = raw[4] as Record<string, unknown> | null;
  return { ok: false, revision, code, message: raw[3] as string, ...(details === null ? {} : { details }) };
}
