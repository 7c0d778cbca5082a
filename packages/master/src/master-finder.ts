import { ServiceError } from '@remora/base';
import type { CallHandle, ClusterView, Done, Method, RpcChannel, RpcDialer } from '@remora/protocol';

export interface MasterFinderDeps {
  readonly dialer: RpcDialer;
  /** Addresses at which a master may be found before any view is known. */
  readonly seeds: readonly string[];
  /** Nodes that may be masters, tried until the leader is known; then the seeds. */
  readonly masters: readonly number[];
  /** Whether the address of a node is known; otherwise it is taken from the answer that names the leader. */
  readonly reachable: (nodeId: number) => boolean;
}

const NO_MASTER = new ServiceError('UNAVAILABLE', 'the node that was asked is no master');

/** Where a node's calls to the master go: to its leader as far as known, otherwise to one master after the other. */
export class MasterFinder {
  readonly #deps: MasterFinderDeps;
  /** As the last view says. */
  #known: readonly number[] = [];
  #leader = 0;
  /** Of a leader whose id says nothing yet: to a node that joins. */
  #leaderAddress = '';
  /** Failed calls in a row. */
  #failures = 0;

  constructor(deps: MasterFinderDeps) {
    this.#deps = deps;
  }

  /** One attempt. Who repeats it after a failure waits a little, and asks where the answer pointed to, or the next one. */
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: { readonly timeoutMs: number },
    done: Done<Reply>,
  ): CallHandle {
    return this.channel().call(method, request, options, (error, reply) => {
      if (error === undefined) {
        this.#failures = 0;
        return done(undefined, reply);
      }
      this.failed(error);
      done(error.code === 'UNIMPLEMENTED' ? NO_MASTER : error, undefined);
    });
  }

  /** Whom it begins with, for messages. */
  get asked(): readonly (number | string)[] {
    const { masters, seeds } = this.#deps;
    return masters.length > 0 ? masters : seeds;
  }

  channel(): RpcChannel {
    const { dialer, masters, seeds } = this.#deps;
    if (this.#leader !== 0) return dialer.channel(this.#leader);
    if (this.#leaderAddress !== '') return dialer.channelTo(this.#leaderAddress);
    const ids = this.#known.length > 0 ? this.#known : masters;
    const at = this.#failures % Math.max(1, ids.length + seeds.length);
    const id = ids[at];
    return id === undefined ? dialer.channelTo(seeds[at - ids.length] ?? '') : dialer.channel(id);
  }

  viewed({ nodes, masterLeader }: ClusterView): void {
    this.#leader = masterLeader;
    this.#known = nodes.flatMap(({ descriptor }) => (descriptor.roles.includes('master') ? [descriptor.nodeId] : []));
  }

  /** Where the leader may be, by what the last answer said. */
  failed(error: ServiceError): void {
    this.#failures++;
    const { leaderNode, leaderAddress } = error.code === 'NOT_LEADER' ? (error.details ?? {}) : {};
    this.#leader = typeof leaderNode === 'number' && this.#deps.reachable(leaderNode) ? leaderNode : 0;
    this.#leaderAddress = typeof leaderAddress === 'string' ? leaderAddress : '';
  }
}
