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
  readonly question: GrantQuestion;
  readonly answer: (news: GrantNews) => void;
}

/**
 * The open questions, at this leader, of those who want to know when a grant ends, or when they are asked to end it. Like
 * the lines of waiters (`lock-waits.ts`) they only make news prompt: whoever asks again is answered from the lock's state.
 */
export class GrantWatches {
  readonly #look: Look;
  readonly #byLock = new Map<string, Set<Watch>>();

  constructor(look: Look) {
    this.#look = look;
  }

  /** Returns a function that takes the question back. */
  add(lock: LockId, question: GrantQuestion, answer: (news: GrantNews) => void): () => void {
    const name = nameOf(lock);
    const watch: Watch = { question, answer };
    const watches = this.#byLock.get(name);
    if (watches === undefined) this.#byLock.set(name, new Set([watch]));
    else watches.add(watch);
    return () => this.#remove(name, watch);
  }

  /**
   * A lock's grant ends with what it tells others: its holder, when taken away, or the next one, who has it now. Beside
   * those who share it, one more says nothing about them. That somebody asks for it one of its holders is told.
   */
  notify({ lock, result }: LockNotice): void {
    const concerns = result.type === 'released' || result.type === 'granted' || result.type === 'revoking';
    if (this.#byLock.size === 0 || !concerns) return;
    const name = nameOf(lock);
    for (const watch of [...(this.#byLock.get(name) ?? [])]) {
      const news = this.#look(lock, watch.question);
      if (news === undefined) continue;
      this.#remove(name, watch);
      watch.answer(news);
    }
  }

  #remove(name: string, watch: Watch): void {
    const watches = this.#byLock.get(name);
    watches?.delete(watch);
    if (watches?.size === 0) this.#byLock.delete(name);
  }
}

function nameOf(lock: LockId): string {
  return binaryString(lockPrefix(lock));
}
