import { binaryString, LazyMap } from '@remora/base';
import { type LockId, type LockNotice, type LockResult, lockPrefix, type Owner } from '@remora/lock';

type Answer = (result: LockResult) => void;

/**
 * The open calls of waiters in lock queues at this leader. The queue itself is replicated state: these calls are only
 * used to answer, and losing them only delays the answer (traps 21).
 */
export class LockWaits {
  readonly #open = new LazyMap<string, Set<Answer>>();

  /** Open calls. */
  get calls(): number {
    let calls = 0;
    for (const answers of this.#open.values()) calls += answers.size;
    return calls;
  }

  /** Returns a function that removes the call. */
  add(lock: LockId, owner: Owner, answer: Answer): () => void {
    const name = nameOf(lock, owner);
    const set = this.#open.get(name);
    if (set === undefined) this.#open.set(name, new Set([answer]));
    else set.add(answer);
    return () => {
      const current = this.#open.get(name);
      current?.delete(answer);
      if (current?.size === 0) this.#open.delete(name);
    };
  }

  notify(notice: LockNotice): void {
    if (this.#open.size === 0 || notice.result.type === 'revoking') return; // such a notice is for holders
    const name = nameOf(notice.lock, notice.owner);
    const set = this.#open.get(name);
    if (set === undefined) return;
    this.#open.delete(name);
    for (const answer of set) answer(notice.result);
  }
}

function nameOf(lock: LockId, owner: Owner): string {
  const { lease, incarnation } = owner.session;
  return `${lease}/${incarnation}/${owner.token}/${binaryString(lockPrefix(lock))}`;
}
