import { ServiceError, TokenBucket } from '@remora/base';

/** Registrations of strangers that are proposed and not answered. */
const STRANGERS_JOINING_MAX = 20;
/** Faster than any operator starts nodes; each costs a log entry on the disk of every master. */
const JOINS_OF_STRANGERS = { ratePerSecond: 20, burst: 40 };

/**
 * Limits the registrations by callers that are not known as nodes (master-service.ts SV4). Anyone who reaches the port
 * may request one, under a new name each time or repeatedly with another address.
 */
export class JoinRate {
  readonly #bucket: TokenBucket;
  #underWay = 0;

  constructor(nowMs: number) {
    this.#bucket = new TokenBucket(JOINS_OF_STRANGERS, nowMs);
  }

  /** Counts a registration until `ended`; returns why it may not be proposed now. */
  begin(nowMs: number): ServiceError | undefined {
    if (this.#underWay >= STRANGERS_JOINING_MAX) {
      return tooMany(`${STRANGERS_JOINING_MAX} new nodes are already being registered`);
    }
    if (!this.#bucket.tryTake(nowMs)) {
      return tooMany(`the masters register at most ${JOINS_OF_STRANGERS.ratePerSecond} new nodes per second`);
    }
    this.#underWay++;
    return undefined;
  }

  ended(): void {
    this.#underWay--;
  }
}

function tooMany(what: string): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', `${what}; nothing was changed, try again in a moment`);
}
