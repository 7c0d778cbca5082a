import { binaryString } from '@remora/base';
import { type LockId, type LockNotice, lockSpan } from '@remora/lock';

interface Watch {
  readonly version: number;
  readonly answer: () => void;
}

/**
 * The open questions, at this leader, of those who want to know when a grant ends. Like the lines of waiters
 * (`lock-waits.ts`) they only make news prompt: whoever asks again is answered from the lock's state.
 */
export class GrantWatches {
  readonly #isCurrent: (lock: LockId, version: number) => boolean;
  readonly #byLock = new Map<string, Set<Watch>>();

  constructor(isCurrent: (lock: LockId, version: number) => boolean) {
    this.#isCurrent = isCurrent;
  }

  /** Returns a function that takes the question back. */
  add(lock: LockId, version: number, answer: () => void): () => void {
    const name = nameOf(lock);
    const watch: Watch = { version, answer };
    const watches = this.#byLock.get(name);
    if (watches === undefined) this.#byLock.set(name, new Set([watch]));
    else watches.add(watch);
    return () => this.#remove(name, watch);
  }

  /**
   * A lock's grant ends with what it tells others: its holder, when taken away, or the next one, who has it now. Beside
   * those who share it, one more says nothing about them.
   */
  notify({ lock, result }: LockNotice): void {
    if (this.#byLock.size === 0 || (result.type !== 'released' && result.type !== 'granted')) return;
    const name = nameOf(lock);
    for (const watch of [...(this.#byLock.get(name) ?? [])]) {
      if (this.#isCurrent(lock, watch.version)) continue;
      this.#remove(name, watch);
      watch.answer();
    }
  }

  #remove(name: string, watch: Watch): void {
    const watches = this.#byLock.get(name);
    watches?.delete(watch);
    if (watches?.size === 0) this.#byLock.delete(name);
  }
}

function nameOf(lock: LockId): string {
  return binaryString(lockSpan(lock).start);
}
