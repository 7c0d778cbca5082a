import { ServiceError } from '@remora/base';
import {
  type CallHandle,
  type Done,
  type Method,
  masterRanges,
  type RangeOverview,
  type RangeStatus,
  type RpcDialer,
  rangeStatus,
} from '@remora/protocol';
import { type AttemptPorts, type Attempts, untilAnswered } from './attempts.ts';

/** Asks the master once, at its last known leader; learns from the answer which node leads. */
export interface MasterCaller {
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: { readonly timeoutMs: number },
    done: Done<Reply>,
  ): CallHandle;
}

export interface ClusterCallsDeps extends AttemptPorts {
  readonly master: MasterCaller;
  readonly dialer: RpcDialer;
}

const STATUS_TIMEOUT_MS = 1_000;

/** Sends admin requests to the master's leader, and to the leaders of ranges. */
export class ClusterCalls {
  readonly #deps: ClusterCallsDeps;

  constructor(deps: ClusterCallsDeps) {
    this.#deps = deps;
  }

  /** Sends a query. */
  master<Request, Reply>(method: Method<Request, Reply>, request: Request, timeoutMs: number): Promise<Reply> {
    return this.#master(method, request, { timeoutMs, changes: false });
  }

  /** Sends a change that may be made twice. */
  change<Request, Reply>(method: Method<Request, Reply>, request: Request, timeoutMs: number): Promise<Reply> {
    return this.#master(method, request, { timeoutMs, changes: true });
  }

  /** Sends a change that must not be made twice: its outcome is unknown when an answer is lost. */
  once<Request, Reply>(method: Method<Request, Reply>, request: Request, timeoutMs: number): Promise<Reply> {
    return this.#master(method, request, { timeoutMs, changes: true, once: true });
  }

  #master<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    terms: Pick<Attempts<Reply>, 'timeoutMs' | 'changes' | 'once'>,
  ): Promise<Reply> {
    const { master } = this.#deps;
    return untilAnswered(this.#deps, {
      whom: "the master's leader",
      ...terms,
      attempt: (attemptMs, done) => master.call(method, request, { timeoutMs: attemptMs }, done),
    });
  }

  /** Resolves with what the master knows about a range. @throws ServiceError RANGE_NOT_FOUND */
  async range(rangeId: number, timeoutMs: number): Promise<RangeOverview> {
    const page = await this.master(masterRanges, { from: new Uint8Array(0), limit: 1, rangeId }, timeoutMs);
    const [range] = page.ranges;
    if (range === undefined) throw new ServiceError('RANGE_NOT_FOUND', `there is no range ${rangeId}`);
    return range;
  }

  /** Sends a change that may be made twice to the leader of a range, first to its last known one. */
  leader<Request, Reply>(
    { descriptor, leaderNode }: RangeOverview,
    method: Method<Request, Reply>,
    request: Request,
    timeoutMs: number,
  ): Promise<{ readonly node: number; readonly reply: Reply | undefined }> {
    const { dialer } = this.#deps;
    const nodes = descriptor.replicas.map(({ nodeId }) => nodeId);
    let next = leaderNode;
    return untilAnswered(this.#deps, {
      whom: `the leader of range ${descriptor.rangeId}`,
      ...{ timeoutMs, changes: true },
      attempt(attemptMs, done) {
        const asked = next === 0 ? (nodes[0] ?? 0) : next;
        return dialer.channel(asked).call(method, request, { timeoutMs: attemptMs }, (error, reply) => {
          if (error !== undefined) next = whereNext(error, asked, nodes);
          done(error, error === undefined ? { node: asked, reply } : undefined);
        });
      },
    });
  }

  /** Asks a node once. */
  node<Request, Reply>(
    nodeId: number,
    method: Method<Request, Reply>,
    request: Request,
    timeoutMs: number,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#deps.dialer.channel(nodeId).call(method, request, { timeoutMs }, (error, reply) => {
        if (error === undefined) resolve(reply as Reply);
        else reject(error);
      });
    });
  }

  /** Asks a node once for the status of its replica of a range; resolves with undefined without an answer. */
  status(nodeId: number, rangeId: number): Promise<RangeStatus | undefined> {
    if (nodeId === 0) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const options = { timeoutMs: STATUS_TIMEOUT_MS };
      this.#deps.dialer.channel(nodeId).call(rangeStatus, { rangeId }, options, (_error, status) => resolve(status));
    });
  }
}

/** Returns the leader that the error names, or the replica after the one that was asked. */
function whereNext({ details }: ServiceError, asked: number, nodes: readonly number[]): number {
  const named = details?.leaderNode;
  if (typeof named === 'number' && named !== 0 && named !== asked) return named;
  return nodes[(nodes.indexOf(asked) + 1) % Math.max(1, nodes.length)] ?? 0;
}
