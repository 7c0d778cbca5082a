/**
 * What clients wrote and were told, held against what is left of it when a cluster has got over the loss of majorities.
 *
 * W1. What is read was written, to that key.
 * W2. Of a key whose range never lost its majority, every put that was acknowledged is there, or a later write.
 * W3. Of a key whose range did, so is every put that a replica which was left had applied when that happened.
 * W4. So is all that clients asked for when it was over. Of transactions before that nothing is promised: their records
 *     may be lost, or some of their parts (docs/decisions/0031).
 * W5. A write that begins when another one is acknowledged has the higher revision, whatever was lost in between.
 */
import { Violation } from '../common/violation.ts';

interface Write {
  readonly value: string;
  /** One of a transaction. */
  readonly shared: boolean;
  /** It was asked for before the cluster had got over its loss. */
  readonly before: boolean;
  /** Undefined while it is not acknowledged. */
  revision?: number;
}

/** A pair as it is read in the end. */
export interface Left {
  readonly value: string;
  readonly modRevision: number;
}

export class Written {
  /** The cluster has got over its loss: what is asked for from now on is kept (W4). */
  recovered = false;
  acknowledged = 0;
  /** Puts and parts of transactions that were acknowledged and are not required to be there. */
  notRequired = 0;
  readonly #byKey = new Map<string, Write[]>();
  #values = 0;
  /** The highest that was acknowledged. */
  #newest = 0;

  /** A value like no other. */
  newValue(): string {
    return String(++this.#values);
  }

  /** Keys are about to be given a value; the returned function takes the revision of the acknowledgement. (W5) */
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

  /** What is left of a key (W1–W4): of what its range had when it lost its majority, all is required up to `held`. */
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
