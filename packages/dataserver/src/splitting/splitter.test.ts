import { EMPTY_BYTES, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type AskSplitReply, kvRoutingKey, type RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, memoryEngine } from '../../test/support/state-bed.ts';
import { boundsOf } from '../state/bounds.ts';
import { currentKey } from '../state/keys.ts';
import { encodeVersion } from '../state/kv/record.ts';
import type { SplitCommand } from '../state/reshape/split.ts';
import type { SplitWish } from './split-wish.ts';
import { type SplitReplica, Splitter } from './splitter.ts';

const key = (text: string): Buffer => kvRoutingKey(Buffer.from(text));
const bySize = (at: string): SplitWish => ({ cause: 'size', at: key(at), live: { keys: 5, bytes: 50 } });
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A range that is led here until a test says otherwise; it keeps what is proposed of it. */
class Led implements SplitReplica {
  readonly rangeId: number;
  serving = true;
  readonly splitReasons: { wish: SplitWish | undefined; readonly refused: (reason: string) => void };
  readonly group = { term: 3 };
  readonly proposed: SplitCommand[] = [];
  refusal: ServiceError | undefined;
  readonly refused: string[] = [];
  descriptor: RangeDescriptor;

  constructor(rangeId = 2, splitWish?: SplitWish) {
    this.rangeId = rangeId;
    this.splitReasons = { wish: splitWish, refused: (reason: string) => this.refused.push(reason) };
    this.descriptor = { ...DESCRIPTOR, rangeId };
  }

  get state() {
    const { descriptor } = this;
    return { descriptor, bounds: boundsOf(descriptor), placeRefusal: () => this.refusal };
  }

  split(command: SplitCommand, done: Parameters<SplitReplica['split']>[1]): void {
    this.proposed.push(command);
    const { version, confVersion } = command.epoch;
    const epoch = { confVersion, version: version + 1 };
    const left = { ...this.descriptor, epoch, end: command.at };
    const right = { ...left, rangeId: command.childId, start: command.at, end: this.descriptor.end };
    this.descriptor = left;
    this.splitReasons.wish = undefined;
    done(undefined, { type: 'split', left, right });
  }
}

class Bed {
  readonly clock = new ManualClock();
  readonly engine = memoryEngine();
  readonly asked: string[] = [];
  readonly prepared: number[] = [];
  /** What the master answers. */
  answer: () => Promise<AskSplitReply> = async () => ({ childId: 9, replicas: [{ nodeId: 1, replicaId: 90 }] });
  onPrepare: () => void = () => {};
  readonly splitter: Splitter;

  constructor(...replicas: Led[]) {
    this.splitter = new Splitter({
      clock: this.clock,
      logger: silentLogger,
      engine: this.engine,
      replica: (rangeId) => replicas.find((replica) => replica.rangeId === rangeId),
      candidates: () => replicas,
      askIds: ({ range, cause }) => {
        this.asked.push(`${range.rangeId} ${cause}`);
        return this.answer();
      },
      prepare: async ({ rangeId }) => {
        this.prepared.push(rangeId);
        this.onPrepare();
      },
    });
  }

  async tick(): Promise<void> {
    this.splitter.tick();
    await turns();
  }

  fill(count: number): void {
    for (let i = 0; i < count; i++) {
      const value = { value: Buffer.alloc(900), createRevision: 2, modRevision: 2, version: 1, lease: 0n };
      this.engine.put(currentKey(Buffer.from(`k${String(i).padStart(4, '0')}`)), encodeVersion(value));
    }
  }
}

describe('a range that has a reason to be split', () => {
  test('is split with the ids that the master gives, once its nodes have written what waits', async () => {
    const range = new Led(2, bySize('m'));
    const bed = new Bed(range);
    let proposedBefore = -1;
    bed.onPrepare = () => {
      proposedBefore = range.proposed.length;
    };
    await bed.tick();
    expect(proposedBefore).toBe(0);
    expect(range.proposed).toEqual([
      {
        ...{ type: 'split', at: key('m'), epoch: DESCRIPTOR.epoch, childId: 9, keys: 5, bytes: 50 },
        replicas: [{ nodeId: 1, replicaId: 90 }],
      },
    ]);
  });

  test('waits for its turn: one at a time, and the next at once', async () => {
    const ranges = [new Led(2, bySize('m')), new Led(3, bySize('p'))];
    const bed = new Bed(...ranges);
    let release: (ids: AskSplitReply) => void = () => {};
    bed.answer = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    await bed.tick();
    await bed.tick();
    expect(bed.asked).toEqual(['2 size']);
    release({ childId: 9, replicas: [] });
    await turns();
    expect(bed.asked).toEqual(['2 size', '3 size']);
  });

  test('is cut where what is measured says what lies behind, when the load says where', async () => {
    const range = new Led(2, { cause: 'load', at: key('k0070') });
    const bed = new Bed(range);
    bed.fill(100);
    await bed.tick();
    bed.clock.advance(100);
    await turns();
    expect(range.proposed[0]).toMatchObject({ at: key('k0070'), keys: 30, bytes: 30 * 905 });
  });

  test.each<{ name: string; change: (range: Led) => void }>([
    { name: 'leadership was lost', change: (range) => Object.assign(range, { serving: false }) },
    { name: 'it was won again', change: (range) => Object.assign(range.group, { term: 4 }) },
    {
      name: 'the membership has changed',
      change: (range) => {
        range.descriptor = { ...range.descriptor, epoch: { confVersion: 2, version: 1 } };
      },
    },
    {
      name: 'it was split by somebody else',
      change: (range) => {
        range.descriptor = { ...range.descriptor, epoch: { confVersion: 1, version: 2 } };
      },
    },
  ])('is not split when $name while the master was asked, or while it was prepared', async ({ change }) => {
    for (const moment of ['asked', 'prepared']) {
      const range = new Led(2, bySize('m'));
      const bed = new Bed(range);
      const { answer } = bed;
      bed.answer = () => {
        if (moment === 'asked') change(range);
        return answer();
      };
      bed.onPrepare = () => change(range);
      await bed.tick();
      expect([moment, range.proposed]).toEqual([moment, []]);
    }
  });

  test('is tried again after a pause that grows, and others are not held up', async () => {
    const [refused, other] = [new Led(2, bySize('m')), new Led(3)];
    const bed = new Bed(refused, other);
    bed.answer = () => Promise.reject(new ServiceError('UNAVAILABLE', 'splits are paused'));
    const triesIn = async (seconds: number): Promise<number> => {
      const before = bed.asked.length;
      for (let i = 0; i < seconds; i++) {
        await bed.tick();
        bed.clock.advance(1_000);
      }
      return bed.asked.length - before;
    };
    expect(await triesIn(8)).toBe(4); // after 0, 1, 2 and 4 s
    expect(refused.refused).toEqual(Array(4).fill('splits are paused'));
    expect(await triesIn(600)).toBeLessThan(15);
    bed.answer = async () => ({ childId: 9, replicas: [] });
    other.splitReasons.wish = bySize('p');
    await bed.tick();
    expect(other.proposed).toHaveLength(1);
    bed.clock.advance(60_000);
    await bed.tick();
    expect(refused.proposed).toHaveLength(1);
  });

  test('is not asked about while it cannot be split at that place', async () => {
    const range = new Led(2, bySize('m'));
    range.refusal = new ServiceError('UNAVAILABLE', 'a lease would be parted');
    const bed = new Bed(range);
    await bed.tick();
    expect(bed.asked).toEqual([]);
  });

  test('is left alone once the node stops', async () => {
    const range = new Led(2, bySize('m'));
    const bed = new Bed(range);
    bed.onPrepare = () => bed.splitter.stop();
    await bed.tick();
    await bed.tick();
    expect([bed.asked.length, range.proposed.length]).toEqual([1, 0]);
  });
});

describe('a split that people ask for', () => {
  test('goes first, and is done when the range ends at the key', async () => {
    const [range, other] = [new Led(2), new Led(1, bySize('c'))];
    const bed = new Bed(other, range);
    expect(bed.splitter.order(range, key('k0050'))).toMatchObject({ outcome: 'underWay' });
    expect(bed.splitter.order(range, key('k0050'))).toMatchObject({ outcome: 'underWay' });
    await turns();
    expect(bed.asked).toEqual(['2 admin', '1 size']);
    expect(bed.splitter.order(range, key('k0050'))).toMatchObject({ outcome: 'done' });
    expect(range.proposed).toHaveLength(1);
  });

  test('in the middle is measured, and not done twice when it is told again', async () => {
    const range = new Led(2);
    const bed = new Bed(range);
    bed.fill(100);
    bed.splitter.order(range, undefined);
    for (let i = 0; i < 3; i++) {
      await turns();
      bed.clock.advance(100);
    }
    await turns();
    expect(range.proposed.map(({ at }) => Buffer.from(at).toString())).toEqual([key('k0050').toString()]);
    expect(bed.splitter.order(range, undefined)).toMatchObject({ outcome: 'done' });
    expect(range.proposed).toHaveLength(1);
    bed.clock.advance(10_000);
    expect(bed.splitter.order(range, undefined)).toMatchObject({ outcome: 'underWay' }); // another one
  });

  test('in the middle is done when the range was split meanwhile: nobody asked for two', async () => {
    const range = new Led(2, bySize('m'));
    const bed = new Bed(range);
    bed.fill(100);
    let release: (ids: AskSplitReply) => void = () => {};
    bed.answer = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    await bed.tick();
    expect(bed.splitter.order(range, undefined)).toMatchObject({ outcome: 'underWay' });
    release({ childId: 9, replicas: [] });
    for (let i = 0; i < 3; i++) {
      await turns();
      bed.clock.advance(100);
    }
    expect([bed.asked, range.proposed.length]).toEqual([['2 size'], 1]);
    expect(bed.splitter.order(range, undefined)).toMatchObject({ outcome: 'done' });
  });

  test('and that is not told any more, as it was cancelled, is not done when its turn comes', async () => {
    const [range, other] = [new Led(2), new Led(3, bySize('p'))];
    const bed = new Bed(range, other);
    let release: (ids: AskSplitReply) => void = () => {};
    bed.answer = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    await bed.tick();
    bed.splitter.order(range, key('m'));
    bed.splitter.order(range, key('m'));
    bed.clock.advance(10_000);
    release({ childId: 9, replicas: [] });
    await turns();
    expect(bed.asked).toEqual(['3 size']);
    bed.splitter.order(range, key('m'));
    await turns();
    expect(bed.asked).toEqual(['3 size', '2 admin']);
  });

  test('is refused at once at an impossible place; a failure that may pass is reported as in progress, and tried again', async () => {
    const range = new Led(2);
    const bed = new Bed(range);
    range.refusal = new ServiceError('INVALID_ARGUMENT', 'the key is outside of it');
    expect(bed.splitter.order(range, key('m'))).toEqual({ outcome: 'refused', reason: 'the key is outside of it' });
    range.refusal = undefined;
    bed.answer = () => Promise.reject(new ServiceError('UNAVAILABLE', 'splits are paused'));
    expect(bed.splitter.order(range, key('m'))).toMatchObject({ outcome: 'underWay' });
    await turns();
    await bed.tick();
    expect(bed.asked).toHaveLength(1);
    const repeated = 'the last attempt failed, and is repeated: splits are paused';
    expect(bed.splitter.order(range, key('m'))).toEqual({ outcome: 'underWay', reason: repeated });
    bed.answer = () => Promise.reject(new ServiceError('INVALID_ARGUMENT', 'it cannot be cut'));
    expect(bed.splitter.order(range, key('m'))).toMatchObject({ outcome: 'underWay' });
    await turns();
    await bed.tick();
    expect(bed.splitter.order(range, key('m'))).toEqual({ outcome: 'refused', reason: 'it cannot be cut' });
  });

  test('is not told as done, or refused, by another one whose place it took', async () => {
    for (const refused of [false, true]) {
      const range = new Led(2);
      const bed = new Bed(range);
      let answer: () => void = () => {};
      const asked = new Promise<void>((resolve) => {
        answer = resolve;
      });
      const first = bed.answer;
      bed.answer = async () => {
        await asked;
        if (refused) throw new ServiceError('UNAVAILABLE', 'splits are paused');
        return first();
      };
      bed.splitter.order(range, key('m'));
      await turns();
      expect(bed.splitter.order(range, key('c'))).toMatchObject({ outcome: 'underWay' });
      bed.answer = () => new Promise(() => {});
      answer();
      await turns();
      expect(range.proposed).toHaveLength(refused ? 0 : 1);
      expect(bed.splitter.order(range, key('c'))).toMatchObject({ outcome: 'underWay' });
      expect(bed.asked).toEqual(['2 admin', '2 admin']);
    }
  });

  test('of a range without a middle is refused', async () => {
    const range = new Led(2);
    const bed = new Bed(range);
    bed.splitter.order(range, undefined);
    await turns();
    const { reason } = bed.splitter.order(range, undefined);
    expect(reason).toMatch(/has no middle/);
  });

  test('is forgotten when another replica leads: the master asks that one', async () => {
    const range = new Led(2);
    const bed = new Bed(range);
    bed.answer = () => Promise.reject(new ServiceError('UNAVAILABLE', 'splits are paused'));
    bed.splitter.order(range, key('m'));
    await turns();
    range.serving = false;
    await bed.tick();
    range.serving = true;
    expect(bed.splitter.order(range, key('m'))).toMatchObject({ outcome: 'underWay' });
  });

  test('at the very beginning of the key space is no border that is there already', () => {
    const range = new Led(2);
    const bed = new Bed(range);
    range.refusal = new ServiceError('INVALID_ARGUMENT', 'no');
    expect(bed.splitter.order(range, EMPTY_BYTES)).toMatchObject({ outcome: 'refused' });
  });
});
