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
 * PI5. With TLS, a peer also has to show the certificate of the node whose id it presents, by the name, or the address,
 *      that the masters or the options have for that id. Its trust domain is that of this node's own certificate: one
 *      authority may serve several clusters.
 */
import { type CertificateNames, ServiceError } from '@remora/base';
import {
  ANONYMOUS_CALLER,
  type Caller,
  certifies,
  incarnationDigest,
  type LinkAnswer,
  type RegisteredNode,
  shownNames,
  trustDomainOf,
} from '@remora/protocol';

export interface PeerIdentitiesDeps {
  readonly self: { readonly nodeId: number; readonly incarnation: string };
  /** The masters' report about a node, with its incarnation (PI1); a `removed` node has no valid one. */
  readonly named: (nodeId: number) => NamedPeer | undefined;
  /** The name and address of a node, from the masters or from the options of this node (PI5). */
  readonly registered: (nodeId: number) => RegisteredNode | undefined;
  /** The same from the options of this node alone, which are newer than the masters' report after a move (PI5). */
  readonly hinted: (nodeId: number) => RegisteredNode | undefined;
  /** The trust domain of this node's own certificate, if that names one. */
  readonly trustDomain: () => string | undefined;
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

  /**
   * Returns the caller; `NODE_CONFLICT` for a node that is known with another incarnation, `UNAUTHENTICATED` for one
   * with the certificate of another node.
   */
  identify({ nodeId, incarnation }: Presented, certificate?: CertificateNames): Caller | ServiceError {
    const refusal = certificate && this.#certificateRefusal(nodeId, certificate);
    if (refusal !== undefined) return refusal;
    const known = this.#incarnationOf(nodeId);
    // Runs for each frame of a caller: the digest is computed only if nothing else is known.
    if (known !== undefined) return known === incarnation ? { kind: 'node', nodeId } : conflict(nodeId);
    const digest = this.#digestOf(nodeId);
    if (digest === undefined) return this.#ask(nodeId, certificate);
    return digest === incarnationDigest(incarnation) ? { kind: 'node', nodeId } : conflict(nodeId);
  }

  /** Why an answering peer is not the one that it claims to be. */
  checkAnswer({ nodeId, digest, wanted, certificate }: LinkAnswer): ServiceError | undefined {
    const refusal = certificate && this.#certificateRefusal(nodeId, certificate);
    if (refusal !== undefined) return refusal;
    const known = this.#digestOf(nodeId);
    if (known !== undefined) return known === digest ? undefined : conflict(nodeId);
    if (wanted && this.#isUnnamedFounder(nodeId) && digest !== '') this.#answered.set(nodeId, digest); // PI2
    return undefined;
  }

  /** Whether another node has answered, and is known to be the one that it claims to be. */
  isKnown({ nodeId, digest, certificate }: LinkAnswer): boolean {
    if (nodeId === this.#deps.self.nodeId || this.#digestOf(nodeId) !== digest) return false;
    return certificate === undefined || this.#certificateRefusal(nodeId, certificate) === undefined;
  }

  /** PI5. Runs for each frame of a caller, so it only compares texts. */
  #certificateRefusal(nodeId: number, certificate: CertificateNames): ServiceError | undefined {
    const [domain, own] = [trustDomainOf(certificate), this.#deps.trustDomain()];
    if (domain !== undefined && own !== undefined && domain !== own) {
      return unauthenticated(`the certificate is of the trust domain ${domain}, and not of ${own}`);
    }
    const node = this.#deps.registered(nodeId);
    if (node === undefined || certifies(certificate, node)) return undefined;
    const hinted = this.#deps.hinted(nodeId);
    if (hinted !== undefined && certifies(certificate, hinted)) return undefined;
    const names = shownNames(certificate);
    return unauthenticated(
      `node ${nodeId} is ${node.name} at ${node.peerAddress}, and the certificate is for ${names}`,
    );
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
  #ask(nodeId: number, certificate: CertificateNames | undefined): Caller {
    const { askFounder, askMasters } = this.#deps;
    if (this.#isUnnamedFounder(nodeId)) {
      askFounder(nodeId);
      return withCertificate(ANONYMOUS_CALLER, certificate); // PI4
    }
    askMasters();
    return withCertificate({ kind: 'joiner', claims: nodeId }, certificate);
  }
}

type Joiner = Extract<Caller, { readonly kind: 'joiner' }>;

function withCertificate(caller: Joiner, certificate: CertificateNames | undefined): Caller {
  return certificate === undefined ? caller : { ...caller, certificate };
}

function unauthenticated(message: string): ServiceError {
  return new ServiceError('UNAUTHENTICATED', message);
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
