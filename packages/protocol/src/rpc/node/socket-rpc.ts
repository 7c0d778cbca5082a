/**
 * RPC between nodes over sockets: one stream of frames per pair of nodes and direction of calls.
 *
 * G1. Both ends name cluster, node, incarnation and protocol version in their hello; either refuses the other with a
 *     clear reason. Nothing is sent before the dialling end has checked the answer: an address that now belongs to
 *     another node gets no calls, whether under its own id or, with other data, under that of the node that was there.
 * G2. A node that is not a member yet (cluster id empty, node 0) may only ask to join and for the view.
 */
import {
  type Clock,
  type FrameService,
  type Hello,
  type Logger,
  SERVICE,
  ServiceError,
  silentLogger,
} from '@remora/base';
import { FRAME_BYTES_MAX, type FrameLink } from '../link.ts';
import type { RpcDispatcher } from '../registry.ts';
import { type ServedLink, type ServerLimits, serveLink } from '../server.ts';
import { acceptedLink, dialLink } from './frame-link.ts';

/** 2: heartbeats tell the epochs of replicas and what leaders know, and their answers carry orders. */
export const RPC_PROTOCOL_VERSION = '3';

/** What the streams of calls are called at a node's port. */
export const RPC_SERVICE = 'rpc';

const JOINING_METHODS: ReadonlySet<string> = new Set(['master.join', 'master.view']);

/** Who a node is. Empty cluster and node 0: it has not joined yet. */
export interface LinkIdentity {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly incarnation: string;
}

export interface RpcServiceOptions {
  /** Asked at each connection, as a node learns its cluster and id when it joins. */
  readonly identity: () => LinkIdentity;
  readonly registry: RpcDispatcher;
  readonly clock: Clock;
  readonly limits?: ServerLimits;
  /** A further check of who calls: NODE_CONFLICT for a node that is known under another incarnation. */
  readonly acceptPeer?: (peer: LinkIdentity) => ServiceError | undefined;
  readonly logger?: Logger;
}

/** The service for the node's port. */
export interface RpcService extends FrameService {
  /** Ends all links that peers have opened. */
  close(): void;
}

export function createRpcService(options: RpcServiceOptions): RpcService {
  const logger = options.logger ?? silentLogger;
  const links = new Set<ServedLink>();
  return {
    name: RPC_SERVICE,
    open(hello, stream) {
      const local = options.identity();
      const peer = readIdentity(hello);
      const refusal = checkPeer(hello, peer, local) ?? options.acceptPeer?.(peer);
      if (refusal !== undefined) {
        logger.warn({ peer: peer.nodeId, code: refusal.code, reason: refusal.message }, 'refused a peer');
        stream.end(refusal);
        return;
      }
      stream.sayHello(rpcHello(local));
      const joined = peer.clusterId !== '';
      const link = serveLink({
        link: acceptedLink(stream),
        registry: options.registry,
        clock: options.clock,
        peer: joined ? peer.nodeId : 0,
        allows: (method) => joined || JOINING_METHODS.has(method),
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

/** Begins a link to a peer in the name of `local` (G1). `verify` is the node's own knowledge of its peers. */
export function dialRpc(
  target: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
  clock: Clock,
  verify: (peer: LinkIdentity) => ServiceError | undefined = () => undefined,
): FrameLink {
  const check = (hello: Hello) => checkAnswer(hello, target, local) ?? checkKnown(hello, target, local, verify);
  return dialLink(
    { address: target.address, hello: rpcHello(local), check },
    { clock, frameBytesMax: FRAME_BYTES_MAX },
  );
}

function rpcHello({ clusterId, nodeId, incarnation }: LinkIdentity): Hello {
  const node = String(nodeId);
  return { [SERVICE]: RPC_SERVICE, protocol: RPC_PROTOCOL_VERSION, cluster: clusterId, node, incarnation };
}

/** Whoever names no cluster has no id in it either (G2). */
function readIdentity({ cluster = '', node, incarnation = '' }: Hello): LinkIdentity {
  const nodeId = cluster === '' ? 0 : Number(node);
  return { clusterId: cluster, nodeId: Number.isSafeInteger(nodeId) && nodeId > 0 ? nodeId : 0, incarnation };
}

function checkAnswer(
  hello: Hello,
  target: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
): ServiceError | undefined {
  const peer = readIdentity(hello);
  const refusal = checkPeer(hello, peer, local);
  if (refusal !== undefined) return refusal;
  if (target.nodeId === 0 || peer.nodeId === target.nodeId) return undefined;
  // The node that is looked for is not there. Nobody has refused this one, which is what NODE_CONFLICT would say.
  return new ServiceError(
    'UNAVAILABLE',
    `${target.address} was to be node ${target.nodeId} but is node ${peer.nodeId}`,
  );
}

/**
 * G1. Whoever has no cluster yet knows nobody in it, and does not begin to by an address that may be another cluster's.
 * As above, that one is not who it should be refuses nobody.
 */
function checkKnown(
  hello: Hello,
  { address }: { readonly address: string },
  local: LinkIdentity,
  verify: (peer: LinkIdentity) => ServiceError | undefined,
): ServiceError | undefined {
  const peer = readIdentity(hello);
  if (local.clusterId === '' || peer.nodeId === 0) return undefined;
  const cause = verify(peer);
  if (cause === undefined) return undefined;
  return new ServiceError('UNAVAILABLE', `${address}: ${cause.message}`, { cause });
}

/** G1. A node without a cluster is welcome for what G2 allows, and may itself talk to anybody. */
function checkPeer({ protocol = '' }: Hello, peer: LinkIdentity, local: LinkIdentity): ServiceError | undefined {
  if (protocol !== RPC_PROTOCOL_VERSION) {
    return new ServiceError(
      'UNIMPLEMENTED',
      `the peer speaks RPC protocol '${protocol}', this node '${RPC_PROTOCOL_VERSION}'`,
    );
  }
  if (peer.clusterId !== '' && local.clusterId !== '' && peer.clusterId !== local.clusterId) {
    return new ServiceError('WRONG_CLUSTER', `cluster '${peer.clusterId}' is not cluster '${local.clusterId}'`);
  }
  return undefined;
}
