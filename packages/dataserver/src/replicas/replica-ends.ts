import { type Logger, ServiceError, type Span } from '@remora/base';
import type { RangeDescriptor, RemovedReplica } from '@remora/protocol';
import type { RangeReplica } from '../range/range-replica.ts';
import type { RangeState } from '../state/range-state.ts';
import type { Removal, ReplicaRemover } from './replica-remover.ts';
import type { ReplicaTable, Running } from './replica-table.ts';

export interface ReplicaEndsDeps {
  readonly replicas: ReplicaTable;
  readonly remover: ReplicaRemover;
  /** Whether a merge still needs the replica. */
  readonly isAwaited: (state: RangeState) => boolean;
  readonly logger: Logger;
  /** An ended replica could not be deleted: the node must stop. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Ends the replicas of a store that were removed from their range, however the store learns of that (T5 of the store).
 */
export class ReplicaEnds {
  readonly #deps: ReplicaEndsDeps;

  constructor(deps: ReplicaEndsDeps) {
    this.#deps = deps;
  }

  /**
   * Another node reports a removal. Nothing happens if the replica is not here, or if its own membership is not older.
   */
  removed({ rangeId, replicaId, confVersion }: RemovedReplica): void {
    const running = this.#deps.replicas.get(rangeId);
    if (running?.replica.group.replicaId !== replicaId) return;
    const { state } = running.replica;
    if (this.#deps.isAwaited(state)) return;
    if (state.descriptor.epoch.confVersion < confVersion) this.#end(running);
  }

  /** The replica of a range has applied its own removal. */
  left(rangeId: number): void {
    const running = this.#deps.replicas.get(rangeId);
    if (running !== undefined) this.#end(running);
  }

  /**
   * The range has another replica here now: the running one was removed. @throws ServiceError UNAVAILABLE if the
   * running one stays.
   */
  makeWay({ rangeId, group }: RangeReplica, { epoch }: RangeDescriptor): void {
    this.removed({ rangeId, replicaId: group.replicaId, confVersion: epoch.confVersion });
    if (!this.#deps.replicas.has(rangeId)) return;
    throw new ServiceError('UNAVAILABLE', `the replica of range ${rangeId} here knows of a later membership`);
  }

  /** Deletes what is left of a replica. Resolves when that is done. */
  clear(descriptor: RangeDescriptor, ending: Pick<Removal, 'replicaId' | 'last'>): Promise<void> {
    const { rangeId } = descriptor;
    const { replicaId } = ending;
    this.#deps.logger.info({ range: rangeId, replica: replicaId }, 'this replica was removed: it is cleared away');
    return this.#deps.remover.remove({ rangeId, span: descriptor, ...ending });
  }

  #end({ replica, leaveCheckpoints }: Running): void {
    const ended = this.#deps.replicas.end(replica);
    replica.close();
    const stageLast = (): void => {
      replica.stage();
      leaveCheckpoints();
    };
    const span = (): Span => replica.state.descriptor;
    const last = { settled: () => replica.settled, stage: stageLast, span };
    const ending = { replicaId: replica.group.replicaId, last };
    this.clear(replica.state.descriptor, ending).then(ended).catch(this.#deps.onFailure);
  }
}
