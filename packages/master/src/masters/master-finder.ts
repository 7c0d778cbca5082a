import { type Clock, type ErrorCode, ServiceError } from '@remora/base';
import type { CallHandle, ClusterView, Done, Method, RpcChannel, RpcDialer } from '@remora/protocol';

/**
 * A master that gave no answer is asked again after so long, if others go on naming it. About as long as an election
 * takes: until then they name one that is gone, and longer than that writes should not wait for one that is back.
 */
const SILENT_MS = 500;

export interface MasterFinderDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly dialer: RpcDialer;
  /** Addresses at which a master may be found before any view is known. */
  readonly seeds: readonly string[];
  /** Nodes that may be masters, tried until the leader is known; then the seeds. */
  readonly masters: readonly number[];
  /** Whether the address of a node is known; otherwise it is taken from the answer that names the leader. */
  readonly reachable: (nodeId: number) => boolean;
  /** Who leads them as this node's own replica of them knows; 0 when it has none, or knows of nobody. */
  readonly leaderHere?: () => number;
}

/** Since when no leader of the masters has answered, and which of the masters called since then have answered. */
export interface MastersSilence {
  readonly sinceMs: number;
  readonly answering: ReadonlySet<number>;
}

/** The node that was asked did not say these itself: nothing was heard of it. */
const NOT_HEARD: ReadonlySet<ErrorCode> = new Set(['UNAVAILABLE', 'UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED']);

const NO_MASTER = new ServiceError('UNAVAILABLE', 'the called node is not a master');

/** Chooses the target of a node's calls to the masters: the leader if known, otherwise one master after the other. */
export class MasterFinder {
  readonly #deps: MasterFinderDeps;
  /** As the last view says. */
  #known: readonly number[] = [];
  #leader = 0;
  /** Of a leader whose id says nothing yet: to a node that joins. */
  #leaderAddress = '';
  /** Failed calls in a row. */
  #failures = 0;
  /** A master that gave no answer, and until when it is left alone. */
  #silent: number | string = 0;
  #silentUntilMs = 0;
  /** Since the last answer of a leader. */
  #unanswered: { readonly sinceMs: number; readonly answering: Set<number> } | undefined;

  constructor(deps: MasterFinderDeps) {
    this.#deps = deps;
  }

  /**
   * One attempt. Who repeats it after a failure waits a little, and asks where the answer pointed to, or the next one.
   */
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: { readonly timeoutMs: number },
    done: Done<Reply>,
  ): CallHandle {
    const to = this.#next();
    return this.#channel(to).call(method, request, options, (error, reply) => {
      if (error === undefined) {
        this.#answered();
        return done(undefined, reply);
      }
      this.#failed(error, to);
      done(error.code === 'UNIMPLEMENTED' ? NO_MASTER : error, undefined);
    });
  }

  #answered(): void {
    this.#failures = 0;
    this.#silent = 0;
    this.#unanswered = undefined;
  }

  /** Undefined while the leader answers. It is asked at each heartbeat of this node, so that this is never old. */
  get silence(): MastersSilence | undefined {
    return this.#unanswered;
  }

  /** Whom it begins with, for messages. */
  get asked(): readonly (number | string)[] {
    const { masters, seeds } = this.#deps;
    return masters.length > 0 ? masters : seeds;
  }

  channel(): RpcChannel {
    return this.#channel(this.#next());
  }

  /** Whom to ask: a node, or an address. */
  #next(): number | string {
    if (this.#leader !== 0) return this.#leader;
    if (this.#leaderAddress !== '') return this.#leaderAddress;
    // Told by the election itself, sooner than by asking one after the other.
    const here = this.#deps.leaderHere?.() ?? 0;
    if (here !== 0 && here !== this.#silent) return here;
    const { masters, seeds } = this.#deps;
    const all = [...(this.#known.length > 0 ? this.#known : masters), ...seeds];
    const inTurn = all.map((_, i) => all[(this.#failures + i) % all.length] ?? '');
    return inTurn.find((one) => one !== this.#silent) ?? inTurn[0] ?? '';
  }

  #channel(to: number | string): RpcChannel {
    const { dialer } = this.#deps;
    return typeof to === 'number' ? dialer.channel(to) : dialer.channelTo(to);
  }

  viewed({ nodes, masterLeader }: ClusterView): void {
    this.#leader = masterLeader;
    this.#known = nodes.flatMap(({ descriptor }) => (descriptor.roles.includes('master') ? [descriptor.nodeId] : []));
  }

  /**
   * Where the leader may be, by what the last answer said. Those who follow name a leader that is gone for as long as
   * they wait for it, and to ask it again takes longer than to ask them until one of them leads: up to the whole time
   * of an attempt, where a machine is gone and nothing refuses a connection.
   */
  #failed(error: ServiceError, to: number | string): void {
    this.#failures++;
    this.#unanswered ??= { sinceMs: this.#deps.clock.monotonicMs(), answering: new Set() };
    if (typeof to === 'number') {
      if (NOT_HEARD.has(error.code)) this.#unanswered.answering.delete(to);
      else this.#unanswered.answering.add(to);
    }
    if (error.code !== 'NOT_LEADER' && error.code !== 'UNIMPLEMENTED') this.#isSilent(to);
    const { leaderNode, leaderAddress } = error.code === 'NOT_LEADER' ? (error.details ?? {}) : {};
    if (this.#deps.clock.monotonicMs() >= this.#silentUntilMs) this.#silent = 0;
    const ignored = leaderNode === this.#silent && this.#silent !== 0;
    this.#leader = typeof leaderNode === 'number' && !ignored && this.#deps.reachable(leaderNode) ? leaderNode : 0;
    this.#leaderAddress = typeof leaderAddress === 'string' && !ignored ? leaderAddress : '';
  }

  #isSilent(whom: number | string): void {
    this.#silent = whom;
    this.#silentUntilMs = this.#deps.clock.monotonicMs() + SILENT_MS;
  }
}
