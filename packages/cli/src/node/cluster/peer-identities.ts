/**
 * Which incarnation each node of the cluster has, and so who a peer is.
 *
 * PI1. The masters say it. What they said last is on disk, for lives that begin while no master can be reached; a node
 *      that runs a master's replica also has what that replica knows.
 * PI2. A founding member that the masters have not named yet is known by what answers at its address, in memory, for
 *      this life of the process. The first answer stays: a second incarnation is a disk that was lost, with its votes.
 * PI3. A hello teaches nothing. A caller that is not known is a joiner, whatever id it presents, and this node asks for
 *      it: at the address of a founding member, of any other the masters.
 * PI4. The id of a founding member that is not verified yet is not even claimed: nobody registers it from elsewhere.
 */
import { ServiceError } from '@remora/base';
import { ANONYMOUS_CALLER, type Caller, incarnationDigest, type LinkAnswer } from '@remora/protocol';

export interface PeerIdentitiesDeps {
  readonly self: { readonly nodeId: number; readonly incarnation: string };
  /** What the masters said of a node, by its incarnation (PI1); `removed` has none that counts any more. */
  readonly named: (nodeId: number) => NamedPeer | undefined;
  /** Whether the id is a founding member's, of those that this node was started with. */
  readonly isFounder: (nodeId: number) => boolean;
  /** Calls a founding member at its address; its answer comes to `checkAnswer` (PI3). */
  readonly askFounder: (nodeId: number) => void;
  /** Asks the masters for news of the cluster (PI3). */
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

  /** Who calls; `NODE_CONFLICT` for a node that is known by another incarnation. */
  identify({ nodeId, incarnation }: Presented): Caller | ServiceError {
    const known = this.#incarnationOf(nodeId);
    // Asked at each frame of a caller: a digest is made only while nothing else is known of it.
    if (known !== undefined) return known === incarnation ? { kind: 'node', nodeId } : conflict(nodeId);
    const digest = this.#digestOf(nodeId);
    if (digest === undefined) return this.#ask(nodeId);
    return digest === incarnationDigest(incarnation) ? { kind: 'node', nodeId } : conflict(nodeId);
  }

  /** Why a peer that answers is not who it says it is. */
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

/** Nothing in it that the other does not know. */
function conflict(nodeId: number): ServiceError {
  return new ServiceError(
    'NODE_CONFLICT',
    `node ${nodeId} came back without its data: the cluster knows another incarnation of it; ` +
      'let it join as a new node, with another --name, an empty data directory, and --join',
    { details: { nodeId } },
  );
}
