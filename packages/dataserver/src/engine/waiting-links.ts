/**
 * Links that have no key yet (RT6 of the table of resident rows): at most one under each name. One that is taken away
 * again leaves nothing behind, so what belongs to something for a moment, as a lock to its session, costs a look-up
 * each time.
 */
import type { Link } from '@remora/base';
import type { Name } from './latin1.ts';

export class WaitingLinks {
  readonly #byName = new Map<Name, Link>();
  #bytes = 0;

  get count(): number {
    return this.#byName.size;
  }

  /** Of the keys that they will have. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether another one waits under the same name. */
  isTaken({ under }: Link): boolean {
    return this.#byName.has(under);
  }

  has({ under, from }: Link): boolean {
    return this.#byName.get(under)?.from === from;
  }

  add(link: Link): void {
    this.#byName.set(link.under, link);
    this.#bytes += link.from.length + link.to.length;
  }

  /** False when it does not wait. */
  delete(link: Link): boolean {
    if (!this.has(link)) return false;
    this.#byName.delete(link.under);
    this.#bytes -= link.from.length + link.to.length;
    return true;
  }

  /** Gives the names of the rows that they are, in the order in which they came, and forgets them. */
  take(): readonly Name[] {
    const names = [...this.#byName.values()].map(nameOfLink);
    this.#byName.clear();
    this.#bytes = 0;
    return names;
  }
}

export function nameOfLink({ from, to }: Link): Name {
  return from + to;
}
