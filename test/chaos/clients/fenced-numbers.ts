/**
 * The resources that locks protect: one number each. A request with an older fencing version than the latest one is
 * refused.
 */
export class FencedNumbers {
  readonly #numbers = new Map<string, { version: number; value: number }>();

  /** Undefined: refused. */
  read(lock: string, version: number): number | undefined {
    const number = this.#numbers.get(lock) ?? { version, value: 0 };
    if (version < number.version) return undefined;
    number.version = version;
    this.#numbers.set(lock, number);
    return number.value;
  }

  /** Whether it was accepted. */
  write(lock: string, version: number, value: number): boolean {
    if (this.read(lock, version) === undefined) return false;
    this.#numbers.set(lock, { version, value });
    return true;
  }
}
