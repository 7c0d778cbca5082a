import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NOW_MS, rangeInfo, schedulingBed, upNodes } from '../../../test/support/scheduling-bed.ts';
import type { RangeInfo } from '../cluster-model.ts';
import { DEFAULT_SETTINGS, type MergePolicy } from '../settings.ts';
import { whyRange } from '../why.ts';
import { mergeObstacle } from './merge.ts';

const MIB = 2 ** 20;
const { merging } = DEFAULT_SETTINGS;
const QUIET = { ...DEFAULT_SETTINGS, merging: { ...merging, quietMs: 5_000 } };

/** What is summed in another order differs by a few last bits of a double. */
const ROUNDING = 1 + 1e-12;

const pair = (given: Partial<RangeInfo> = {}) => ({
  target: rangeInfo(1, { voters: [1, 2, 3], end: 'm' }),
  source: rangeInfo(2, { voters: [1, 2, 3], start: 'm', ...given }),
});

describe('two neighbours', () => {
  test.each<{ name: string; given: Partial<RangeInfo>; policy?: Partial<MergePolicy>; says: string | undefined }>([
    { name: 'fit together when they are small and quiet', given: {}, says: undefined },
    { name: 'do not when they have too much', given: { bytes: 15 * MIB + 600_000 }, says: 'bytes' },
    { name: 'do not when people chose the border', given: { chosen: true }, says: 'chosen manually' },
    {
      name: 'do when that counts for nothing',
      given: { chosen: true },
      policy: { chosenBorders: true },
      says: undefined,
    },
    { name: 'do not when they grow', given: { writeBytesPerS: 120_000 }, says: 'grow so fast' },
    {
      name: 'do not when they are asked for much',
      given: { readsPerS: 3_000, writesPerS: 2_000 },
      says: 'half of the load',
    },
    { name: 'do not when much is read of them', given: { readBytesPerS: 16 * MIB }, says: 'half of the load' },
    {
      name: 'do when nothing is split for its load',
      given: { readsPerS: 90_000, readBytesPerS: 99 * MIB },
      policy: { splits: { ...merging.splits, requestsPerS: 0, bytesPerS: 0 } },
      says: undefined,
    },
  ])('$name', ({ given, policy, says }) => {
    const obstacle = mergeObstacle(pair(given), { ...merging, ...policy });
    if (says === undefined) expect(obstacle).toBeUndefined();
    else expect(obstacle).toContain(says);
  });

  const amount = fc.double({ min: 0, max: 2, noNaN: true });
  const shares = fc.record({ bytes: amount, requests: amount, written: amount, read: amount });

  test('that are merged are no reason for a split within the quiet time, under the same load (MN1)', () => {
    const policy = fc.record({
      percent: fc.integer({ min: 1, max: 50 }),
      quietMs: fc.integer({ min: 1_000, max: 1_000_000 }),
      bytes: fc.integer({ min: 16_384, max: 2 ** 30 }),
      requestsPerS: fc.integer({ min: 1, max: 100_000 }),
      bytesPerS: fc.integer({ min: 1, max: 2 ** 30 }),
    });
    fc.assert(
      fc.property(policy, shares, shares, ({ percent, quietMs, bytes, requestsPerS, bytesPerS }, a, b) => {
        const splits = { bytes, requestsPerS, bytesPerS };
        const range = (id: number, share: typeof a): RangeInfo =>
          rangeInfo(id, {
            voters: [1, 2, 3],
            bytes: share.bytes * bytes * 0.3,
            readsPerS: share.requests * requestsPerS * 0.3,
            writeBytesPerS: Math.min(share.written * bytesPerS * 0.3, (share.written * bytes * 500) / quietMs),
            readBytesPerS: share.read * bytesPerS * 0.3,
          });
        const [target, source] = [range(1, a), range(2, b)];
        const bytesMax = Math.floor((bytes * percent) / 100);
        const mergePolicy = { enabled: true, bytesMax, quietMs, chosenBorders: false, splits };
        if (mergeObstacle({ target, source }, mergePolicy) !== undefined) return;
        const sum = (of: (one: RangeInfo) => number): number => of(target) + of(source);
        const grown = sum((one) => one.bytes + (one.writeBytesPerS * quietMs) / 1_000);
        expect(grown).toBeLessThan(splits.bytes * ROUNDING);
        expect(sum((one) => one.readsPerS + one.writesPerS)).toBeLessThan(splits.requestsPerS);
        expect(sum((one) => one.readBytesPerS + one.writeBytesPerS)).toBeLessThan(splits.bytesPerS);
      }),
      {
        numRuns: 500,
        // Their growth adds up to one double below the split size, or to the split size, as one sums it.
        examples: [
          [
            { percent: 1, quietMs: 29_820, bytes: 16_386, requestsPerS: 1, bytesPerS: 1_099 },
            { bytes: 0, requests: 0, written: 1.999999999999997, read: 0 },
            { bytes: 0, requests: 0, written: 2.8862275413274912e-15, read: 0 },
          ],
        ],
      },
    );
  });

  test('that a split has made do not fit while what it was split for lasts (MN2)', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (share) => {
        for (const what of ['readsPerS', 'readBytesPerS', 'bytes'] as const) {
          const whole = {
            readsPerS: merging.splits.requestsPerS,
            readBytesPerS: merging.splits.bytesPerS,
            bytes: 64 * MIB,
          };
          const target = rangeInfo(1, { voters: [1], bytes: 0, [what]: whole[what] * share });
          const source = rangeInfo(2, { voters: [1], bytes: 0, [what]: whole[what] * (1 - share) });
          expect(mergeObstacle({ target, source }, merging)).toBeDefined();
        }
      }),
    );
  });
});

describe('merging', () => {
  function bed(given: Partial<RangeInfo> & { readonly voters?: readonly number[] } = {}) {
    const { target } = pair();
    const source = rangeInfo(2, { voters: [1, 2, 3], start: 'm', ...given });
    const scheduling = schedulingBed({ nodes: upNodes(5), ranges: [target, source], settings: QUIET });
    for (const name of ['replica-count', 'leader-count']) scheduling.schedulers.pause(name, Number.POSITIVE_INFINITY);
    const kinds = (): readonly string[] =>
      scheduling.controller.active().map(({ rangeId, steps }) => `${rangeId}: ${steps.map(({ type }) => type)}`);
    const said = (nowMs: number): string | undefined =>
      scheduling.schedulers.list(nowMs).find(({ name }) => name === 'merge')?.last;
    return { scheduling, target, source, kinds, said };
  }

  test('begins when the two were small for the quiet time; whoever only asks what would be done begins nothing', () => {
    const { scheduling, kinds, said } = bed();
    scheduling.tick(NOW_MS);
    expect([kinds(), said(NOW_MS)]).toEqual([
      [],
      '1 pairs of adjacent ranges are small, but not quiet for long enough yet',
    ]);
    const dueMs = NOW_MS + 5_000;
    for (let i = 0; i < 2; i++) {
      expect(scheduling.rehearse(dueMs).plans).toMatchObject([{ rangeId: 1, kind: 'merge', partner: 2 }]);
      expect(kinds()).toEqual([]);
    }
    scheduling.tick(dueMs);
    expect(kinds()).toEqual(['1: merge']);
  });

  test('waits anew after a split, a merge, or load', () => {
    const { scheduling, target, source, kinds } = bed();
    scheduling.tick(NOW_MS);
    scheduling.rangeReported({ ...source, readsPerS: 9_000 }, NOW_MS + 1_000);
    scheduling.tick(NOW_MS + 1_000);
    scheduling.rangeReported(source, NOW_MS + 2_000);
    scheduling.tick(NOW_MS + 2_000);
    scheduling.tick(NOW_MS + 6_000);
    expect(kinds()).toEqual([]);
    const later = { ...target.descriptor, epoch: { confVersion: 1, version: 2 } };
    scheduling.rangeReported({ ...target, descriptor: later }, NOW_MS + 6_500);
    scheduling.tick(NOW_MS + 7_500);
    expect(kinds()).toEqual([]);
    scheduling.tick(NOW_MS + 12_500);
    expect(kinds()).toEqual(['1: merge']);
  });

  test('brings the smaller one to the nodes of the other first', () => {
    const { scheduling, kinds } = bed({ voters: [3, 4, 5], leader: 3, bytes: 500_000 });
    scheduling.tick(NOW_MS);
    scheduling.tick(NOW_MS + 5_000);
    expect(kinds()).toEqual(['2: addLearner,addLearner,changeVoters,transferLeader']);
  });

  test('brings no replicas closer together for it', () => {
    const nodes = upNodes(5).map((node, i) => ({ ...node, labels: { zone: 'aabbc'.charAt(i) } }));
    const scheduling = schedulingBed({
      // Nothing more goes to node 5, so the larger one cannot be as far apart as the smaller one.
      nodes: nodes.map((node) => (node.nodeId === 5 ? { ...node, availableBytes: 0 } : node)),
      ranges: [
        rangeInfo(1, { voters: [1, 2, 3], end: 'm' }),
        rangeInfo(2, { voters: [1, 3, 5], start: 'm', bytes: 500_000 }),
      ],
      settings: QUIET,
    });
    const others = scheduling.schedulers.list(NOW_MS).filter(({ name }) => name !== 'merge');
    for (const { name } of others) scheduling.schedulers.pause(name, Number.POSITIVE_INFINITY);
    scheduling.tick(NOW_MS);
    scheduling.tick(NOW_MS + 5_000);
    expect(scheduling.controller.active()).toEqual([]);
    const merge = scheduling.schedulers.list(NOW_MS).find(({ name }) => name === 'merge');
    expect(merge?.last).toMatch(/of range 1: node 5 has too little free space/);
  });

  test('comes to nothing more and more rarely', () => {
    const { scheduling } = bed();
    let begun = 0;
    for (let s = 0; s < 3_600; s++) {
      const nowMs = NOW_MS + 1_000 * s;
      scheduling.tick(nowMs);
      for (const { operatorId } of scheduling.controller.active()) {
        begun++;
        scheduling.controller.cancel(operatorId, 'refused', nowMs);
      }
    }
    expect(begun).toBeGreaterThan(5);
    expect(begun).toBeLessThan(12);
  });

  test.each([
    { name: 'what lacks a replica', given: { voters: [1, 2] }, says: 'it has too many or too few replicas' },
    { name: 'what is silent', given: { silent: { 3: NOW_MS - 5_000 } }, says: 'its replica on node 3 is silent' },
  ])('leaves $name alone, and says so', ({ given, says }) => {
    const { scheduling, kinds, said } = bed(given as Partial<RangeInfo>);
    scheduling.schedulers.pause('leader-load', Number.POSITIVE_INFINITY);
    scheduling.tick(NOW_MS);
    const merges = (): readonly string[] => kinds().filter((kind) => kind.includes('merge'));
    scheduling.tick(NOW_MS + 5_000);
    expect(merges()).toEqual([]);
    expect(said(NOW_MS)).toMatch(new RegExp(`${says}|repair comes first|an operator is running`));
  });

  test('is explained to who asks about the first of the two', () => {
    const { scheduling, target } = bed({ chosen: true });
    expect(whyRange(scheduling, target, NOW_MS)).toContain(
      'merge with the next range, 2: the border between them was chosen manually',
    );
  });
});
