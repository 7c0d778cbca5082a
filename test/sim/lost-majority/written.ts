/**
 * Compares what clients wrote, and the answers that they received, with the data that is left after a cluster recovered
 * from the loss of majorities.
 *
 * W1. Every value that is read was written to that key.
 * W2. If a key's range never lost its majority, every acknowledged put of the key is there, or a later write.
 * W3. If a key's range lost its majority, the same is true for every put that a remaining replica had applied when that
 *     happened.
 * W4. The same is true for every request that began after the recovery. Nothing is promised for transactions before
 *     that: their records, or some of their parts, may be lost (docs/decisions/0031).
 * W5. A write that begins after another one was acknowledged has a higher revision, whatever was lost in between.
 */
import { Violation } from '../common/violation.ts';

interface Write {
  readonly value: string;
  /** Part of a transaction. */
  readonly shared: boolean;
  /** It was requested before the cluster had recovered from its loss. */
  readonly before: boolean;
  /** Undefined until it is acknowledged. */
  revision?: number;
}

/** A pair as the final read returns it. */
export interface Left {
  readonly value: string;
  readonly modRevision: number;
}

export class Written {
  /** The cluster has recovered from its loss: requests from now on are kept (W4). */
  recovered = false;
  acknowledged = 0;
  /** Acknowledged puts and transaction parts that need not be there. */
  notRequired = 0;
  readonly #byKey = new Map<string, Write[]>();
  #values = 0;
  /** The highest acknowledged revision. */
  #newest = 0;

  /** A unique value. */
  newValue(): string {
    return String(++this.#values);
  }

  /**
   * A request that writes a value to keys begins. Call the returned function with the revision of the acknowledgement.
   * (W5)
   */
  begin(keys: readonly string[], value: string): (revision: number) => void {
    const write: Write = { value, shared: keys.length > 1, before: !this.recovered };
    for (const key of keys) this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), write]);
    const floor = this.#newest;
    return (revision) => {
      if (revision <= floor) {
        throw new Violation('revisions grow', `${keys.join(', ')} got ${revision}, and ${floor} was known before`);
      }
      this.acknowledged++;
      this.#newest = Math.max(this.#newest, revision);
      write.revision = revision;
    };
  }

  /**
   * Checks what is left of a key (W1–W4). `held`: for a range that lost its majority, every put up to this revision is
   * required.
   */
  check(key: string, left: Left | undefined, held: number): void {
    const writes = this.#byKey.get(key) ?? [];
    const known = left === undefined || writes.some(({ value }) => value === left.value);
    if (!known) throw new Violation('what is read was written', `${key} is ${left?.value}`);
    let last = 0;
    for (const { shared, before, revision = 0 } of writes) {
      if (!before || (!shared && revision <= held)) last = Math.max(last, revision);
      else if (revision > 0) this.notRequired++;
    }
    if ((left?.modRevision ?? 0) >= last) return;
    const of = left === undefined ? 'is not there' : `is of revision ${left.modRevision}`;
    throw new Violation('what is left stays', `${key} ${of}; ${last} was acknowledged, and ${held} held at the loss`);
  }
}
