/**
 * The incarnation of each node of the cluster, which identifies peers.
 *
 * PI1. The masters report the incarnations. Their last report is on disk, for lives that begin while no master can be
 *      reached; a node that runs a master's replica also has what that replica knows.
 * PI2. If the masters have not named a founding member yet, the incarnation that answers at its address is used, in
 *      memory, for this life of the process. The first answer stays: a second incarnation means that a disk was lost,
 *      with its votes.
 * PI3. A hello teaches nothing. An unknown caller counts as a joining node, whatever id it presents, and this node
 *      verifies it: by a call to the address of a founding member, by the masters for any other.
 * PI4. The id of a founding member that is not verified yet cannot even be claimed: no other caller registers it.
 */
import { ServiceError } from '@remora/base';
import { ANONYMOUS_CALLER, type Caller, incarnationDigest, type LinkAnswer } from '@remora/protocol';

export interface PeerIdentitiesDeps {
  readonly self: { readonly nodeId: number; readonly incarnation: string };
  /** The masters' report about a node, with its incarnation (PI1); a `removed` node has no valid one. */
  readonly named: (nodeId: number) => NamedPeer | undefined;
  /** Whether the id belongs to one of the founding members that this node was started with. */
  readonly isFounder: (nodeId: number) => boolean;
  /** Calls a founding member at its address; `checkAnswer` receives the answer (PI3). */
  readonly askFounder: (nodeId: number) => void;
  /** Requests a new view from the masters (PI3). */
  readonly askMasters: () => void;
}

export interface NamedPeer {
  readonly incarnation: string;
  readonly removed: boolean;
}

interface Presented {
  readonly nodeId: number;
  readonly incarnation: string;
}

export class PeerIdentities {
  readonly #deps: PeerIdentitiesDeps;
  /** PI2: digests, by the founding member's id. */
  readonly #answered = new Map<number, string>();

  constructor(deps: PeerIdentitiesDeps) {
    this.#deps = deps;
  }

  /** Returns the caller; `NODE_CONFLICT` for a node that is known with another incarnation. */
  identify({ nodeId, incarnation }: Presented): Caller | ServiceError {
    const known = this.#incarnationOf(nodeId);
    // Runs for each frame of a caller: the digest is computed only if nothing else is known.
    if (known !== undefined) return known === incarnation ? { kind: 'node', nodeId } : conflict(nodeId);
    const digest = this.#digestOf(nodeId);
    if (digest === undefined) return this.#ask(nodeId);
    return digest === incarnationDigest(incarnation) ? { kind: 'node', nodeId } : conflict(nodeId);
  }

  /** Why an answering peer is not the one that it claims to be. */
  checkAnswer({ nodeId, digest, wanted }: LinkAnswer): ServiceError | undefined {
    const known = this.#digestOf(nodeId);
    if (known !== undefined) return known === digest ? undefined : conflict(nodeId);
    if (wanted && this.#isUnnamedFounder(nodeId) && digest !== '') this.#answered.set(nodeId, digest); // PI2
    return undefined;
  }

  #incarnationOf(nodeId: number): string | undefined {
    const { self, named } = this.#deps;
    if (nodeId === self.nodeId) return self.incarnation;
    const peer = named(nodeId);
    return peer === undefined || peer.removed ? undefined : peer.incarnation;
  }

  #digestOf(nodeId: number): string | undefined {
    const known = this.#incarnationOf(nodeId);
    if (known !== undefined) return incarnationDigest(known);
    return this.#deps.named(nodeId) === undefined ? this.#answered.get(nodeId) : undefined;
  }

  #isUnnamedFounder(nodeId: number): boolean {
    const { isFounder, named } = this.#deps;
    return isFounder(nodeId) && named(nodeId) === undefined;
  }

  /** PI3. */
  #ask(nodeId: number): Caller {
    const { askFounder, askMasters } = this.#deps;
    if (this.#isUnnamedFounder(nodeId)) {
      askFounder(nodeId);
      return ANONYMOUS_CALLER; // PI4
    }
    askMasters();
    return { kind: 'joiner', claims: nodeId };
  }
}

/** Contains only what the other side knows already. */
function conflict(nodeId: number): ServiceError {
  return new ServiceError(
    'NODE_CONFLICT',
    `node ${nodeId} came back without its data: the cluster knows another incarnation of it; ` +
      'let it join as a new node, with another --name, an empty data directory, and --join',
    { details: { nodeId } },
  );
}
