import type { Clock } from '@remora/base';
import type { Command, NodeSpace } from '@remora/protocol';
import type { OverLimit } from './limits.ts';
import { putsValues } from './puts-values.ts';

export interface DiskRoomDeps {
  readonly clock: Clock;
  readonly nodeId: number;
  /** The space on the disk with log and engine, measured recently; a capacity of 0 if it is not known. */
  readonly space: () => NodeSpace;
  /** The reserve for commands that free room. */
  readonly reserveBytes: number;
}

/** The maximum age of the measurement: at 1 GiB a second a quarter of the usual reserve is written meanwhile. */
const LOOK_MS = 250;
/** The retry delay for refused callers. */
const RETRY_AFTER_MS = 1_000;
const MIB = 2 ** 20;

/**
 * Keeps a reserve of a node's disk free. A node whose disk is full ends, and if all nodes of a cluster are alike they
 * end together: then no client can release a lock, or delete what fills the disks.
 *
 * DR1. Below the reserve, leaders of this node refuse commands that put values. Deletes, compactions, locks, renewals,
 *      releases and ends of transactions are admitted: they free more room than they take, or other limits bound their
 *      total.
 * DR2. The refusal comes before the proposal, so it changes nothing; a known earlier attempt is answered (CM5).
 * DR3. A disk whose space is not known counts as having room.
 */
export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #space: NodeSpace = { capacityBytes: 0, availableBytes: 0 };

  constructor(deps: DiskRoomDeps) {
    this.#deps = deps;
  }

  refusal(command: Command): OverLimit | undefined {
    if (!putsValues(command)) return undefined;
    const { nodeId, reserveBytes } = this.#deps;
    const space = this.#look();
    if (!isBelowReserve(space, reserveBytes)) return undefined;
    const { availableBytes } = space;
    const message =
      `the disk of node ${nodeId} has ${Math.floor(availableBytes / MIB)} MiB free, and ${Math.ceil(reserveBytes / MIB)} MiB ` +
      'are kept (--disk-reserve) for locks and for what makes room: delete keys and compact, or give it more space';
    const details = { etcd: 'noSpace', retryAfterMs: RETRY_AFTER_MS };
    return { limit: 'disk', code: 'RESOURCE_EXHAUSTED', message, details };
  }

  #look(): NodeSpace {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return this.#space;
    this.#lookedMs = nowMs;
    this.#space = this.#deps.space();
    return this.#space;
  }
}

/** DR3. */
export function isBelowReserve({ capacityBytes, availableBytes }: NodeSpace, reserveBytes: number): boolean {
  return capacityBytes > 0 && availableBytes < reserveBytes;
}
