import { type Logger, ServiceError, type Span } from '@remora/base';
import type { RangeDescriptor, RemovedReplica } from '@remora/protocol';
import type { RangeReplica } from '../range/range-replica.ts';
import type { RangeState } from '../state/range-state.ts';
import type { Removal, ReplicaRemover } from './replica-remover.ts';
import type { ReplicaTable, Running } from './replica-table.ts';

export interface ReplicaEndsDeps {
  readonly replicas: ReplicaTable;
  readonly remover: ReplicaRemover;
  /** Whether a merge needs the replica yet. */
  readonly isAwaited: (state: RangeState) => boolean;
  readonly logger: Logger;
  /** What has ended could not be taken away: the node must not go on. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Ends the replicas of a store that were removed from their range, however that comes to be known (T5 of the store).
 */
export class ReplicaEnds {
  readonly #deps: ReplicaEndsDeps;

  constructor(deps: ReplicaEndsDeps) {
    this.#deps = deps;
  }

  /** Somebody says so. Nothing happens when it is not here, or when what it knows itself is not older. */
  removed({ rangeId, replicaId, confVersion }: RemovedReplica): void {
    const running = this.#deps.replicas.get(rangeId);
    if (running?.replica.group.replicaId !== replicaId) return;
    const { state } = running.replica;
    if (this.#deps.isAwaited(state)) return;
    if (state.descriptor.epoch.confVersion < confVersion) this.#end(running);
  }

  /** The replica of a range has applied that itself. */
  left(rangeId: number): void {
    const running = this.#deps.replicas.get(rangeId);
    if (running !== undefined) this.#end(running);
  }

  /**
   * The range has another replica here now: the one that runs was removed. @throws ServiceError UNAVAILABLE when it
   * stays.
   */
  makeWay({ rangeId, group }: RangeReplica, { epoch }: RangeDescriptor): void {
    this.removed({ rangeId, replicaId: group.replicaId, confVersion: epoch.confVersion });
    if (!this.#deps.replicas.has(rangeId)) return;
    throw new ServiceError('UNAVAILABLE', `the replica of range ${rangeId} here knows of a later membership`);
  }

  /** Takes away what is left of a replica. Resolves when that is done. */
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
