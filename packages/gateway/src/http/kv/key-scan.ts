import { type Bytes, ServiceError } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import type { RangeCalls } from '../range-calls.ts';
import { isBefore, type Place } from './kv-json.ts';

export interface ScanTerms {
  /** Most pairs to return. */
  readonly limit: number;
  /** Stops when the pairs have this many bytes. */
  readonly bytes: number;
  readonly keysOnly: boolean;
}

/**
 * Reads keys in order, page by page, at one revision.
 *
 * KS1. The first page without a revision is linearizable, and its revision is that of all further ones. Its scan costs
 *      what it returns, unlike a read with a limit, which counts all keys of its span.
 * KS2. If the revision is compacted meanwhile, the list ends with COMPACTED: pages of different revisions would show a
 *      state that never was.
 */
export class KeyScan {
  readonly #calls: RangeCalls;
  readonly #end: Bytes;
  readonly #signal: AbortSignal;
  #from: Bytes | undefined;
  #revision: number;

  constructor(calls: RangeCalls, end: Bytes, { from, revision }: Place, signal: AbortSignal) {
    this.#calls = calls;
    this.#end = end;
    this.#signal = signal;
    this.#from = from;
    this.#revision = revision;
  }

  /** 0 before the first page, if none was named. */
  get revision(): number {
    return this.#revision;
  }

  get isOver(): boolean {
    return this.#from === undefined;
  }

  /** Where the rest begins; undefined: all was read. */
  get place(): Place | undefined {
    return this.#from === undefined ? undefined : { from: this.#from, revision: this.#revision };
  }

  /** Continues at this key. */
  goTo(key: Bytes): void {
    this.#from = isBefore(key, this.#end) ? key : undefined;
  }

  finish(): void {
    this.#from = undefined;
  }

  /** Returns none at the end; perhaps also before, where keys were deleted. */
  async read({ limit, bytes, keysOnly }: ScanTerms): Promise<readonly KeyValue[]> {
    if (this.#from === undefined) return [];
    const query = {
      ...({ type: 'scan', key: this.#from, end: this.#end, revision: this.#revision, bytes, limit } as const),
      ...(keysOnly ? ({ keysOnly } as const) : {}),
    };
    const isFirst = this.#revision === 0;
    const { result, revision } = await this.#calls
      .read(query, 'scan', isFirst ? { current: true } : {}, this.#signal)
      .catch((error: unknown) => {
        throw isFirst ? error : compacted(error, this.#revision);
      });
    if (isFirst) this.#revision = revision;
    if (result.next === undefined) this.#from = undefined;
    else this.goTo(result.next);
    return result.kvs;
  }
}

/** KS2. */
function compacted(error: unknown, revision: number): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'COMPACTED') return error;
  const message = `revision ${revision}, at which this list is read, was compacted: begin again, without \`after\` and \`revision\``;
  return new ServiceError('COMPACTED', message, { cause: error, ...(error.details && { details: error.details }) });
}
