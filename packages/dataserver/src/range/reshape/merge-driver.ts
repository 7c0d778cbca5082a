import { type Clock, type Engine, type Logger, ServiceError, sleep, toServiceError } from '@remora/base';
import {
  type CommandResult,
  type MergeCommand,
  type MergeRound,
  type Method,
  type RangeDescriptor,
  type RpcDialer,
  rangeRefuseMerge,
  rangeSeal,
  rangeSettle,
  rangeUnseal,
} from '@remora/protocol';
import { isJoint } from '@remora/raft';
import { Pauses } from '../../splitting/pauses.ts';
import type { RangeState } from '../../state/range-state.ts';
import { fullRefusal, leaseConflict, misfit } from '../../state/reshape/merge.ts';
import { verdictOn } from '../../state/reshape/merging.ts';
import { type Carried, NOT_LEADING } from '../membership/member-orders.ts';
import type { ServedReplica } from '../served-replica.ts';
import { hasMoreThan } from '../stats/size-sampler.ts';

export interface MergeDriverDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly replica: (rangeId: number) => ServedReplica | undefined;
  readonly replicas: () => Iterable<ServedReplica>;
  readonly sealed: () => readonly ServedReplica[];
}

/** An ordered merge. */
export interface WantedMerge {
  readonly targetId: number;
  readonly sourceId: number;
  /** The merge is refused if the two ranges have more than this, measured like splits; absent or 0: no limit. */
  readonly bytesMax?: number;
}

/** The ranges to merge: the target is led here. */
interface Pair {
  readonly target: ServedReplica;
  readonly source: ServedReplica;
}

/** The result of an attempt, reported once. */
interface Attempt {
  readonly sourceId: number;
  /** Undefined while the merge is in progress. */
  error: ServiceError | undefined;
  inFlight: boolean;
}

/** The time-out of a call whose answer may take a checkpoint. */
const CALL_TIMEOUT_MS = 1_000;
/** The time limit from the seal on: requests to the source wait this long at most, then the merge is refused. */
const SEALED_MAX_MS = 1_000;
/** The time limit before the seal, while no request waits. */
const READY_MAX_MS = 5_000;
const PAUSE_MS = 5;
const DONE: Carried = { outcome: 'done', reason: '' };

/**
 * Drives merges into ranges that this node leads (range/reshape/merges.ts has the rules).
 *
 *   1. Every node confirms that it has both replicas, and has checkpointed their state, so that the checkpoint of step
 *      3 is short.
 *   2. The source's leader seals it.
 *   3. Every node confirms that its replica of the source has applied the seal, durably (MR2).
 *   4. The target's log decides.
 *
 * MD1. A failure before step 2 has changed nothing. After a failure or a time-out from there on, the round is refused
 *      by an entry in the target's log, whatever became of step 4. Then the source is unsealed, unless the merge had
 *      happened (MR4).
 * MD2. If a driver dies, the source stays sealed at worst. The target's next leader finds that by its own replica of
 *      the source, and continues from step 1: it completes the merge, or refuses it. If the round was refused already,
 *      only the unseal is missing. The leader of a range that took the target over does the same. It may have no
 *      replica of the source, because the target had other members when the source was sealed, or has changed them
 *      since; then no merge is possible. In that case every node that has replicas of both has the leader refuse the
 *      round, and the source unsealed.
 * MD3. One merge into a range at a time; a repeated order returns its progress.
 * MD4. An automatic merge order is based on the live plain keys alone. The rows of both ranges are measured here as for
 *      a split (size-sampler.ts): two ranges that would be split again are not merged.
 * MD5. What may pass by itself does not end a merge: it is reported as in progress, with the reason, and tried again
 *      after a pause that doubles, because each attempt holds up requests to the source. The master's time limit ends
 *      it. What cannot succeed as it is, is refused at once.
 */
export class MergeDriver {
  readonly #deps: MergeDriverDeps;
  /** By target (MD3). */
  readonly #attempts = new Map<number, Attempt>();
  /** By target (MD5). */
  readonly #pauses: Pauses;
  #stopped = false;

  constructor(deps: MergeDriverDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
  }

  /** Begins to merge a neighbour into a range, or returns the state of the merge. */
  carryOut({ targetId, sourceId, bytesMax = 0 }: WantedMerge): Carried {
    const target = this.#deps.replica(targetId);
    if (!target?.serving) return NOT_LEADING;
    if (target.state.merging.absorbed.includes(sourceId)) return DONE;
    const attempt = this.#attempts.get(targetId);
    if (attempt?.inFlight) {
      const same = attempt.sourceId === sourceId;
      return inFlight(same ? 'the merge is in progress' : `range ${attempt.sourceId} is being merged with it`);
    }
    const failed = attempt?.sourceId === sourceId ? attempt.error : undefined;
    const passes = failed !== undefined && failed.retry !== 'no';
    if (passes && this.#pauses.paused(targetId)) {
      return inFlight(`the last attempt failed, and is repeated: ${failed.message}`); // MD5
    }
    this.#attempts.delete(targetId);
    if (failed !== undefined && !passes) return refused(failed.message);
    const source = this.#deps.replica(sourceId);
    if (source === undefined) return refused(`range ${sourceId} has no replica on node of the leader`);
    const busy = changing({ target, source });
    if (busy !== undefined) return inFlight(busy);
    const wrong = problem({ target, source });
    if (wrong !== undefined) return refused(wrong);
    this.#begin({ target, source }, bytesMax);
    return inFlight('the merge has begun');
  }

  /** Whether a merge into the range is in progress here (MD3). */
  isMerging(rangeId: number): boolean {
    return this.#attempts.get(rangeId)?.inFlight === true;
  }

  /** MD2. Called about every second. */
  housekeep(): void {
    this.#pauses.keepOnly({ has: (rangeId) => this.#deps.replica(rangeId)?.serving === true });
    const sealed = this.#deps.sealed();
    if (sealed.length === 0) return;
    for (const target of this.#deps.replicas()) {
      if (this.isMerging(target.rangeId)) continue;
      for (const source of sealed) {
        if (target.serving || !isOn(source, target.leadership.node)) this.#goOn({ target, source });
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #goOn({ target, source }: Pair): void {
    const { seal } = source.state.merging;
    if (seal === undefined) return;
    const verdict = verdictOn(seal, source.rangeId, target.state);
    if (verdict === 'refused') void this.#unseal(source, seal).catch(() => {});
    else if (verdict === 'open' && target.serving) this.#begin({ target, source });
    else if (verdict === 'open') this.#haveRefused(target, seal);
  }

  /** The leader's decision becomes visible in the target's log. */
  #haveRefused(target: ServedReplica, { targetId, round }: MergeRound): void {
    const node = target.leadership.node;
    if (node !== 0) void this.#call(node, rangeRefuseMerge, { targetId, round }).catch(() => {});
  }

  /** MD3. */
  #begin(pair: Pair, bytesMax = 0): void {
    const { target, source } = pair;
    const attempt: Attempt = { sourceId: source.rangeId, error: undefined, inFlight: true };
    this.#attempts.set(target.rangeId, attempt);
    const names = { range: target.rangeId, source: source.rangeId };
    const startedMs = this.#deps.clock.monotonicMs();
    this.#merge(pair, bytesMax)
      .then(
        () => {
          this.#pauses.succeeded(target.rangeId);
          const tookMs = Math.round(this.#deps.clock.monotonicMs() - startedMs);
          this.#deps.logger.info({ ...names, tookMs }, 'merged a neighbour into the range');
        },
        (error: unknown) => {
          attempt.error = toServiceError(error);
          this.#pauses.failed(target.rangeId);
          this.#deps.logger.info({ ...names, reason: attempt.error.message }, 'a neighbour was not merged');
        },
      )
      .finally(() => {
        attempt.inFlight = false;
      });
  }

  async #merge(pair: Pair, bytesMax: number): Promise<void> {
    const { target, source } = pair;
    const { descriptor, merging } = target.state;
    const into = { targetId: target.rangeId, round: merging.round };
    let maybeSealed = source.state.merging.seal !== undefined;
    try {
      await this.#fits(pair, bytesMax);
      await this.#ready(pair, maybeSealed ? SEALED_MAX_MS : READY_MAX_MS);
      maybeSealed = true;
      await this.#decide(pair, descriptor, into);
    } catch (error) {
      if (!maybeSealed) throw error; // MD1
      await this.#refuse(pair, into);
      if (!target.state.merging.absorbed.includes(source.rangeId)) throw error;
    }
  }

  /** MD4. */
  async #fits({ target, source }: Pair, bytesMax: number): Promise<void> {
    if (bytesMax === 0) return;
    const { engine, clock } = this.#deps;
    const span = { start: target.state.descriptor.start, end: source.state.descriptor.end };
    if (!(await hasMoreThan(engine, span, { bytes: bytesMax, clock, stopped: () => this.#stopped }))) return;
    const message = `the two have more than ${bytesMax} bytes, older versions included`;
    throw new ServiceError('INVALID_ARGUMENT', message);
  }

  /** Step 1. */
  async #ready({ target, source }: Pair, withinMs: number): Promise<void> {
    const untilMs = this.#deps.clock.monotonicMs() + withinMs;
    await Promise.all(
      [target, source].map(({ state }) => this.#settled(state.descriptor, state.applied.index, untilMs)),
    );
  }

  /** Steps 2 to 4. */
  async #decide({ target, source }: Pair, { epoch }: RangeDescriptor, into: MergeRound): Promise<void> {
    const untilMs = this.#deps.clock.monotonicMs() + SEALED_MAX_MS;
    const { rangeId } = source;
    const sealed = await this.#callLeader(source, rangeSeal, untilMs, ({ descriptor }) => ({
      ...{ rangeId, epoch: descriptor.epoch, into },
    }));
    await this.#settled(sealed.descriptor, sealed.index, untilMs);
    await this.#propose(target, { type: 'merge', epoch, round: into.round, source: sealed });
  }

  /** MD1. */
  async #refuse({ target, source }: Pair, into: MergeRound): Promise<void> {
    // The refusal is itself refused once the round is decided.
    await this.#propose(target, { type: 'refuseMerge', round: into.round }).catch(() => {});
    if (verdictOn(into, source.rangeId, target.state) === 'refused') await this.#unseal(source, into).catch(() => {});
  }

  #unseal(source: ServedReplica, from: MergeRound): Promise<undefined> {
    const untilMs = this.#deps.clock.monotonicMs() + SEALED_MAX_MS;
    return this.#callLeader(source, rangeUnseal, untilMs, ({ rangeId }) => ({ rangeId, from }));
  }

  #propose(target: ServedReplica, command: MergeCommand): Promise<CommandResult> {
    return new Promise((resolve, reject) => {
      target.merges.propose(command, (error, result) => (result === undefined ? reject(error) : resolve(result)));
    });
  }

  /** Every node of the range has applied its log up to this index, durably. */
  async #settled({ rangeId, replicas }: RangeDescriptor, index: number, untilMs: number): Promise<void> {
    await Promise.all(
      replicas.map(({ nodeId, replicaId }) =>
        this.#retryUntilAnswered(untilMs, () => this.#call(nodeId, rangeSettle, { rangeId, replicaId, index })),
      ),
    );
  }

  /** Calls the leader, as the replica here knows it. */
  #callLeader<Q, R>(
    source: ServedReplica,
    method: Method<Q, R>,
    untilMs: number,
    requestOf: (state: RangeState) => Q,
  ): Promise<R> {
    return this.#retryUntilAnswered(untilMs, () => {
      const node = source.leadership.node;
      if (node === 0) throw new ServiceError('UNAVAILABLE', `range ${source.rangeId} has no leader now`);
      return this.#call(node, method, requestOf(source.state));
    });
  }

  /** Retries what may become possible soon. */
  async #retryUntilAnswered<R>(untilMs: number, attempt: () => Promise<R>): Promise<R> {
    const { clock } = this.#deps;
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const { retry } = toServiceError(error);
        if (this.#stopped || retry === 'no' || clock.monotonicMs() + PAUSE_MS >= untilMs) throw error;
      }
      await sleep(clock, PAUSE_MS);
    }
  }

  #call<Q, R>(node: number, method: Method<Q, R>, request: Q): Promise<R> {
    return new Promise((resolve, reject) => {
      const options = { timeoutMs: CALL_TIMEOUT_MS };
      this.#deps.dialer.channel(node).call(method, request, options, (error, reply) => {
        if (error === undefined) resolve(reply as R);
        else reject(error);
      });
    });
  }
}

/** What has to end before two ranges can be merged (MD5). */
function changing({ target, source }: Pair): string | undefined {
  for (const { rangeId, state, group, leading } of [target, source]) {
    const pending = isJoint(state.conf) || (leading && group.status().changePending);
    if (pending) return `the membership of range ${rangeId} is being changed`;
  }
  if (target.sealed !== undefined) return `range ${target.rangeId} is being merged itself`;
  const { seal } = source.state.merging;
  if (seal !== undefined && verdictOn(seal, source.rangeId, target.state) !== 'open') {
    return `range ${source.rangeId} is being merged with another one`;
  }
  return undefined;
}

/** Why two ranges cannot be merged; undefined if they can. */
function problem({ target, source }: Pair): string | undefined {
  const refusal = fullRefusal(target.state) ?? leaseConflict(target.state, source.state);
  return misfit(target.state.descriptor, source.state.descriptor) ?? refusal?.message;
}

/** A sealed source has only the members that are known here (merges.ts MR1). */
function isOn({ state }: ServedReplica, node: number): boolean {
  return state.descriptor.replicas.some(({ nodeId }) => nodeId === node);
}

function refused(reason: string): Carried {
  return { outcome: 'refused', reason };
}

function inFlight(reason: string): Carried {
  return { outcome: 'underWay', reason };
}
