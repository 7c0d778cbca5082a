/**
 * Links that have no key yet (RT6 of the table of resident rows): at most one under each name. A link that is removed
 * again leaves nothing behind, so a link that exists for a moment, such as a lock's link to its session, costs only a
 * look-up.
 */
import type { Link } from '@remora/base';
import type { Name } from './latin1.ts';

export class WaitingLinks {
  readonly #byName = new Map<Name, Link>();
  #bytes = 0;

  get count(): number {
    return this.#byName.size;
  }

  /** The bytes of the keys that the links will have. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether another link waits under the same name. */
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

  /** Returns false if the link does not wait. */
  delete(link: Link): boolean {
    if (!this.has(link)) return false;
    this.#byName.delete(link.under);
    this.#bytes -= link.from.length + link.to.length;
    return true;
  }

  /** Returns the names of the rows of at most `max` links in the order of their arrival, and forgets these links. */
  take(max: number): readonly Name[] {
    const names: Name[] = [];
    for (const link of this.#byName.values()) {
      if (names.length >= max) break;
      names.push(nameOfLink(link));
      this.delete(link);
    }
    return names;
  }
}

export function nameOfLink({ from, to }: Link): Name {
  return from + to;
}
