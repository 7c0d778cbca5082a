import {
  type Clock,
  type Engine,
  type EngineView,
  type Logger,
  loopSection,
  type Row,
  type Span,
  sleep,
} from '@remora/base';
import { nextTurn } from '../engine/merge.ts';
import { currentKey, historyKey, parseHistoryKey } from '../state/keys.ts';
import { isDeletion, modRevisionOf } from '../state/kv/record.ts';

/**
 * The largest number of versions that are judged in one turn of the event loop. The last version of a key before its
 * current one costs a read of the record, which lies in the store as a rule: 512 of them took 60 to 120 ms.
 */
const TURN_ROWS_MAX = 64;

/**
 * Removes versions that a compaction made unreadable. Each replica does so for itself, in the background: no read can
 * see the removed versions any more, so replicas need not agree on when (A1 of the range state holds).
 *
 * HC1. At compact revision C a put at revision r is removed if a later version of its key has a revision at or below C;
 *      a deletion is removed if r < C. Everything that a read or a watch at C or later can see stays.
 * HC2. The versions of one key are removed oldest first: a put must not outlive the deletion that hid it.
 * HC3. Memory is bounded: a version is judged when its successor is seen, and only that version is kept.
 * HC4. A version and its successor are those of one moment: a version that is current when the pass begins, and deleted
 *      while it runs, still counts as a successor.
 * HC5. Other work runs every TURN_ROWS_MAX versions. What it changes does not affect the pass, which reads one view
 *      (HC4). After `stop` the collector deletes nothing, because another range, or none, may have the rows by then.
 */
export class HistoryCollector {
  readonly #engine: Engine;
  readonly #span: Span;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #running = false;
  #wanted = 0;
  #done = 0;
  #stopped = false;

  /** `span`: the range's older versions. */
  constructor(engine: Engine, span: Span, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#engine = engine;
    this.#span = span;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Calling it often is cheap; a later call retries a failed pass. */
  collect(compactRevision: number): void {
    this.#wanted = Math.max(this.#wanted, compactRevision);
    if (this.#running || this.#stopped || this.#wanted <= this.#done) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    try {
      while (this.#wanted > this.#done && !this.#stopped) {
        const upTo = this.#wanted;
        const removed = await this.#pass(upTo);
        if (this.#stopped) return;
        this.#done = upTo;
        if (removed > 0) this.#logger.info({ compactRevision: upTo, removed }, 'removed compacted versions');
      }
    } catch (error) {
      if (!this.#stopped) this.#logger.error({ error: String(error) }, 'could not remove compacted versions');
    } finally {
      this.#running = false;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #pass(compactRevision: number): Promise<number> {
    const view = this.#engine.view();
    let removed = 0;
    let last: HistoryRow | undefined;
    const judge = (next: HistoryRow | undefined): void => {
      if (last !== undefined && this.#unreadable({ last, next, view }, compactRevision)) {
        this.#engine.delete(historyKey(last.key, last.revision));
        removed++;
      }
      last = next;
    };
    try {
      for await (const batch of view.scan(this.#span)) {
        if (this.#stopped) return removed;
        for (let at = 0; at < batch.length; at += TURN_ROWS_MAX) {
          if (at > 0) await nextTurn(this.#clock);
          if (this.#stopped) return removed;
          loopSection('compaction', () => {
            for (const row of batch.slice(at, at + TURN_ROWS_MAX)) judge(parse(row));
          });
        }
        await sleep(this.#clock, 1); // Lets requests through between batches.
      }
      if (!this.#stopped) judge(undefined);
    } finally {
      view.release();
    }
    return removed;
  }

  /** HC1. `next` is the row behind it, of the same key or another. */
  #unreadable({ last, next, view }: Judged, compactRevision: number): boolean {
    if (last.revision >= compactRevision) return false;
    if (last.deletion) return true;
    const successor = next?.key.equals(last.key) === true ? next.revision : currentRevision(view, last.key);
    return successor !== undefined && successor <= compactRevision;
  }
}

interface Judged {
  readonly last: HistoryRow;
  readonly next: HistoryRow | undefined;
  readonly view: EngineView;
}

/** HC4. */
function currentRevision(view: EngineView, key: Buffer): number | undefined {
  const row = view.get(currentKey(key));
  return row === undefined ? undefined : modRevisionOf(row);
}

interface HistoryRow {
  readonly key: Buffer;
  readonly revision: number;
  readonly deletion: boolean;
}

function parse(row: Row): HistoryRow {
  return { ...parseHistoryKey(row.key), deletion: isDeletion(row.value) };
}
