import { type Bytes, type Clock, ServiceError, sleep, toServiceError } from '@remora/base';
import type { Asked, Backend } from '../../backend.ts';
import { checkSize, opBytes, type RequestLimits } from '../../request-limits.ts';
import { Fields, invalid } from '../fields.ts';
import type { KvImportAnswer } from '../json/kv.ts';
import type { RangeCalls } from '../range-calls.ts';
import { onlyThese, type Target, text } from '../targets.ts';
import { equal, putOp } from './kv-writes.ts';

/** About a second's work; the body is bounded, too. */
const IMPORT_LINES_MAX = 2_000;
/** Keys that are written at a time. */
const WRITES_AT_A_TIME = 16;
/** How long an import may wait, in all, while the node is over its limit of requests. */
const PAUSES_MAX_MS = 10_000;
const PAUSE_MS = 500;

/** What an export knows of a key, and an import does not set. */
const OF_THE_EXPORT = ['createRevision', 'modRevision', 'version', 'lease', 'valueBytes'] as const;

interface ImportDeps {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly calls: RangeCalls;
  readonly limits: RequestLimits;
  readonly asked: Asked;
}

interface ImportedKey {
  readonly key: Bytes;
  readonly value: Bytes;
}

/**
 * Writes keys from JSON lines.
 *
 * KI1. All lines are checked, and the permissions for all keys, before the first key is written.
 * KI2. Each key is written by itself. If one cannot be written, the answer is UNKNOWN_OUTCOME once others may have
 *      been: the error itself would say that nothing was changed. A repeated call does the rest: it writes the same
 *      values, or skips the keys that are there.
 */
export async function kvImport(
  deps: ImportDeps,
  { query }: Target,
  lines: readonly unknown[],
  signal: AbortSignal,
): Promise<KvImportAnswer> {
  onlyThese(query, ['mode']);
  const ifAbsent = isIfAbsent(query);
  const keys = readLines(lines, deps.limits);
  const { backend, asked } = deps;
  const accesses = ifAbsent ? (['write', 'read'] as const) : (['write'] as const);
  const needs = keys.flatMap(({ key }) => accesses.map((access) => ({ type: 'keys', access, key }) as const));
  backend.check(asked.principal, needs, 'import');
  return new Import(deps, ifAbsent, signal).run(keys);
}

class Import {
  readonly #deps: ImportDeps;
  readonly #ifAbsent: boolean;
  readonly #signal: AbortSignal;
  #pausesMs = 0;
  #failure: ServiceError | undefined;
  #written = 0;
  #skipped = 0;

  constructor(deps: ImportDeps, ifAbsent: boolean, signal: AbortSignal) {
    this.#deps = deps;
    this.#ifAbsent = ifAbsent;
    this.#signal = signal;
  }

  async run(keys: readonly ImportedKey[]): Promise<KvImportAnswer> {
    const rest = keys.values();
    const worker = async (): Promise<void> => {
      for (const one of rest) {
        if (this.#failure !== undefined) return;
        await this.#write(one).catch((thrown: unknown) => {
          this.#failure ??= toServiceError(thrown);
        });
      }
    };
    await Promise.all(Array.from({ length: WRITES_AT_A_TIME }, worker));
    const counts = { written: this.#written, skipped: this.#skipped };
    if (this.#failure === undefined) return counts;
    throw counts.written === 0 && !this.#failure.mayBeApplied ? this.#failure : partly(counts, this.#failure); // KI2
  }

  async #write(one: ImportedKey): Promise<void> {
    for (;;) {
      this.#signal.throwIfAborted();
      try {
        if (await this.#put(one)) this.#written++;
        else this.#skipped++;
        return;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'RESOURCE_EXHAUSTED') throw error;
        await this.#pause(error);
      }
    }
  }

  /** Resolves with false if the key was left as it is. */
  async #put({ key, value }: ImportedKey): Promise<boolean> {
    const { calls } = this.#deps;
    const op = putOp(key, value, 0n);
    if (!this.#ifAbsent) {
      await calls.write({ type: 'kv', op }, 'put', {});
      return true;
    }
    const txn = { compare: [equal(key, 'version', 0)], success: [op], failure: [] };
    return (await calls.write({ type: 'txn', txn }, 'txn', {})).result.succeeded;
  }

  async #pause(error: ServiceError): Promise<void> {
    const asked = error.details?.retryAfterMs;
    const pauseMs = typeof asked === 'number' ? asked : PAUSE_MS;
    this.#pausesMs += pauseMs / WRITES_AT_A_TIME;
    if (this.#pausesMs > PAUSES_MAX_MS) throw error;
    await sleep(this.#deps.clock, pauseMs);
  }
}

/** KI1. */
function readLines(lines: readonly unknown[], limits: RequestLimits): readonly ImportedKey[] {
  if (lines.length > IMPORT_LINES_MAX + 1) {
    throw invalid(
      `one call imports at most ${IMPORT_LINES_MAX} lines, not ${lines.length}: split -l ${IMPORT_LINES_MAX}`,
    );
  }
  return lines.flatMap((line, i) => {
    const fields = new Fields(line, `line ${i + 1}: `);
    if (fields.isThere('error')) throw invalid(`line ${i + 1} is the error with which an export ended: export again`);
    if (fields.isThere('end')) return [];
    const key = fields.required('key', fields.bytes('key'));
    if (key.length === 0) throw new ServiceError('EMPTY_KEY', `line ${i + 1}: the key is empty`);
    const value = fields.required('value', fields.bytes('value'));
    fields.ignored(...OF_THE_EXPORT).end();
    checkSize(opBytes(putOp(key, value, 0n)), limits);
    return [{ key, value }];
  });
}

function isIfAbsent(query: Target['query']): boolean {
  const mode = text(query.get('mode') ?? Buffer.from('ifAbsent'), 'mode');
  if (mode === 'ifAbsent' || mode === 'overwrite') return mode === 'ifAbsent';
  throw invalid('mode must be ifAbsent or overwrite');
}

function partly({ written, skipped }: KvImportAnswer, cause: ServiceError): ServiceError {
  const message = `${written} keys were written and ${skipped} skipped, then one could not be written (${cause.message}); repeat the call`;
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}
