/** Slots to begin with; doubled while more than half of them are taken. */
const SLOTS_MIN = 256;
const SLOTS_MAX = 16_384;

/**
 * A map for values that come and go by the thousand, under ids that count up. A ring of slots holds the many that leave
 * soon; an ordinary map holds the few that are still there when the ring returns to their slot. The user of the map
 * bounds the number of values.
 *
 * An ordinary map for all of them costs more than its contents. Whenever it grows, shrinks or drops deleted places it
 * leaves a table behind that still refers to its former contents. Such a table soon moves to the old generation of the
 * garbage collector, and keeps those values alive until the next full collection.
 */
export class TransientMap<Value extends object> {
  #ids: number[] = [];
  #values: (Value | undefined)[] = [];
  readonly #longLived = new Map<number, Value>();
  #size = 0;

  constructor() {
    this.#resize(SLOTS_MIN);
  }

  get size(): number {
    return this.#size;
  }

  /** `id`, a safe integer from 0, must not be in the map. */
  add(id: number, value: Value): void {
    if (this.#size * 2 > this.#ids.length && this.#ids.length < SLOTS_MAX) this.#resize(this.#ids.length * 2);
    this.#place(id, value);
    this.#size++;
  }

  has(id: number): boolean {
    return this.get(id) !== undefined;
  }

  get(id: number): Value | undefined {
    const slot = id % this.#ids.length;
    return this.#ids[slot] === id ? this.#values[slot] : this.#longLived.get(id);
  }

  /** Returns whether it was there. */
  delete(id: number): boolean {
    const slot = id % this.#ids.length;
    if (this.#ids[slot] === id && this.#values[slot] !== undefined) this.#values[slot] = undefined;
    else if (!this.#longLived.delete(id)) return false;
    this.#size--;
    return true;
  }

  /** All values, ordered by id: a copy. */
  values(): readonly Value[] {
    const found: [number, Value][] = [];
    this.forEach((value, id) => {
      found.push([id, value]);
    });
    return found.sort(([a], [b]) => a - b).map(([, value]) => value);
  }

  /** In no particular order. The visitor may delete; what it adds may be visited or not. */
  forEach(visit: (value: Value, id: number) => void): void {
    const [ids, values] = [this.#ids, this.#values];
    for (let slot = 0; slot < values.length; slot++) {
      const value = values[slot];
      if (value !== undefined) visit(value, ids[slot] ?? 0);
    }
    for (const [id, value] of this.#longLived) visit(value, id);
  }

  clear(): void {
    this.#longLived.clear();
    this.#ids = [];
    this.#values = [];
    this.#size = 0;
    this.#resize(SLOTS_MIN);
  }

  #place(id: number, value: Value): void {
    const slot = id % this.#ids.length;
    const older = this.#values[slot];
    if (older !== undefined) this.#longLived.set(this.#ids[slot] ?? 0, older);
    this.#ids[slot] = id;
    this.#values[slot] = value;
  }

  #resize(slots: number): void {
    const [ids, values] = [this.#ids, this.#values];
    this.#ids = new Array<number>(slots).fill(-1);
    this.#values = new Array<Value | undefined>(slots).fill(undefined);
    for (let slot = 0; slot < values.length; slot++) {
      const value = values[slot];
      if (value !== undefined) this.#place(ids[slot] ?? 0, value);
    }
  }
}
