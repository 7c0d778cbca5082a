/**
 * RPC between nodes over sockets: one stream of frames per pair of nodes and direction of calls.
 *
 * G1. The calling end presents cluster, node, incarnation and the versions that it can write in its hello. The
 *     answering end names itself, with a digest of its incarnation. Either end refuses the other with a reason. The
 *     calling end sends nothing else before it has checked the answer: an address that now belongs to another node gets
 *     no calls, whether under its own id or, with other data, under the id of the node that was there.
 * G2. A caller without a cluster, or with node id 0, or whose node this one cannot verify, may only join and view
 *     (access.ts A2).
 * G3. An incarnation is a credential until nodes prove who they are by certificates. It leaves a node only in the
 *     hellos by which it calls others. Answers and refusals never contain an incarnation, nor the id of the cluster for
 *     a caller that did not present it.
 */
import { createHash } from 'node:crypto';
import {
  BUILD_VERSIONS,
  type CertificateNames,
  type Clock,
  type Connector,
  type FrameService,
  type Hello,
  type Logger,
  RareLog,
  rangeOf,
  rangeText,
  SERVICE,
  ServiceError,
  type SpokenVersions,
  silentLogger,
  versionRefusal,
} from '@remora/base';
import { ANONYMOUS_CALLER, type Caller } from '../access.ts';
import { FRAME_BYTES_MAX, type FrameLink } from '../link.ts';
import type { RpcDispatcher } from '../registry.ts';
import { type ServedLink, type ServerLimits, serveLink } from '../server.ts';
import { acceptedLink, dialLink } from './frame-link.ts';

/** Requests of joining nodes are small. */
const JOINER_FRAME_BYTES_MAX = 64 * 1024;

/** The name of call streams at a node's port. */
export const RPC_SERVICE = 'rpc';

/** The identity that a node presents to the nodes that it calls. Empty cluster and node 0: it has not joined yet. */
export interface LinkIdentity {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly incarnation: string;
  /** `host:port` where others reach it, as it says. Not part of its identity. */
  readonly address?: string | undefined;
  /** The node's versions; absent: those of this build, and none is in force. */
  readonly versions?: SpokenVersions;
}

/** The identity that a node presents to its callers. */
export interface LinkAnswer {
  readonly nodeId: number;
  /** The caller wanted this node, at its address; otherwise it called an address, whatever node answers there. */
  readonly wanted: boolean;
  /** `incarnationDigest` of its incarnation. */
  readonly digest: string;
  /** Its certificate; undefined without TLS. */
  readonly certificate?: CertificateNames | undefined;
  /** `host:port` where others reach it, as it says; undefined if it does not. */
  readonly address?: string | undefined;
}

/** A one-way function: it distinguishes incarnations and reveals none. */
export function incarnationDigest(incarnation: string): string {
  return createHash('sha256').update(incarnation).digest('hex');
}

export interface RpcServiceOptions {
  /** Called for each connection, because a node learns its cluster and id when it joins. */
  readonly identity: () => LinkIdentity;
  readonly registry: RpcDispatcher;
  readonly clock: Clock;
  readonly limits?: ServerLimits;
  /**
   * Returns the identity of a caller of this cluster with an id above 0; NODE_CONFLICT for a node known with another
   * incarnation; UNAUTHENTICATED for one whose certificate is of another node. Called for each frame of a caller.
   */
  readonly identify: (peer: LinkIdentity, certificate: CertificateNames | undefined) => Caller | ServiceError;
  /** Called when a link of a node is accepted, and when the caller of a link has become known as one. */
  readonly onNode?: (peer: LinkIdentity) => void;
  readonly logger?: Logger;
}

/** The service for the node's port. */
export interface RpcService extends FrameService {
  /** Ends all links that peers have opened. */
  close(): void;
}

export function createRpcService(options: RpcServiceOptions): RpcService {
  const log = new RareLog(options.clock, options.logger ?? silentLogger);
  const links = new Set<ServedLink>();
  const identifyBy = (peer: LinkIdentity, certificate: CertificateNames | undefined): Caller | ServiceError => {
    if (!isAnonymous(peer)) return options.identify(peer, certificate);
    return certificate === undefined ? ANONYMOUS_CALLER : { kind: 'joiner', claims: 0, certificate };
  };
  return {
    name: RPC_SERVICE,
    open(hello, stream) {
      const local = options.identity();
      const peer = readIdentity(hello);
      const { peerCertificate } = stream;
      const identify = (): Caller | ServiceError => identifyBy(peer, peerCertificate);
      const verified = clusterRefusal(peer.clusterId, local) ?? identify();
      // Last: a node that speaks of the cluster's version is known to be of the cluster.
      const caller = verified instanceof ServiceError ? verified : (versionsRefusal(hello, local, SERVING) ?? verified);
      if (caller instanceof ServiceError) {
        log.warn(caller.code, { peer: peer.nodeId, code: caller.code, reason: caller.message }, 'refused a peer');
        stream.end(caller);
        return;
      }
      stream.sayHello(answerTo(peer, local));
      let trusted = caller.kind === 'node';
      const trust = (): void => {
        stream.trust();
        options.onNode?.(peer);
      };
      if (trusted) trust();
      else stream.takeFramesUpTo(JOINER_FRAME_BYTES_MAX);
      const link = serveLink({
        link: acceptedLink(stream),
        registry: options.registry,
        clock: options.clock,
        caller,
        identify: () => {
          const now = identify();
          if (!trusted && !(now instanceof ServiceError) && now.kind === 'node') {
            trusted = true;
            trust();
            stream.takeFramesUpTo(FRAME_BYTES_MAX);
          }
          return now;
        },
        onClose: () => links.delete(link),
        ...(options.limits === undefined ? {} : { limits: options.limits }),
      });
      links.add(link);
    },
    close() {
      const reason = new ServiceError('UNAVAILABLE', 'the node is stopping');
      for (const link of [...links]) link.close(reason);
    },
  };
}

/**
 * Begins a link to a peer with the identity `local` (G1). `verify` uses the node's own knowledge of its peers;
 * `connector` opens the socket, in plain text by default.
 */
export function dialRpc(
  target: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
  clock: Clock,
  verify: (answer: LinkAnswer) => ServiceError | undefined = () => undefined,
  connector?: Connector | undefined,
): FrameLink {
  const check = (hello: Hello, certificate: CertificateNames | undefined) =>
    checkAnswer(hello, target, local) ??
    checkKnown(hello, target, local, (answer) => verify({ ...answer, certificate }));
  return dialLink(
    { address: target.address, hello: callerHello(local), check },
    { clock, frameBytesMax: FRAME_BYTES_MAX, connector },
  );
}

function callerHello({ clusterId, nodeId, incarnation, address, versions }: LinkIdentity): Hello {
  return rpcHello(clusterId, nodeId, versions, { incarnation, ...(address === undefined ? {} : { address }) });
}

/** G3. */
function answerTo(peer: LinkIdentity, { clusterId, nodeId, incarnation, address, versions }: LinkIdentity): Hello {
  if (peer.clusterId !== clusterId) return rpcHello('', 0, versions, {});
  const digest = incarnationDigest(incarnation);
  return rpcHello(clusterId, nodeId, versions, { digest, ...(address === undefined ? {} : { address }) });
}

function rpcHello(cluster: string, nodeId: number, spoken: SpokenVersions | undefined, rest: Hello): Hello {
  const versions = rangeText((spoken ?? UNSAID).builds);
  return { [SERVICE]: RPC_SERVICE, versions, cluster, node: String(nodeId), ...rest };
}

/** A caller without a cluster has no id in it either (G2). */
function readIdentity({ cluster = '', node, incarnation = '', address }: Hello): LinkIdentity {
  const nodeId = cluster === '' ? 0 : Number(node);
  const isId = Number.isSafeInteger(nodeId) && nodeId > 0;
  return { clusterId: cluster, nodeId: isId ? nodeId : 0, incarnation, address };
}

/** G2. */
function isAnonymous({ clusterId, nodeId }: LinkIdentity): boolean {
  return clusterId === '' || nodeId === 0;
}

function checkAnswer(
  hello: Hello,
  target: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
): ServiceError | undefined {
  const peer = readIdentity(hello);
  const refusal = clusterRefusal(peer.clusterId, local) ?? versionsRefusal(hello, local, CALLING);
  if (refusal !== undefined) return refusal;
  if (target.nodeId === 0 || peer.nodeId === target.nodeId) return undefined;
  // The wanted node is not there. No node has refused this one, which NODE_CONFLICT would mean.
  return new ServiceError(
    'UNAVAILABLE',
    `${target.address} was to be node ${target.nodeId} but is node ${peer.nodeId}`,
  );
}

/**
 * G1. A node without a cluster knows no other node, and does not learn of one from an address that may belong to
 *     another cluster. As above, if another node than the wanted one answers, no node has refused this one.
 */
function checkKnown(
  hello: Hello,
  { address, nodeId: wanted }: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
  verify: (answer: LinkAnswer) => ServiceError | undefined,
): ServiceError | undefined {
  const { nodeId } = readIdentity(hello);
  if (local.clusterId === '' || nodeId === 0) return undefined;
  const { digest = '', address: said } = hello;
  const cause = verify({ nodeId, wanted: nodeId === wanted, digest, address: said });
  if (cause === undefined) return undefined;
  return new ServiceError('UNAVAILABLE', `${address}: ${cause.message}`, { cause });
}

const UNSAID: SpokenVersions = { builds: BUILD_VERSIONS };
const SERVING = { own: 'the answering node', peer: 'the calling node' };
const CALLING = { own: 'the calling node', peer: 'the answering node' };

function versionsRefusal(
  { versions = '' }: Hello,
  local: LinkIdentity,
  who: Parameters<typeof versionRefusal>[2],
): ServiceError | undefined {
  const text = versionRefusal(local.versions ?? UNSAID, rangeOf(versions), who);
  return text === undefined ? undefined : new ServiceError('VERSION_REFUSED', text);
}

/**
 * A node without a cluster may call what G2 allows, and may itself call any node. This node's own cluster id is not
 * revealed (G3).
 */
function clusterRefusal(theirs: string, { clusterId: ours }: LinkIdentity): ServiceError | undefined {
  if (theirs === '' || ours === '' || theirs === ours) return undefined;
  return new ServiceError('WRONG_CLUSTER', `cluster '${theirs}' is not the cluster of this node`);
}
