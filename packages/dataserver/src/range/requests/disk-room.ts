import type { Clock } from '@remora/base';
import type { Command, NodeSpace } from '@remora/protocol';
import type { OverLimit } from './limits.ts';
import { putsValues } from './puts-values.ts';

export interface DiskRoomDeps {
  readonly clock: Clock;
  readonly nodeId: number;
  /** Of the disk that log and engine lie on, as of a moment ago; a capacity of 0 when that is not known. */
  readonly space: () => NodeSpace;
  /** Less than that is kept for what makes room. */
  readonly reserveBytes: number;
}

/** How old what is known of the disk may be: at 1 GiB a second a quarter of the usual reserve is written meanwhile. */
const LOOK_MS = 250;
/** When whoever was refused is to ask again. */
const RETRY_AFTER_MS = 1_000;
const MIB = 2 ** 20;

/**
 * Keeps a reserve of a node's disk free. A node whose disk is full ends, and where all nodes of a cluster are alike
 * they end together: then nobody can give back a lock, or delete what fills the disks.
 *
 * DR1. Below the reserve leaders of this node let in nothing that puts values. What deletes, compacts, locks, renews,
 *      releases or ends a transaction needs little room, of which more is made by it than it takes, or all that there
 *      is to take is bounded by other limits.
 * DR2. It is refused before it is proposed, which changes nothing; an earlier attempt that is known is answered (CM5).
 * DR3. A disk of which nothing is known has room.
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
