import { binaryString, LazyMap, LazySet } from '@remora/base';
import { type GrantNews, type LockId, type LockNotice, lockPrefix } from '@remora/lock';

/** A holder's question about its grant. */
export interface GrantQuestion {
  readonly version: number;
  /** The number of the release request that the holder knows; 0: none; undefined: it does not want to know of any. */
  readonly known: number | undefined;
}

/** Undefined: there is no news. */
type Look = (lock: LockId, question: GrantQuestion) => GrantNews | undefined;

interface Watch {
  readonly name: string;
  readonly lock: LockId;
  readonly question: GrantQuestion;
  readonly answer: (news: GrantNews) => void;
}

/**
 * The open questions, at this leader, of holders that want to know when a grant ends, or when another client requests
 * its release. Like the calls of waiters (`lock-waits.ts`) they only make news prompt: a repeated question is answered
 * from the lock's state.
 *
 * GW1. Only watches that may be concerned are examined: many holders may share a lock, and most events concern one of
 *      them. They are examined once, when the entry is applied; holders that were let in together, by one version, are
 *      examined as one.
 */
export class GrantWatches {
  readonly #look: Look;
  /** By lock and version. */
  readonly #byLock = new LazyMap<string, Map<number, Set<Watch>>>();
  /** Versions whose grant has ended: the watches of these are examined. */
  readonly #ended = new LazyMap<string, { readonly lock: LockId; readonly version: number }>();
  /** Watches that are examined individually. */
  readonly #concerned = new LazySet<Watch>();

  constructor(look: Look) {
    this.#look = look;
  }

  /** Returns a function that removes the question. */
  add(lock: LockId, question: GrantQuestion, answer: (news: GrantNews) => void): () => void {
    const watch: Watch = { name: nameOf(lock), lock, question, answer };
    const byVersion = this.#byLock.get(watch.name) ?? new Map<number, Set<Watch>>();
    const watches = byVersion.get(question.version) ?? new Set<Watch>();
    this.#byLock.set(watch.name, byVersion.set(question.version, watches.add(watch)));
    return () => this.#remove(watch);
  }

  /** A grant of that version has ended; others of the same version may continue. */
  ended(lock: LockId, version: number): void {
    if (this.#byLock.size === 0) return;
    const name = nameOf(lock);
    if (this.#byLock.get(name)?.has(version)) this.#ended.set(`${version}/${name}`, { lock, version });
  }

  /** A release request is reported to one of the lock's holders, and concerns all. */
  notify({ lock, result }: LockNotice): void {
    if (this.#byLock.size === 0 || result.type !== 'revoking') return;
    for (const watches of this.#byLock.get(nameOf(lock))?.values() ?? []) {
      for (const watch of watches) this.#concerned.add(watch);
    }
  }

  /** An entry is applied: watches with news are answered. */
  flush(): void {
    if (this.#ended.size > 0) this.#tellEnded();
    if (this.#concerned.size === 0) return;
    const concerned = [...this.#concerned];
    this.#concerned.clear();
    for (const watch of concerned) {
      const news = this.#look(watch.lock, watch.question);
      if (news === undefined || !this.#remove(watch)) continue;
      watch.answer(news);
    }
  }

  #tellEnded(): void {
    const ended = [...this.#ended.values()];
    this.#ended.clear();
    for (const { lock, version } of ended) {
      const news = this.#look(lock, { version, known: undefined });
      if (news === undefined) continue;
      const watches = this.#byLock.get(nameOf(lock))?.get(version) ?? [];
      for (const watch of [...watches]) if (this.#remove(watch)) watch.answer(news);
    }
  }

  /** Returns whether it was there. */
  #remove(watch: Watch): boolean {
    const { name, question } = watch;
    this.#concerned.delete(watch);
    const byVersion = this.#byLock.get(name);
    const watches = byVersion?.get(question.version);
    if (byVersion === undefined || watches?.delete(watch) !== true) return false;
    if (watches.size === 0) byVersion.delete(question.version);
    if (byVersion.size === 0) this.#byLock.delete(name);
    return true;
  }
}

function nameOf(lock: LockId): string {
  return binaryString(lockPrefix(lock));
}
