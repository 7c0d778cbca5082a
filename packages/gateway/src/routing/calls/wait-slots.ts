import { ServiceError } from '@remora/base';
import { DEFAULT_CALLER_LIMITS } from '@remora/protocol';

/**
 * What waits at a leader for something to happen (a turn in a lock's queue, the end of a grant) keeps a call open there.
 * The link to a leader carries so many calls; waits take half of them, so that there is room for what ends waits.
 */
export const WAITS_MAX = DEFAULT_CALLER_LIMITS.callsMax / 2;
/** Of that, how many questions for the end of a grant come on top: they only tell sooner, and take no turn from anyone. */
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

  /** How to give the slot back, once or more often; undefined when all are taken. */
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

  /** `queued`: who is refused keeps its place in a queue, and has only nobody who tells it of its turn. */
  refusal(queued = false): ServiceError {
    const message = `${this.#max} requests wait for locks at this gateway, which is its limit; retry later or at another gateway`;
    return new ServiceError('RESOURCE_EXHAUSTED', message, queued ? { details: { queued } } : {});
  }
}
