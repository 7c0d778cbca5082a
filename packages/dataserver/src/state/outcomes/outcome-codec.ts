import { type Bytes, type ErrorCode, isErrorCode, type Packer, packedNumberBytes, ServiceError } from '@remora/base';
import {
  asCount,
  asFields,
  asList,
  asMs,
  asText,
  type CommandResult,
  decodeCommandResult,
  decodeStored,
  encodeCommandResult,
  endOfText,
  type ItemPlace,
  invalid,
  type StoredFormat,
  StoredList,
} from '@remora/protocol';

/** The result of a command: the same on every replica, and the answer to a retry. */
export type Outcome =
  | { readonly ok: true; readonly revision: number; readonly result: CommandResult }
  | {
      readonly ok: false;
      readonly revision: number;
      readonly code: ErrorCode;
      readonly message: string;
      readonly details?: Readonly<Record<string, unknown>>;
    };

/** An outcome with its request id, kept until at least this range time. */
export interface Remembered {
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly outcome: Outcome;
}

/** Results above this are not kept: a retry learns that the command was applied, but not what it returned. */
const OUTCOME_BYTES_MAX = 16_384;
export const PAGE: StoredFormat = { what: 'a page of outcomes', version: 1, fields: 1 };

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
    case 'txnPart':
      return result.results.reduce((sum, inner) => sum + 96 + resultBytes(inner.result), 0);
    case 'txnDecide':
    case 'txnResolve':
      return (result.results ?? []).reduce((sum, inner) => sum + 96 + resultBytes(inner.result), 64);
    case 'txnPrepare':
      return result.answer === 'remembered' ? 64 + resultBytes(result.result) : 64;
    default:
      return 64;
  }
}

/**
 * The remembered form of an outcome: the outcome itself or, if it is large, only the fact that the command was applied.
 */
export function rememberable(outcome: Outcome): Outcome {
  if (outcomeBytes(outcome) <= OUTCOME_BYTES_MAX) return outcome;
  return {
    ok: false,
    revision: outcome.revision,
    code: 'RESULT_LOST',
    message: 'the request was applied by an earlier attempt, but its result was too large to keep',
  };
}

export function encodeOutcomePage(entries: readonly Remembered[]): Buffer {
  const page = new StoredList(PAGE);
  for (const entry of entries) page.add(entry, packRemembered);
  return page.row();
}

/** One of a page. */
export function packRemembered(out: Packer, { requestId, deadlineMs, outcome }: Remembered): void {
  out.list(3);
  out.text(requestId);
  out.number(deadlineMs);
  packOutcome(out, outcome);
}

/** Copies an item of another page, with a new deadline: the bytes are those that `packRemembered` would write. */
export function packMoved(
  out: Packer,
  source: Bytes,
  { from, to }: ItemPlace,
  deadlines: { readonly beforeMs: number; readonly afterMs: number },
): void {
  const idEnd = endOfText(source, from + 1); // behind the header of the item's list
  out.packedPart(source, from, idEnd);
  out.number(deadlines.afterMs);
  out.packedPart(source, idEnd + packedNumberBytes(deadlines.beforeMs), to);
}

/** Throws an `InvariantError` for anything else. */
export function decodeOutcomePage(bytes: Bytes): readonly Remembered[] {
  return decodeStored(PAGE, bytes, ([entries]) => asList(entries, 'outcomes', decodeRemembered));
}

export function decodeRemembered(raw: unknown): Remembered {
  const f = asFields(raw, 3, 'remembered outcome');
  return {
    requestId: asText(f[0], 'request id'),
    deadlineMs: asMs(f[1], 'deadline'),
    outcome: decodeOutcome(f[2]),
  };
}

function packOutcome(out: Packer, outcome: Outcome): void {
  if (outcome.ok) {
    out.list(2);
    out.number(outcome.revision);
    out.value(encodeCommandResult(outcome.result));
  } else out.value([outcome.revision, null, outcome.code, outcome.message, outcome.details ?? null]);
}

function decodeOutcome(raw: unknown): Outcome {
  if (!Array.isArray(raw)) throw invalid('outcome');
  const revision = asCount(raw[0], 'outcome revision');
  if (raw[1] !== null) return { ok: true, revision, result: decodeCommandResult(asFields(raw, 2, 'outcome')[1]) };
  const f = asFields(raw, 5, 'failed outcome');
  const code = asText(f[2], 'outcome code');
  if (!isErrorCode(code)) throw invalid(`the unknown code ${code}`);
  const failure = { ok: false as const, revision, code, message: asText(f[3], 'outcome message') };
  return f[4] === null ? failure : { ...failure, details: asDetails(f[4]) };
}

function asDetails(raw: unknown): Readonly<Record<string, unknown>> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw) || raw instanceof Uint8Array) {
    throw invalid('details of an outcome');
  }
  return { ...raw };
}
