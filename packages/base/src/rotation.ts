/** Goes over a collection again and again, some of it at each call. Members may come and go meanwhile. */
export class Rotation<T> {
  readonly #all: () => Iterable<T>;
  #rest: Iterator<T> | undefined;

  constructor(all: () => Iterable<T>) {
    this.#all = all;
  }

  /** Whether the next call begins a round. */
  get atStart(): boolean {
    return this.#rest === undefined;
  }

  /** The next `count`; fewer at the end of a round, and none only if there are none. */
  *next(count: number): Generator<T> {
    for (let i = 0; i < count; i++) {
      let next = this.#rest?.next();
      if (next === undefined || (next.done === true && i === 0)) {
        this.#rest = this.#all()[Symbol.iterator]();
        next = this.#rest.next();
      }
      if (next.done === true) {
        this.#rest = undefined;
        return;
      }
      yield next.value;
    }
  }
}
