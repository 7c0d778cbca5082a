/**
 * Resolves the names of hosts for outgoing connections.
 *
 * HN1. A name is resolved at each dial and nothing is kept, so a name may move to another address at any time.
 * HN2. A name may have several addresses, such as one for each node. All of them are tried, and each dial begins with
 *      another one: if the first one accepts connections and does not serve, the next attempt reaches another.
 *      Addresses of one family change places only among themselves; which family comes first is the system's choice.
 * HN3. One resolution per name is under way at a time; further dials wait for it.
 * HN4. The system's resolver (`getaddrinfo`) is used, not DNS directly: names in /etc/hosts, the search domains of
 *      /etc/resolv.conf (Kubernetes) and other sources of names must work. It occupies a thread of libuv's pool, which
 *      also serves the disk. libuv gives such work at most half of its threads, and HN3 keeps a name that does not
 *      resolve from taking more than one, so slow DNS does not hold up writes.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

export interface HostAddress {
  readonly address: string;
  /** 4 or 6. */
  readonly family: number;
}

/** Returns all addresses of a name, in the order of preference; rejects if it has none. */
export type HostLookup = (host: string) => Promise<readonly HostAddress[]>;

/** Names whose turn is remembered: more than a node or a client dials. */
const NAMES_MAX = 1_000;
/** How long one address may take to answer while others are left: a round trip between continents, once repeated. */
const ADDRESS_TIMEOUT_MS = 1_000;

export class HostNames {
  readonly #lookup: HostLookup;
  /** HN2. How often each name was dialled. */
  readonly #turns = new Map<string, number>();
  /** HN3. */
  readonly #underWay = new Map<string, Promise<readonly HostAddress[]>>();

  constructor(lookup: HostLookup = (host) => systemLookup(host, { all: true })) {
    this.#lookup = lookup;
  }

  /** The options of a connection by a name. */
  get dialOptions() {
    return {
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
      lookup: this.#forSocket,
    } as const;
  }

  /** In the order in which the next dial tries them. */
  async addresses(host: string): Promise<readonly HostAddress[]> {
    const found = await this.#resolve(host);
    const turn = this.#turns.get(host) ?? 0;
    if (this.#turns.size >= NAMES_MAX) this.#turns.clear();
    this.#turns.set(host, turn + 1);
    return rotated(found, turn);
  }

  #resolve(host: string): Promise<readonly HostAddress[]> {
    const underWay = this.#underWay.get(host);
    if (underWay !== undefined) return underWay;
    const resolving = this.#lookup(host).finally(() => this.#underWay.delete(host));
    this.#underWay.set(host, resolving);
    return resolving;
  }

  readonly #forSocket: LookupFunction = (host, options, done) => {
    this.addresses(host).then(
      (all) => {
        const fitting = all.filter(({ family }) => !options.family || family === options.family);
        const [first] = fitting;
        if (first === undefined) return done(new Error(`${host} has no address`), '', 0);
        if (options.all === true) done(null, [...fitting]);
        else done(null, first.address, first.family);
      },
      (error) => done(error, '', 0),
    );
  };
}

/** For all connections of this process, unless they are given others. */
export const systemHosts = new HostNames();

/** HN2. */
function rotated(addresses: readonly HostAddress[], turn: number): readonly HostAddress[] {
  const inTurn = (family: number): Iterator<HostAddress> => {
    const those = addresses.filter((each) => each.family === family);
    const begin = turn % Math.max(1, those.length);
    return [...those.slice(begin), ...those.slice(0, begin)].values();
  };
  const families = new Map([...new Set(addresses.map(({ family }) => family))].map((one) => [one, inTurn(one)]));
  return addresses.map((each) => families.get(each.family)?.next().value ?? each);
}
