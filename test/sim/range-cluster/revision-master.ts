import { type Clock, type SeededRandom, ServiceError } from '@remora/base';
import type { Done, DrawRevisionsReply, DrawRevisionsRequest } from '@remora/protocol';

/** Gives out revisions. Answers take time, and some are lost. */
export class RevisionMaster {
  readonly #random: SeededRandom;
  #newest = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  call(clock: Clock, { floor, draws }: DrawRevisionsRequest, done: Done<DrawRevisionsReply>): void {
    const lost = this.#random.int(50) === 0;
    clock.setTimer(this.#random.int(5), () => {
      this.#newest = Math.max(this.#newest, floor);
      const blocks = draws.map(({ rangeId, count }) => {
        const first = this.#newest + 1;
        this.#newest += count;
        return { rangeId, first, count };
      });
      const reply = { newest: this.#newest, blocks };
      clock.setTimer(lost ? 200 : this.#random.int(5), () =>
        lost ? done(new ServiceError('UNAVAILABLE', 'no answer'), undefined) : done(undefined, reply),
      );
    });
  }
}
