/**
 * The addresses at which this node dials other nodes.
 *
 * PA1. An address only says where to dial. Each link verifies who answers, by node id, incarnation and certificate
 *      (peer-identities.ts), so a wrong address costs time and nothing else.
 * PA2. Several sources may know an address, the newest first: the node itself in this life of the process, the masters,
 *      another node that names the masters' leader, and the options of this node. Each attempt that fails makes the
 *      next of them the current one. So nodes find each other again after most of them have moved, when no leader of
 *      the masters exists that could tell them.
 * PA3. What nodes say is kept in memory, one address of each kind for each node. An address that a verified node gives
 *      as its own, whether it calls or answers, is the first choice. What others pass on counts only for nodes that the
 *      masters have named: an unnamed founder is identified by the address in this node's options (peer-identities.ts
 *      PI2), so nobody else may choose that address.
 * PA4. `--peer-proxies` replaces everything else for the nodes that it names.
 * PA5. A node that starts at another address than the last known one calls every node (address-teller.ts), as soon as
 *      it has heard from the masters where they are. A node that calls nobody but the masters, and that nobody else
 *      calls, could not find the masters otherwise after all of them have moved.
 */
import { formatAddress, parseAddress } from '@remora/base';

/** The number of nodes of a cluster. */
const NODES_MAX = 1_000;

export interface PeerAddressesDeps {
  /** The proxy for a node (PA4). */
  readonly proxy: (nodeId: number) => string | undefined;
  /** The masters' last report. */
  readonly registered: (nodeId: number) => string | undefined;
  /** The address in this node's options. */
  readonly hinted: (nodeId: number) => string | undefined;
}

export class PeerAddresses {
  readonly #deps: PeerAddressesDeps;
  /** PA3. By the nodes themselves, and by others. */
  readonly #told = new Map<number, string>();
  readonly #passedOn = new Map<number, string>();
  /** The address that the next attempt dials, for nodes where one attempt has failed or succeeded. */
  readonly #current = new Map<number, string>();

  constructor(deps: PeerAddressesDeps) {
    this.#deps = deps;
  }

  /** `host:port` for the next attempt; undefined if no address is known. */
  next(nodeId: number): string | undefined {
    const known = this.#known(nodeId);
    const current = this.#current.get(nodeId);
    return current !== undefined && known.includes(current) ? current : known[0];
  }

  /** An attempt to reach the node at this address has failed (PA2). */
  failed(nodeId: number, address: string): void {
    if (this.next(nodeId) !== address) return;
    const known = this.#known(nodeId);
    const following = known[(known.indexOf(address) + 1) % known.length];
    if (following !== undefined) this.#current.set(nodeId, following);
  }

  /** A verified node says that this is its address (PA3). */
  told(nodeId: number, address: string): void {
    const written = asWritten(address);
    if (written === undefined) return;
    this.#told.set(nodeId, written);
    this.#current.set(nodeId, written);
  }

  /** Another node says that this is the address of a node. A new one is dialled next. */
  passedOn(nodeId: number, address: string): void {
    const written = asWritten(address);
    if (written === undefined || this.#deps.registered(nodeId) === undefined) return;
    if (this.#known(nodeId).includes(written)) return;
    if (this.#passedOn.size >= NODES_MAX) this.#passedOn.clear();
    this.#passedOn.set(nodeId, written);
    this.#current.set(nodeId, written);
  }

  #known(nodeId: number): readonly string[] {
    const { proxy, registered, hinted } = this.#deps;
    const instead = proxy(nodeId);
    if (instead !== undefined) return [instead];
    const all = [this.#told.get(nodeId), registered(nodeId), this.#passedOn.get(nodeId), hinted(nodeId)];
    return [...new Set(all.filter((address) => address !== undefined))];
  }
}

/** Undefined for what is no address. */
function asWritten(address: string): string | undefined {
  const read = parseAddress(address);
  return read && formatAddress(read);
}
