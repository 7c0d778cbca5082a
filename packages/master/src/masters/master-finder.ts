import { type Clock, type ErrorCode, ServiceError } from '@remora/base';
import type { CallHandle, ClusterView, Done, Method, RpcChannel, RpcDialer } from '@remora/protocol';

/**
 * The pause before a master that did not answer is asked again, if others still name it as the leader. About as long as
 * an election: until then others may name a dead leader, and writes should not wait longer than that for one that is
 * back.
 */
const SILENT_MS = 500;

export interface MasterFinderDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly dialer: RpcDialer;
  /**
   * Addresses where a master may be found, and nodes that may be masters: tried alternately until the leader is known.
   * After a move, the address of each node may be a wrong one, and each attempt at a machine that is gone takes its
   * whole time.
   */
  readonly seeds: readonly string[];
  readonly masters: readonly number[];
  /** Whether the address of a node is known; otherwise it is taken from the answer that names the leader. */
  readonly reachable: (nodeId: number) => boolean;
  /** A called node says where the leader is, which may have moved. */
  readonly onLeaderAddress?: (nodeId: number, address: string) => void;
  /** The leader according to this node's own replica of the masters; 0 if it has no replica, or knows no leader. */
  readonly leaderHere?: () => number;
}

/** Since when no leader of the masters has answered, and which masters have answered calls since then. */
export interface MastersSilence {
  readonly sinceMs: number;
  readonly answering: ReadonlySet<number>;
}

/** Codes that the asked node did not send itself: nothing was heard from it. */
const NOT_HEARD: ReadonlySet<ErrorCode> = new Set(['UNAVAILABLE', 'UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED']);

const NO_MASTER = new ServiceError('UNAVAILABLE', 'the called node is not a master');

/** Chooses the target of a node's calls to the masters: the leader if known, otherwise one master after the other. */
export class MasterFinder {
  readonly #deps: MasterFinderDeps;
  /** The masters according to the last view. */
  #known: readonly number[] = [];
  #leader = 0;
  /** The address of a leader whose id has no known address: for a joining node. */
  #leaderAddress = '';
  /** The number of failed calls in a row. */
  #failures = 0;
  /** A master that did not answer, and the end of its pause. */
  #silent: number | string = 0;
  #silentUntilMs = 0;
  /** Since the last answer of a leader. */
  #unanswered: { readonly sinceMs: number; readonly answering: Set<number> } | undefined;

  constructor(deps: MasterFinderDeps) {
    this.#deps = deps;
  }

  /**
   * Makes one attempt. A caller that retries after a failure pauses briefly; the next attempt goes to the master named
   * by the answer, or to the next one.
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

  /** Undefined while the leader answers. Each heartbeat of this node asks it, so this is never old. */
  get silence(): MastersSilence | undefined {
    return this.#unanswered;
  }

  /** The first masters to ask, for messages. */
  get asked(): readonly (number | string)[] {
    const { masters, seeds } = this.#deps;
    return masters.length > 0 ? masters : seeds;
  }

  channel(): RpcChannel {
    return this.#channel(this.#next());
  }

  /** The next one to ask: a node, or an address. */
  #next(): number | string {
    if (this.#leader !== 0) return this.#leader;
    if (this.#leaderAddress !== '') return this.#leaderAddress;
    // The election itself tells this sooner than asking one after the other.
    const here = this.#deps.leaderHere?.() ?? 0;
    if (here !== 0 && here !== this.#silent) return here;
    const { masters, seeds } = this.#deps;
    const all = alternately<number | string>(this.#known.length > 0 ? this.#known : masters, seeds);
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
   * The likely leader according to the last answer. Followers name a dead leader while they wait for it. Asking that
   * one again takes longer than asking the followers until one of them leads: up to the whole time of an attempt, if a
   * machine is gone and nothing refuses the connection.
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
    if (typeof leaderNode === 'number' && leaderNode !== 0 && typeof leaderAddress === 'string') {
      this.#deps.onLeaderAddress?.(leaderNode, leaderAddress);
    }
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

/** The first of each, then the second of each. */
function alternately<T>(some: readonly T[], others: readonly T[]): readonly T[] {
  const longer = Math.max(some.length, others.length);
  return Array.from({ length: longer }, (_, i) => [...some.slice(i, i + 1), ...others.slice(i, i + 1)]).flat();
}
