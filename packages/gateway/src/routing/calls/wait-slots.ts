import { ServiceError } from '@remora/base';
import { DEFAULT_CALLER_LIMITS } from '@remora/protocol';

/**
 * A request that waits at a leader (for its turn in a lock's queue, or for the end of a grant) keeps a call open there.
 * The link to a leader carries a limited number of calls. Waits take half of them, which leaves room for the requests
 * that end waits.
 */
export const WAITS_MAX = DEFAULT_CALLER_LIMITS.callsMax / 2;
/**
 * Additional slots for queries that wait for the end of a grant, as a share of `WAITS_MAX`: holders can do without
 * them.
 */
export const GRANT_ENDS_SHARE = 0.25;

/** The waits that a gateway has open. */
export class WaitSlots {
  readonly #max: number;
  readonly #onRefused: () => void;
  #taken = 0;

  /** `onRefused` is called for each wait that finds no slot. */
  constructor(max: number, onRefused: () => void) {
    this.#max = max;
    this.#onRefused = onRefused;
  }

  /**
   * Returns a function that gives the slot back, which may be called more than once; undefined if all slots are taken.
   */
  take(): (() => void) | undefined {
    if (this.#taken >= this.#max) {
      this.#onRefused();
      return undefined;
    }
    this.#taken++;
    let given = false;
    return () => {
      if (!given) this.#taken--;
      given = true;
    };
  }

  /** `queued`: the refused caller keeps its place in a queue; this gateway only does not wait for it. */
  refusal(queued = false): ServiceError {
    const message = `${this.#max} requests wait for locks at this gateway, which is its limit; retry later or at another gateway`;
    return new ServiceError('RESOURCE_EXHAUSTED', message, queued ? { details: { queued } } : {});
  }
}
