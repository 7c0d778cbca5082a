import { binaryString, LazyMap } from '@remora/base';
import type { WatchCreate } from '@remora/protocol';

interface Scanned {
  readonly create: Pick<WatchCreate, 'span' | 'prevKv'>;
}

/** History scans at a time; further watches wait for their turn. */
const SCANS_MAX = 4;
/** Watches that one scan serves: what it found is handed to all of them in one turn of the event loop. */
const TOGETHER_MAX = 8;

/**
 * The watches of a range that wait for a scan of history, oldest span first.
 *
 * SQ1. Watches that want the same events of the same span share a scan, because the scan costs more than handing on
 *      what it finds. A span with more watches than one scan serves goes to the end of the queue.
 */
export class ScanQueue<Watcher extends Scanned> {
  /** Serves the watches; does not reject. Some of them may have gone, or their streams may be blocked. */
  readonly #scan: (together: readonly Watcher[]) => Promise<void>;
  readonly #waiting = new LazyMap<string, Watcher[]>();
  #running = 0;

  constructor(scan: (together: readonly Watcher[]) => Promise<void>) {
    this.#scan = scan;
  }

  add(watcher: Watcher): void {
    const name = nameOf(watcher);
    const others = this.#waiting.get(name);
    if (others === undefined) this.#waiting.set(name, [watcher]);
    else others.push(watcher);
    this.#next();
  }

  #next(): void {
    while (this.#running < SCANS_MAX) {
      const together = this.#take();
      if (together === undefined) return;
      this.#running++;
      void this.#scan(together).then(() => {
        this.#running--;
        this.#next();
      });
    }
  }

  /** SQ1. */
  #take(): readonly Watcher[] | undefined {
    for (const [name, watchers] of this.#waiting) {
      this.#waiting.delete(name);
      if (watchers.length > TOGETHER_MAX) this.#waiting.set(name, watchers.splice(TOGETHER_MAX));
      return watchers;
    }
    return undefined;
  }
}

function nameOf({ create: { span, prevKv } }: Scanned): string {
  return `${span.start.length} ${prevKv} ${binaryString(span.start)}${binaryString(span.end)}`;
}
