/** The largest number of members in a crowd. */
export interface CrowdLimits {
  readonly max: number;
  readonly perAddressMax: number;
}

interface Member {
  readonly address: string;
  /** When the member joined or last sent something. */
  spokeMs: number;
}

/**
 * Connections of one kind that compete for room, in the order in which each last sent something.
 *
 * CR1. One connection too many from an address closes the quietest one of that address. One too many in total closes
 *      the quietest one of the address with the most connections. So a caller that sends its request at once is served,
 *      however many connections others hold open, and an address with few connections loses none to an address with
 *      many.
 */
export class Crowd<T extends Member> {
  readonly #limits: CrowdLimits;
  /** The function must `remove` the member. */
  readonly #sendAway: (member: T, reason: 'address' | 'all') => void;
  readonly #members = new Set<T>();
  readonly #byAddress = new Map<string, Set<T>>();

  constructor(limits: CrowdLimits, sendAway: (member: T, reason: 'address' | 'all') => void) {
    this.#limits = limits;
    this.#sendAway = sendAway;
  }

  get size(): number {
    return this.#members.size;
  }

  has(member: T): boolean {
    return this.#members.has(member);
  }

  add(member: T, nowMs: number): void {
    const { max, perAddressMax } = this.#limits;
    this.#put(member, nowMs);
    const neighbours = this.#byAddress.get(member.address);
    if (neighbours !== undefined && neighbours.size > perAddressMax) this.#sendFirst(neighbours, 'address');
    if (this.#members.size > max) this.#sendFirst(this.#largest(), 'all');
  }

  spoke(member: T, nowMs: number): void {
    if (!this.#members.has(member)) return;
    this.#members.delete(member);
    this.#byAddress.get(member.address)?.delete(member);
    this.#put(member, nowMs);
  }

  remove(member: T): void {
    if (!this.#members.delete(member)) return;
    const neighbours = this.#byAddress.get(member.address);
    neighbours?.delete(member);
    if (neighbours?.size === 0) this.#byAddress.delete(member.address);
  }

  /** Members that have sent nothing since then, the quietest first. */
  *quietSince(ms: number): Generator<T> {
    for (const member of this.#members) {
      if (member.spokeMs > ms) return;
      yield member;
    }
  }

  #put(member: T, nowMs: number): void {
    member.spokeMs = nowMs;
    this.#members.add(member);
    const neighbours = this.#byAddress.get(member.address);
    if (neighbours === undefined) this.#byAddress.set(member.address, new Set([member]));
    else neighbours.add(member);
  }

  #largest(): ReadonlySet<T> {
    let largest: ReadonlySet<T> = new Set();
    for (const neighbours of this.#byAddress.values()) if (neighbours.size > largest.size) largest = neighbours;
    return largest;
  }

  #sendFirst(members: ReadonlySet<T>, reason: 'address' | 'all'): void {
    for (const member of members) return this.#sendAway(member, reason);
  }
}
