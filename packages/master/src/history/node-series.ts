import { HISTORY_MINUTES, NODE_RATES, type NodeRates } from '@remora/protocol';

const VALUE_BYTES = 4;
/** What the objects take besides the numbers. */
const OBJECT_BYTES = 256;

/** What one node measured, by minute: a ring of numbers for each rate. NaN: nothing was reported. */
export class NodeSeries {
  static readonly bytes = OBJECT_BYTES + HISTORY_MINUTES * NODE_RATES.length * VALUE_BYTES;
  readonly #values = new Float32Array(HISTORY_MINUTES * NODE_RATES.length).fill(Number.NaN);
  /** The newest minute in it. */
  #newest: number;

  constructor(minute: number) {
    this.#newest = minute;
  }

  get newest(): number {
    return this.#newest;
  }

  /** The minute must not be older than the ring reaches. */
  set(minute: number, rates: NodeRates): void {
    // The clock may have been set by years.
    const from = Math.max(this.#newest, minute - HISTORY_MINUTES);
    for (let each = from + 1; each <= minute; each++) this.#clear(each);
    this.#newest = Math.max(this.#newest, minute);
    for (const [r, name] of NODE_RATES.entries()) this.#values[at(r, minute)] = rates[name] ?? Number.NaN;
  }

  #clear(minute: number): void {
    for (let r = 0; r < NODE_RATES.length; r++) this.#values[at(r, minute)] = Number.NaN;
  }

  /** For each rate the values of `count` minutes; undefined if none of them was reported. */
  read({ first, count }: { readonly first: number; readonly count: number }): Float32Array | undefined {
    const values = new Float32Array(NODE_RATES.length * count);
    let isKnown = false;
    for (let r = 0; r < NODE_RATES.length; r++) {
      for (let i = 0; i < count; i++) {
        const minute = first + i;
        const isHere = minute <= this.#newest && minute > this.#newest - HISTORY_MINUTES;
        const value = isHere ? (this.#values[at(r, minute)] as number) : Number.NaN;
        values[r * count + i] = value;
        isKnown ||= !Number.isNaN(value);
      }
    }
    return isKnown ? values : undefined;
  }
}

function at(rate: number, minute: number): number {
  return rate * HISTORY_MINUTES + (minute % HISTORY_MINUTES);
}
