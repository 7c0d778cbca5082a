/** A value that components can follow. */
export interface Readable<Value> {
  get(): Value;
  /** Returns a function that ends the subscription. */
  subscribe(changed: () => void): () => void;
}

export class Store<Value> implements Readable<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }
}
