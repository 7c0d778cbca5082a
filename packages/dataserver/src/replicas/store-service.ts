import { type Clock, ServiceError } from '@remora/base';
import { type RangeInfo, type RemovedReplica, type RpcRegistry, rangeRemoved } from '@remora/protocol';
import type { RangeReplica } from '../range/range-replica.ts';
import { LeaderWaits } from '../range/requests/leader-waits.ts';
import { serveRanges } from '../range/requests/range-service.ts';
import { serveMerges } from '../range/reshape/merge-service.ts';
import type { ReplicaTable } from './replica-table.ts';

export interface StoreServiceDeps {
  readonly nodeId: number;
  readonly clock: Clock;
  readonly replicas: ReplicaTable;
  readonly checkpointer: { run(): Promise<void> };
  /** The new place of the keys of a range that was merged into another one here. */
  readonly moved: (rangeId: number) => ServiceError | undefined;
  /** A member of a range reports that a replica no longer belongs to it. */
  readonly removed: (removed: RemovedReplica) => void;
}

/** Answers what gateways and other stores, local and remote, ask about the ranges of a node. */
export class StoreService {
  readonly #deps: StoreServiceDeps;
  readonly #leaderWaits: LeaderWaits;

  constructor(deps: StoreServiceDeps) {
    this.#deps = deps;
    this.#leaderWaits = new LeaderWaits({ ...deps, look: (rangeId) => this.#look(rangeId) });
  }

  register(registry: RpcRegistry): void {
    const { nodeId, checkpointer, removed } = this.#deps;
    const find = (rangeId: number) => this.#find(rangeId);
    const checkpoint = () => checkpointer.run();
    serveRanges(registry, { nodeId, find, checkpoint, leaderWaits: this.#leaderWaits });
    serveMerges(registry, { find, checkpoint });
    registry.handle(rangeRemoved, (replica, _context, done) => {
      removed(replica);
      done(undefined, undefined);
    });
  }

  /** The range is led here now, or has ended here. */
  changed(rangeId: number): void {
    this.#leaderWaits.changed(rangeId);
  }

  #look(rangeId: number): RangeInfo | ServiceError {
    const found = this.#find(rangeId);
    return found instanceof ServiceError ? found : found.info();
  }

  #find(rangeId: number): RangeReplica | ServiceError {
    const running = this.#deps.replicas.get(rangeId);
    if (running !== undefined) return running.replica;
    const moved = this.#deps.moved(rangeId);
    if (moved !== undefined) return moved;
    return new ServiceError('RANGE_NOT_FOUND', `this node holds no replica of range ${rangeId}`, {
      details: { rangeId },
    });
  }
}
