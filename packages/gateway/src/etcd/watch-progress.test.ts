import { describe, expect, it } from 'vitest';
import { type ProgressWatch, StreamProgress } from './watch-progress.ts';

/** A watch of a stream, and how often its backend was asked how far it is. */
class Watch implements ProgressWatch {
  readonly startRevision: number;
  readonly control = { progress: () => void this.questions++ };
  questions = 0;
  reached = 0;
  asked = false;
  askAgain = false;
  owes = false;

  constructor(startRevision = 0) {
    this.startRevision = startRevision;
  }
}

class Bed {
  readonly watches: Watch[] = [];
  readonly announced: number[] = [];
  readonly progress = new StreamProgress(
    () => this.watches,
    (revision) => this.announced.push(revision),
  );

  watch(startRevision = 0): Watch {
    const watch = new Watch(startRevision);
    this.watches.push(watch);
    this.progress.joined(watch);
    return watch;
  }

  answer(watch: Watch, revision: number): void {
    watch.reached = Math.max(watch.reached, revision);
    this.progress.answered(watch);
  }

  end(watch: Watch): void {
    this.watches.splice(this.watches.indexOf(watch), 1);
    this.progress.sendDue();
  }
}

describe('a progress request of a stream', () => {
  it('is answered with what every watch has reached (P1)', () => {
    const bed = new Bed();
    const [one, other] = [bed.watch(), bed.watch()];
    bed.progress.request();
    bed.answer(one, 9);
    expect(bed.announced).toEqual([]);
    bed.answer(other, 8);
    expect(bed.announced).toEqual([8]);
    expect([one.questions, other.questions]).toEqual([1, 1]);
  });

  it('waits for watches that are asked for before it is answered, too (P1)', () => {
    const bed = new Bed();
    const first = bed.watch();
    bed.progress.request();
    const second = bed.watch(3);
    bed.answer(first, 9);
    expect([bed.announced, second.questions]).toEqual([[], 1]);
    bed.answer(second, 9);
    expect(bed.announced).toEqual([9]);
    expect(bed.watch(3).questions).toBe(0);
  });

  it('does not wait for watches that end meanwhile (P5)', () => {
    const bed = new Bed();
    const [one, other] = [bed.watch(), bed.watch()];
    bed.progress.request();
    bed.answer(one, 9);
    bed.end(other);
    expect(bed.announced).toEqual([9]);
  });

  it('is answered with those that come meanwhile by one further round (P3)', () => {
    const bed = new Bed();
    const watch = bed.watch();
    for (let i = 0; i < 200; i++) bed.progress.request();
    expect(watch.questions).toBe(1);
    bed.answer(watch, 9);
    expect([bed.announced, watch.questions]).toEqual([[9], 2]);
    bed.answer(watch, 12);
    expect([bed.announced, watch.questions]).toEqual([[9, 12], 2]);
  });

  it('takes no answer to a question that was asked before it came (P2)', () => {
    const bed = new Bed();
    const watch = bed.watch();
    watch.asked = true;
    bed.progress.request();
    bed.answer(watch, 5);
    expect([bed.announced, watch.questions]).toEqual([[], 1]);
    bed.answer(watch, 7);
    expect(bed.announced).toEqual([7]);
  });

  it('is dropped where there is no watch, or none is left (P4)', () => {
    const bed = new Bed();
    bed.progress.request();
    const watch = bed.watch();
    expect(watch.questions).toBe(0);
    bed.progress.request();
    bed.end(watch);
    expect(bed.announced).toEqual([]);
  });

  it('is dropped while the first revision of a watch is further away than the next one (P4)', () => {
    const bed = new Bed();
    const watch = bed.watch(9);
    bed.progress.request();
    bed.answer(watch, 7);
    expect(bed.announced).toEqual([]);
    bed.progress.request();
    bed.answer(watch, 8);
    expect(bed.announced).toEqual([8]);
  });
});
