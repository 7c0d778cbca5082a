/**
 * Replicas that were removed while they were away, and ask for votes: whoever hears them tells them.
 *
 * SG1. What they are told is a version of the membership, applied here and so committed, that they are not in. They go
 *      only if it is later than what they know (T5 of the store): one that has just joined knows a later one, in which
 *      it is. So any member may say it, however far it is behind (design §5 ▸, docs/decisions/0013).
 * SG2. It is said again after a pause: it may be lost. What is remembered of whom was told is bounded.
 */
import type { Clock } from '@remora/base';
import { type RangeDescriptor, type RpcDialer, rangeRemoved } from '@remora/protocol';

export interface RemovedReplicaNotifierDeps {
  readonly clock: Clock;
  readonly dialer: Pick<RpcDialer, 'channel'>;
}

const PAUSE_MS = 2_000;
const TOLD_MAX = 1_000;
const TIMEOUT_MS = 1_000;

export class RemovedReplicaNotifier {
  readonly #deps: RemovedReplicaNotifierDeps;
  /** When a replica was told last. */
  readonly #told = new Map<number, number>();

  constructor(deps: RemovedReplicaNotifierDeps) {
    this.#deps = deps;
  }

  /** A replica on another node asks for votes in a range of which a replica here has this descriptor. */
  heard({ rangeId, epoch, replicas }: RangeDescriptor, { replicaId, node }: { replicaId: number; node: number }): void {
    if (replicas.some((replica) => replica.replicaId === replicaId)) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const toldMs = this.#told.get(replicaId);
    if (toldMs !== undefined && nowMs - toldMs < PAUSE_MS) return;
    this.#told.delete(replicaId);
    this.#told.set(replicaId, nowMs);
    const [oldest] = this.#told.keys();
    if (this.#told.size > TOLD_MAX && oldest !== undefined) this.#told.delete(oldest);
    const { confVersion } = epoch;
    const channel = this.#deps.dialer.channel(node);
    channel.call(rangeRemoved, { rangeId, replicaId, confVersion }, { timeoutMs: TIMEOUT_MS }, () => {});
  }
}
