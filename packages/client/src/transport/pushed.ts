import type { ServiceError } from '@remora/base';
import type { Liveness } from '../ports.ts';

interface Asking<T> {
  readonly resolve: (result: IteratorResult<T>) => void;
  readonly reject: (error: ServiceError) => void;
}

/** Places of values that were taken: then those that wait are moved, which costs each of them at most one move. */
const READ_MAX = 1_024;

/** Values that come by themselves, for somebody who asks for them one by one: they wait here. Whoever pushes bounds them. */
export class Pushed<T> {
  readonly #liveness: Liveness;
  readonly #onEmpty: () => void;
  #values: (T | undefined)[] = [];
  #read = 0;
  readonly #asking: Asking<T>[] = [];
  #over = false;
  #error: ServiceError | undefined;

  /** `onEmpty` is called when the last one of those that waited was taken. */
  constructor(liveness: Liveness, onEmpty: () => void) {
    this.#liveness = liveness;
    this.#onEmpty = onEmpty;
  }

  /** Values that wait. */
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

  /** What was taken is let go, also while others always wait. */
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

  /** Values that wait are not given any more. */
  clear(): void {
    this.#values = [];
    this.#read = 0;
  }

  /** No more will come. Those that wait can still be taken; after them the error is told once. */
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
