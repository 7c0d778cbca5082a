import { type ErrorCode, isErrorCode, type Span, unreachable } from '@remora/base';
import type { CommandResult } from '../command.ts';
import {
  type CompareAnswer,
  type OpFailure,
  type PartOp,
  type PartResult,
  TXN_HOLDERS_MAX,
  TXN_ID_MAX,
  TXN_PARTS_MAX,
  type TxnCommand,
  type TxnCommandResult,
  type TxnCommit,
  type TxnDecide,
  type TxnHolder,
  type TxnPart,
  type TxnPrepareResult,
  type TxnResolution,
  type TxnState,
} from '../transaction-api.ts';
import { asBytes, asCount, asFields, asList, asMs, asText, invalid, wireWords } from './check.ts';
import { decodeCompare, decodeKvOp, decodeKvResult, encodeCompare, encodeKvOp, encodeKvResult } from './kv.ts';

/** Tags of these commands and their results, among those of all commands. Part of the log format: append only. */
export const TXN_COMMAND = { prepare: 10, decide: 11, resolve: 12, forget: 13, part: 14 } as const;

const COMPARE_ANSWERS = wireWords('answer of a comparison', ['holds', 'fails', 'nothing']);
const PREPARE_ANSWERS = wireWords('answer of a prepare', ['prepared', 'conflict', 'remembered', 'aborted']);
const DECISIONS = wireWords('decision', ['commit', 'abort', 'push']);
const STATES = wireWords('state of a transaction', ['pending', 'committed', 'aborted']);

export function isTxnCommandTag(tag: unknown): boolean {
  return typeof tag === 'number' && tag >= TXN_COMMAND.prepare && tag <= TXN_COMMAND.part;
}

export function encodeTxnCommand(command: TxnCommand): unknown[] {
  switch (command.type) {
    case 'txnPrepare': {
      const { txnId, part, requestId, primaryKey, expiresMs } = command;
      return [TXN_COMMAND.prepare, txnId, part, requestId, primaryKey, expiresMs, ...encodeTxnPart(command)];
    }
    case 'txnDecide':
      return [
        TXN_COMMAND.decide,
        command.txnId,
        command.primaryKey,
        command.requestId,
        encodeDecision(command.decision),
      ];
    case 'txnResolve': {
      const { txnId, part, span, requestId, resolution } = command;
      return [TXN_COMMAND.resolve, txnId, part, span.start, span.end, requestId, encodeTxnResolution(resolution)];
    }
    case 'txnForget':
      return [TXN_COMMAND.forget, command.txnId, command.primaryKey];
    default:
      return unreachable(command);
  }
}

export function decodeTxnCommand(raw: readonly unknown[]): TxnCommand {
  switch (raw[0]) {
    case TXN_COMMAND.prepare: {
      const f = asFields(raw, 8, 'prepare');
      return {
        type: 'txnPrepare',
        txnId: asTxnId(f[1]),
        part: asPart(f[2]),
        requestId: asText(f[3], 'prepare.requestId'),
        primaryKey: asBytes(f[4], 'prepare.primaryKey'),
        expiresMs: asMs(f[5], 'prepare.expiresMs'),
        ...decodeTxnPart(f[6], f[7]),
      };
    }
    case TXN_COMMAND.decide: {
      const f = asFields(raw, 5, 'decide');
      return {
        type: 'txnDecide',
        txnId: asTxnId(f[1]),
        primaryKey: asBytes(f[2], 'decide.primaryKey'),
        requestId: asText(f[3], 'decide.requestId'),
        decision: decodeDecision(f[4]),
      };
    }
    case TXN_COMMAND.resolve: {
      const f = asFields(raw, 7, 'resolve');
      return {
        type: 'txnResolve',
        txnId: asTxnId(f[1]),
        part: asPart(f[2]),
        span: { start: asBytes(f[3], 'resolve.start'), end: asBytes(f[4], 'resolve.end') },
        requestId: asText(f[5], 'resolve.requestId'),
        resolution: decodeTxnResolution(f[6]),
      };
    }
    case TXN_COMMAND.forget: {
      const f = asFields(raw, 3, 'forget');
      return { type: 'txnForget', txnId: asTxnId(f[1]), primaryKey: asBytes(f[2], 'forget.primaryKey') };
    }
    default:
      throw invalid('transaction command tag');
  }
}

/** `nested` encodes what an earlier attempt came to, which may be of any command. */
export function encodeTxnResult(result: TxnCommandResult, nested: (result: CommandResult) => unknown): unknown[] {
  switch (result.type) {
    case 'txnPrepare':
      return [TXN_COMMAND.prepare, PREPARE_ANSWERS.encode(result.answer), encodePrepared(result, nested)];
    case 'txnDecide':
      return [TXN_COMMAND.decide, encodeTxnState(result.outcome), encodeResults(result.results)];
    case 'txnResolve':
      return [TXN_COMMAND.resolve, encodeResults(result.results)];
    case 'txnForget':
      return [TXN_COMMAND.forget];
    case 'txnPart':
      return [TXN_COMMAND.part, result.txnId, encodeTxnCommit(result.commit), encodeResults(result.results)];
    default:
      return unreachable(result);
  }
}

export function decodeTxnResult(raw: readonly unknown[], nested: (raw: unknown) => CommandResult): TxnCommandResult {
  switch (raw[0]) {
    case TXN_COMMAND.prepare: {
      const f = asFields(raw, 3, 'prepare result');
      return decodePrepared(PREPARE_ANSWERS.decode(f[1]), f[2], nested);
    }
    case TXN_COMMAND.decide: {
      const f = asFields(raw, 3, 'decide result');
      return { type: 'txnDecide', outcome: decodeTxnState(f[1]), results: decodeResults(f[2]) };
    }
    case TXN_COMMAND.resolve:
      return { type: 'txnResolve', results: decodeResults(asFields(raw, 2, 'resolve result')[1]) };
    case TXN_COMMAND.forget:
      asFields(raw, 1, 'forget result');
      return { type: 'txnForget' };
    case TXN_COMMAND.part: {
      const f = asFields(raw, 4, 'outcome of a part');
      const results = asList(f[3], 'results of a part', decodePartResult);
      return { type: 'txnPart', txnId: asTxnId(f[1]), commit: decodeTxnCommit(f[2]), results };
    }
    default:
      throw invalid('transaction result tag');
  }
}

// ---------------------------------------------------------------------------------------------- parts

/** Two fields: also what a range stores of a part. */
export function encodeTxnPart({ compares, ops }: TxnPart): [unknown, unknown] {
  return [compares.map(encodeCompare), ops.map(({ number, branch, op }) => [number, branch, encodeKvOp(op)])];
}

export function decodeTxnPart(compares: unknown, ops: unknown): TxnPart {
  return {
    compares: asList(compares, 'compares of a part', decodeCompare),
    ops: asList(ops, 'operations of a part', decodePartOp),
  };
}

function decodePartOp(raw: unknown): PartOp {
  const f = asFields(raw, 3, 'operation of a part');
  const op = decodeKvOp(f[2]);
  if (op.type === 'txn') throw invalid('a part holds a nested transaction');
  return { number: asCount(f[0], 'operation.number'), branch: asCount(f[1], 'operation.branch'), op };
}

function encodeResults(results: readonly PartResult[] | undefined): unknown {
  return results?.map(({ number, key, result }) => [number, key, encodeKvResult(result)]) ?? null;
}

function decodeResults(raw: unknown): readonly PartResult[] | undefined {
  return raw === null ? undefined : asList(raw, 'results of a part', decodePartResult);
}

function decodePartResult(raw: unknown): PartResult {
  const f = asFields(raw, 3, 'result of a part');
  const result = decodeKvResult(f[2]);
  if (result.type === 'txn') throw invalid('a part has a nested result');
  return { number: asCount(f[0], 'result.number'), key: asBytes(f[1], 'result.key'), result };
}

// ---------------------------------------------------------------------------------------------- prepare

function encodePrepared(result: TxnPrepareResult, nested: (result: CommandResult) => unknown): unknown {
  switch (result.answer) {
    case 'prepared':
      return [
        result.floor,
        result.compares.map((answer) => COMPARE_ANSWERS.encode(answer)),
        result.failures.map(({ number, branch, code, message, details }) => [
          number,
          branch,
          code,
          message,
          details ?? null,
        ]),
        result.changing ?? null,
      ];
    case 'conflict':
      return result.holders.map(({ txnId, requestId, primaryKey }) => [txnId, requestId, primaryKey]);
    case 'remembered':
      return [result.revision, nested(result.result)];
    case 'aborted':
      return null;
    default:
      return unreachable(result);
  }
}

function decodePrepared(
  answer: TxnPrepareResult['answer'],
  raw: unknown,
  nested: (raw: unknown) => CommandResult,
): TxnPrepareResult {
  switch (answer) {
    case 'prepared': {
      const isEarlier = Array.isArray(raw) && raw.length === 3; // A stored row of a program before `changing`.
      const f = asFields(raw, isEarlier ? 3 : 4, 'prepared');
      return {
        type: 'txnPrepare',
        answer,
        floor: asCount(f[0], 'prepared.floor'),
        compares: asList(f[1], 'prepared.compares', (word): CompareAnswer => COMPARE_ANSWERS.decode(word)),
        failures: asList(f[2], 'prepared.failures', decodeFailure),
        changing: (f[3] ?? null) === null ? undefined : asList(f[3], 'prepared.changing', asBranch),
      };
    }
    case 'conflict': {
      const holders = asList(raw, 'conflict', decodeHolder);
      if (holders.length > TXN_HOLDERS_MAX) throw invalid('too many holders');
      return { type: 'txnPrepare', answer, holders };
    }
    case 'remembered': {
      const f = asFields(raw, 2, 'remembered');
      // What is remembered is never an answer to a prepare: so this ends here.
      if (Array.isArray(f[1]) && f[1][0] === TXN_COMMAND.prepare) throw invalid('remembered');
      return { type: 'txnPrepare', answer, revision: asCount(f[0], 'remembered.revision'), result: nested(f[1]) };
    }
    case 'aborted':
      if (raw !== null) throw invalid('aborted');
      return { type: 'txnPrepare', answer };
    default:
      return unreachable(answer);
  }
}

function asBranch(raw: unknown): number {
  return asCount(raw, 'branch');
}

function decodeFailure(raw: unknown): OpFailure {
  const f = asFields(raw, 5, 'failure of an operation');
  const failure = {
    number: asCount(f[0], 'failure.number'),
    branch: asCount(f[1], 'failure.branch'),
    code: asErrorCode(f[2]),
    message: asText(f[3], 'failure.message'),
  };
  return f[4] === null ? failure : { ...failure, details: asDetails(f[4]) };
}

function asDetails(raw: unknown): Readonly<Record<string, unknown>> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw) || raw instanceof Uint8Array) {
    throw invalid('failure.details');
  }
  return { ...raw };
}

function asErrorCode(raw: unknown): ErrorCode {
  const code = asText(raw, 'failure.code');
  if (!isErrorCode(code)) throw invalid('failure.code');
  return code;
}

function decodeHolder(raw: unknown): TxnHolder {
  const f = asFields(raw, 3, 'holder of an intent');
  return {
    txnId: asTxnId(f[0]),
    requestId: asText(f[1], 'holder.requestId'),
    primaryKey: asBytes(f[2], 'holder.primaryKey'),
  };
}

// ---------------------------------------------------------------------------------------------- decisions

export function encodeTxnCommit({ revision, branches }: TxnCommit): unknown[] {
  return [DECISIONS.encode('commit'), revision, [...branches]];
}

export function decodeTxnCommit(raw: unknown): TxnCommit {
  const resolution = decodeTxnResolution(raw);
  if (resolution.type !== 'commit') throw invalid('commit');
  return resolution;
}

function encodeTxnResolution(resolution: TxnResolution): unknown[] {
  return resolution.type === 'commit' ? encodeTxnCommit(resolution) : [DECISIONS.encode('abort')];
}

function decodeTxnResolution(raw: unknown): TxnResolution {
  if (!Array.isArray(raw)) throw invalid('resolution');
  switch (DECISIONS.decode(raw[0])) {
    case 'commit':
      return commitOf(asFields(raw, 3, 'commit'));
    case 'abort':
      asFields(raw, 1, 'abort');
      return { type: 'abort' };
    case 'push':
      throw invalid('resolution');
  }
}

function commitOf(f: readonly unknown[]): TxnCommit {
  const branches = asList(f[2], 'commit.branches', (branch) => asCount(branch, 'commit.branch'));
  return { type: 'commit', revision: asCount(f[1], 'commit.revision'), branches };
}

function encodeDecision(decision: TxnDecide['decision']): unknown[] {
  if (decision.type !== 'commit') return [DECISIONS.encode(decision.type)];
  return [...encodeTxnCommit(decision), encodeSpans(decision.others)];
}

function decodeDecision(raw: unknown): TxnDecide['decision'] {
  if (!Array.isArray(raw)) throw invalid('decision');
  const type = DECISIONS.decode(raw[0]);
  if (type === 'commit') {
    const f = asFields(raw, 4, 'decision');
    return { ...commitOf(f), others: decodeSpans(f[3]) };
  }
  asFields(raw, 1, 'decision');
  return { type };
}

export function encodeSpans(spans: readonly Span[]): unknown[] {
  return spans.map(({ start, end }) => [start, end]);
}

export function decodeSpans(raw: unknown): readonly Span[] {
  const spans = asList(raw, 'spans of a transaction', (span) => {
    const f = asFields(span, 2, 'span of a part');
    return { start: asBytes(f[0], 'span.start'), end: asBytes(f[1], 'span.end') };
  });
  if (spans.length >= TXN_PARTS_MAX) throw invalid('too many parts of a transaction');
  return spans;
}

export function encodeTxnState(state: TxnState): unknown[] {
  const word = STATES.encode(state.state);
  switch (state.state) {
    case 'pending':
      return [word, state.remainingMs];
    case 'committed':
      return [word, encodeTxnCommit(state.commit)];
    case 'aborted':
      return [word];
    default:
      return unreachable(state);
  }
}

export function decodeTxnState(raw: unknown): TxnState {
  if (!Array.isArray(raw)) throw invalid('state of a transaction');
  const state = STATES.decode(raw[0]);
  switch (state) {
    case 'pending':
      return { state, remainingMs: asMs(asFields(raw, 2, 'pending')[1], 'pending.remainingMs') };
    case 'committed':
      return { state, commit: decodeTxnCommit(asFields(raw, 2, 'committed')[1]) };
    case 'aborted':
      asFields(raw, 1, 'aborted');
      return { state };
    default:
      return unreachable(state);
  }
}

export function asTxnId(raw: unknown): string {
  const id = asText(raw, 'transaction id');
  if (id.length === 0 || id.length > TXN_ID_MAX) throw invalid('transaction id');
  return id;
}

function asPart(raw: unknown): number {
  const part = asCount(raw, 'part');
  if (part >= TXN_PARTS_MAX) throw invalid('part');
  return part;
}
