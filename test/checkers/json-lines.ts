/**
 * Histories as text: one JSON object per line, in the order in which operations began.
 *
 *     {"c":client,"k":key,"op":"get|put|del|cas","v":value,"x":expected,"out":read,"ok":bool,"t0":ns,"t1":ns|null}
 *
 * `v`, `x` and `out` are left out where they mean nothing; `t1: null` is an unknown outcome (H2). Two extensions:
 *  - `op` may also be `append` (to a list; `out` of a `get` is then an array of texts), `acquire`, `release`,
 *    `check`, `force`;
 *  - a transaction has `ops` instead of `k`:
 *    `{"c":client,"op":"txn","ops":[{"k":key,"op":"append","v":element},{"k":key,"op":"get","out":[…]}],"ok":…,"t0":…,"t1":…}`
 *
 * J1. Fields have this order, whatever order a recorder used: equal histories are equal bytes.
 * J2. Input is validated, and an error names its line. The length of a line is limited, so that a file of another kind
 *     does not fill the memory.
 */
import type { HistoryRecord, Op } from './history.ts';
import { isTxn, type TxnOp, type TxnRecord } from './txn/history.ts';

/** Any line of a history. */
export type AnyRecord = HistoryRecord | TxnRecord;

const LINE_CHARS_MAX = 64 * 1024 * 1024;
const OPS: readonly string[] = [
  'get',
  'put',
  'del',
  'cas',
  'append',
  'acquire',
  'release',
  'check',
  'force',
] satisfies Op[];

function toJsonLine(record: AnyRecord): string {
  const { c, op, ok, t0, t1 } = record;
  if (isTxn(record)) return `${JSON.stringify({ c, op, ops: record.ops.map(orderedTxnOp), ok, t0, t1 })}\n`;
  const { k, v, x, out } = record;
  return `${JSON.stringify({ c, k, op, v, x, out, ok, t0, t1 })}\n`;
}

export function toJsonLines(history: readonly AnyRecord[]): string {
  return history.map(toJsonLine).join('');
}

/** Throws an `Error` that names the first line that is not a record. */
export function fromJsonLines(text: string): readonly AnyRecord[] {
  return text.split('\n').flatMap((line, i) => parseLine(line, i + 1) ?? []);
}

/** Like `fromJsonLines`, for a text that arrives in pieces. Holds one line at a time. */
export async function* readJsonLines(
  pieces: AsyncIterable<string>,
  { lineCharsMax = LINE_CHARS_MAX }: { readonly lineCharsMax?: number } = {},
): AsyncGenerator<AnyRecord> {
  let rest: string[] = [];
  let chars = 0;
  let number = 0;
  for await (const piece of pieces) {
    const lines = piece.split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      number += 1;
      const record = parseLine(rest.join('') + line, number);
      rest = [];
      chars = 0;
      if (record !== undefined) yield record;
    }
    chars += last.length;
    if (chars > lineCharsMax) throw new Error(`line ${number + 1} has more than ${lineCharsMax} characters`);
    rest.push(last);
  }
  const record = parseLine(rest.join(''), number + 1);
  if (record !== undefined) yield record;
}

function orderedTxnOp(op: TxnOp): TxnOp {
  if (op.op === 'append') return { k: op.k, op: op.op, v: op.v };
  return op.out === undefined ? { k: op.k, op: op.op } : { k: op.k, op: op.op, out: op.out };
}

function parseLine(line: string, number: number): AnyRecord | undefined {
  if (line.trim() === '') return undefined;
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch (cause) {
    throw new Error(`line ${number} is not JSON`, { cause });
  }
  const problem = problemOf(raw);
  if (problem !== undefined) throw new Error(`line ${number} is not a history record: ${problem}`);
  return raw as AnyRecord;
}

function problemOf(raw: unknown): string | undefined {
  if (typeof raw !== 'object' || raw === null) return 'not an object';
  const { c, op, ok, t0, t1 } = raw as Record<string, unknown>;
  if (typeof c !== 'string' && typeof c !== 'number') return 'c is not a text or number';
  if (typeof ok !== 'boolean') return 'ok is not a boolean';
  if (typeof t0 !== 'number') return 't0 is not a number';
  if (t1 !== null && (typeof t1 !== 'number' || t1 < t0)) return 't1 is neither null nor a time from t0 on';
  return op === 'txn' ? problemOfTxn(raw as Record<string, unknown>) : problemOfOne(raw as Record<string, unknown>);
}

function problemOfOne({ k, op, v, x, out }: Record<string, unknown>): string | undefined {
  if (typeof k !== 'string') return 'k is not a text';
  if (typeof op !== 'string' || !OPS.includes(op)) return `op is not one of ${OPS.join(', ')}, txn`;
  for (const [name, value] of Object.entries({ v, x, out })) {
    if (value !== undefined && !isValue(value)) return `${name} is not a value`;
  }
  return undefined;
}

function problemOfTxn({ ops, ok, t1 }: Record<string, unknown>): string | undefined {
  if (!Array.isArray(ops)) return 'ops is not an array';
  const committed = ok === true && t1 !== null;
  for (const [i, raw] of (ops as unknown[]).entries()) {
    if (typeof raw !== 'object' || raw === null) return `ops[${i}] is not an object`;
    const { k, op, v, out } = raw as Record<string, unknown>;
    if (typeof k !== 'string') return `ops[${i}].k is not a text`;
    if (op === 'append') {
      if (typeof v !== 'string') return `ops[${i}].v is not a text`;
    } else if (op !== 'get') return `ops[${i}].op is neither append nor get`;
    else if (out === undefined ? committed : !isTexts(out)) return `ops[${i}].out is not an array of texts`;
  }
  return undefined;
}

function isTexts(raw: unknown): boolean {
  return Array.isArray(raw) && raw.every((item) => typeof item === 'string');
}

function isValue(raw: unknown): boolean {
  return raw === null || isTexts(raw) || ['string', 'number', 'boolean'].includes(typeof raw);
}
