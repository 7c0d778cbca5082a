import type { ServiceError } from '@remora/base';
import type { Liveness } from '../ports.ts';

interface Asking<T> {
  readonly resolve: (result: IteratorResult<T>) => void;
  readonly reject: (error: ServiceError) => void;
}

/** After this many values were read, the rest is moved to the front: each value moves at most once. */
const READ_MAX = 1_024;

/** A queue of pushed values for one consumer that pulls them. The producer bounds its size. */
export class Pushed<T> {
  readonly #liveness: Liveness;
  readonly #onEmpty: () => void;
  #values: (T | undefined)[] = [];
  #read = 0;
  readonly #asking: Asking<T>[] = [];
  #over = false;
  #error: ServiceError | undefined;

  /** `onEmpty` is called when the last queued value was taken. */
  constructor(liveness: Liveness, onEmpty: () => void) {
    this.#liveness = liveness;
    this.#onEmpty = onEmpty;
  }

  /** Queued values. */
  get size(): number {
    return this.#values.length - this.#read;
  }

  push(value: T): void {
    const asking = this.#asking.shift();
    if (asking === undefined) this.#values.push(value);
    else asking.resolve({ done: false, value });
  }

  next(): Promise<IteratorResult<T>> {
    if (this.size > 0) {
      const value = this.#take();
      if (this.size === 0) this.#onEmpty();
      return Promise.resolve({ done: false, value });
    }
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    return this.#ask();
  }

  /** Drops the reference to a value that was taken, even if the queue never becomes empty. */
  #take(): T {
    const value = this.#values[this.#read] as T;
    this.#values[this.#read++] = undefined;
    if (this.size === 0) this.clear();
    else if (this.#read >= READ_MAX && 2 * this.#read >= this.#values.length) {
      this.#values = this.#values.slice(this.#read);
      this.#read = 0;
    }
    return value;
  }

  #ask(): Promise<IteratorResult<T>> {
    this.#liveness.hold();
    return new Promise<IteratorResult<T>>((resolve, reject) => this.#asking.push({ resolve, reject })).finally(() =>
      this.#liveness.release(),
    );
  }

  /** Drops the queued values. */
  clear(): void {
    this.#values = [];
    this.#read = 0;
  }

  /** No more values will come. Queued ones can still be taken; after them one `next` rejects with the error. */
  end(error: ServiceError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    const [first, ...others] = this.#asking.splice(0);
    if (error === undefined) first?.resolve({ done: true, value: undefined });
    else if (first === undefined) this.#error = error;
    else first.reject(error);
    for (const { resolve } of others) resolve({ done: true, value: undefined });
  }
}
