import { type Clock, type Engine, type Logger, type Row, sleep } from '@remora/base';
import { allHistorySpan, currentKey, historyKey, parseHistoryKey } from '../state/keys.ts';
import { isDeletion, modRevisionOf } from '../state/record.ts';

/**
 * Removes versions that a compaction made unreadable. Each replica does so for itself, in the background: what it
 * removes can no longer be seen by anybody, so replicas need not agree on when (A1 of the range state holds).
 *
 * HC1. At compact revision C a put at revision r goes when a later version of its key has a revision at or below C;
 *      a deletion goes when r < C. What a read or a watch at C or later can see stays.
 * HC2. What goes of one key goes in one step: a put must not outlive the deletion that hid it.
 */
export class HistoryCollector {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #running = false;
  #wanted = 0;
  #done = 0;
  #stopped = false;

  constructor(engine: Engine, clock: Clock, logger: Logger) {
    this.#engine = engine;
    this.#clock = clock;
    this.#logger = logger;
  }

  collect(compactRevision: number): void {
    this.#wanted = Math.max(this.#wanted, compactRevision);
    if (this.#running || this.#stopped || this.#wanted <= this.#done) return;
    this.#running = true;
    const upTo = this.#wanted;
    this.#pass(upTo)
      .then((removed) => {
        this.#done = upTo;
        if (removed > 0) this.#logger.info({ compactRevision: upTo, removed }, 'removed compacted versions');
      })
      .catch((error: unknown) => this.#logger.error({ error: String(error) }, 'could not remove compacted versions'))
      .finally(() => {
        this.#running = false;
        if (this.#wanted > this.#done) this.collect(this.#wanted);
      });
  }

  stop(): void {
    this.#stopped = true;
  }

  async #pass(compactRevision: number): Promise<number> {
    const view = this.#engine.view();
    let removed = 0;
    let ofOneKey: { key: Buffer; rows: { revision: number; deletion: boolean }[] } | undefined;
    const finishKey = (): void => {
      if (ofOneKey !== undefined) removed += this.#removeOf(ofOneKey.key, ofOneKey.rows, compactRevision);
      ofOneKey = undefined;
    };
    try {
      for await (const batch of view.scan(allHistorySpan())) {
        if (this.#stopped) return removed;
        for (const row of batch) {
          const { key, revision, deletion } = parse(row);
          if (ofOneKey === undefined || !ofOneKey.key.equals(key)) {
            finishKey();
            ofOneKey = { key, rows: [] };
          }
          ofOneKey.rows.push({ revision, deletion });
        }
        await sleep(this.#clock, 1); // Let requests through between batches.
      }
      finishKey();
    } finally {
      view.release();
    }
    return removed;
  }

  /** HC1 and HC2 for one key, whose versions are given oldest first. */
  #removeOf(
    key: Buffer,
    rows: readonly { readonly revision: number; readonly deletion: boolean }[],
    compactRevision: number,
  ): number {
    let removed = 0;
    for (const [i, row] of rows.entries()) {
      if (row.revision >= compactRevision) break;
      const next = rows[i + 1]?.revision ?? this.#currentRevision(key);
      if (!row.deletion && (next === undefined || next > compactRevision)) continue;
      this.#engine.delete(historyKey(key, row.revision));
      removed++;
    }
    return removed;
  }

  #currentRevision(key: Buffer): number | undefined {
    const row = this.#engine.get(currentKey(key));
    return row === undefined ? undefined : modRevisionOf(row);
  }
}

function parse(row: Row): { readonly key: Buffer; readonly revision: number; readonly deletion: boolean } {
  return { ...parseHistoryKey(row.key), deletion: isDeletion(row.value) };
}
