/**
 * Replicas that were removed while they were away ask for votes. A member that receives such a request notifies the
 * replica of its removal.
 *
 * SG1. The notice contains a version of the membership, applied here and therefore committed, in which the replica is
 *      missing. The replica ends only if that version is later than its own (T5 of the store): a replica that has just
 *      joined knows a later version, which contains it. So any member may send the notice, however far behind the
 *      member is (design §5 ▸, docs/decisions/0013).
 * SG2. The notice may be lost, so it is repeated after a pause. The table of notified replicas is bounded.
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
  /** When each replica was last notified. */
  readonly #told = new Map<number, number>();

  constructor(deps: RemovedReplicaNotifierDeps) {
    this.#deps = deps;
  }

  /** A replica on another node asks for votes in a range whose replica here has this descriptor. */
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
