import { binaryString } from '@remora/base';
import { type GrantNews, type LockId, type LockNotice, lockPrefix } from '@remora/lock';

/** What a holder wants to know of its grant. */
export interface GrantQuestion {
  readonly version: number;
  /** The request to let go that it knows of; 0: of none; undefined: it does not want to know of any. */
  readonly known: number | undefined;
}

/** Undefined: there is nothing to tell. */
type Look = (lock: LockId, question: GrantQuestion) => GrantNews | undefined;

interface Watch {
  readonly name: string;
  readonly lock: LockId;
  readonly question: GrantQuestion;
  readonly answer: (news: GrantNews) => void;
}

/**
 * The open questions, at this leader, of those who want to know when a grant ends, or when they are asked to end it.
 * Like the lines of waiters (`lock-waits.ts`) they only make news prompt: whoever asks again is answered from the
 * lock's state.
 *
 * GW1. Only those are looked at whom something may concern: any number may share a lock, and most of what happens to it
 *      is about one of them. They are looked at once, when the entry is applied, and those who were let in together, by
 *      one version, as one.
 */
export class GrantWatches {
  readonly #look: Look;
  /** By lock and version. */
  readonly #byLock = new Map<string, Map<number, Set<Watch>>>();
  /** Of which a grant has ended: those who watch one are to be looked at. */
  readonly #ended = new Map<string, { readonly lock: LockId; readonly version: number }>();
  /** Those that are to be looked at each by itself. */
  readonly #concerned = new Set<Watch>();

  constructor(look: Look) {
    this.#look = look;
  }

  /** Returns a function that takes the question back. */
  add(lock: LockId, question: GrantQuestion, answer: (news: GrantNews) => void): () => void {
    const watch: Watch = { name: nameOf(lock), lock, question, answer };
    const byVersion = this.#byLock.get(watch.name) ?? new Map<number, Set<Watch>>();
    const watches = byVersion.get(question.version) ?? new Set<Watch>();
    this.#byLock.set(watch.name, byVersion.set(question.version, watches.add(watch)));
    return () => this.#remove(watch);
  }

  /** A grant of that version has ended; others of the same version may have not. */
  ended(lock: LockId, version: number): void {
    if (this.#byLock.size === 0) return;
    const name = nameOf(lock);
    if (this.#byLock.get(name)?.has(version)) this.#ended.set(`${version}/${name}`, { lock, version });
  }

  /** That somebody asks for the lock one of its holders is told, and it concerns all. */
  notify({ lock, result }: LockNotice): void {
    if (this.#byLock.size === 0 || result.type !== 'revoking') return;
    for (const watches of this.#byLock.get(nameOf(lock))?.values() ?? []) {
      for (const watch of watches) this.#concerned.add(watch);
    }
  }

  /** An entry is applied: whoever it has news for is told. */
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

  /** Whether it was there. */
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
