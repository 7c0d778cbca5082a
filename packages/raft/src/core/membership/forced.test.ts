import { SeededRandom } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bootCore } from '../../../test/support/core/boot.ts';
import { TestCluster } from '../../../test/support/core/core-cluster.ts';
import { lastOf, mend, termAt } from '../../../test/support/core/core-disk.ts';
import {
  append,
  apply,
  ELECTION_TICKS,
  entries,
  makeCore,
  makeLeader,
  propose,
  run,
  take,
  tick,
  tickUntilCampaign,
} from '../../../test/support/core/core-kit.ts';
import type { TestNode } from '../../../test/support/core/core-node.ts';
import { perform } from '../../../test/support/core/schedule.ts';
import type { RaftCore } from '../raft.ts';
import type { LogPosition } from '../types.ts';
import { changeConf, confChange, forcedChange } from './conf-change.ts';
import { decodeConfChange, encodeConfChange } from './conf-change-codec.ts';
import { confOf } from './membership.ts';

const CONTEXT = new Uint8Array([7]);
const LONG = 2 * ELECTION_TICKS;

/** A follower of three with two entries, of which one is known to be committed; its leader is gone. */
function bereaved(): RaftCore {
  const core = makeCore({ id: 1 });
  append(core, { term: 1, prev: [0, 0], entries: entries(1, 1, 1), commit: 1 });
  run(core);
  tick(core, LONG);
  run(core);
  return core;
}

describe('a replica that is left alone', () => {
  test('takes all of its log as committed, then is the only member, and leads', () => {
    const core = bereaved();
    const term = core.term;
    expect(core.forceAlone(CONTEXT)).toEqual({ index: 3, term: term + 1 });
    run(core);
    expect([core.applied, core.conf]).toEqual([3, confOf([1])]);
    tickUntilCampaign(core);
    expect([core.role, core.leaderReady]).toEqual(['leader', true]);
    propose(core, 'on');
    run(core);
    expect(core.applied).toBe(5);
  });

  test('counts the change when it is durable, not before (FC2)', () => {
    const core = bereaved();
    core.forceAlone(CONTEXT);
    const { marks, committed } = take(core);
    expect(committed).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(take(core).committed.map(({ index }) => index)).toEqual([2, 3]);
  });

  test('writes the entry together with a commit index that includes it, so that a crash undoes nothing (FC2)', () => {
    const core = bereaved();
    const { index, term } = core.forceAlone(CONTEXT) as LogPosition;
    const { persist } = core.ready();
    expect([persist?.entries.at(-1)?.index, persist?.hardState]).toEqual([index, { term, vote: 1, commit: index }]);
    expect(core.commit).toBe(1);
  });

  test('does not do it again before it leads (FC5)', () => {
    const core = bereaved();
    core.forceAlone(CONTEXT);
    run(core);
    expect([core.role, core.forceAlone(CONTEXT)]).toEqual(['follower', { refused: 'alone' }]);
  });

  test('has voted for itself in the term of the change (FC1)', () => {
    const core = bereaved();
    core.forceAlone(CONTEXT);
    run(core);
    const { term } = core;
    core.step({ type: 'vote', from: 2, to: 1, term, lastIndex: 9, lastTerm: term, force: true });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', term, reject: true }]);
  });

  test('that is a learner can do it too, and one in a joint configuration', () => {
    for (const conf of [confOf([2, 3], [1]), { ...confOf([1, 4, 5]), votersOutgoing: [1, 2, 3] }]) {
      const core = makeCore({ id: 1, conf });
      append(core, { term: 1, prev: [0, 0], entries: entries(1, 1), commit: 1 });
      run(core);
      tick(core, LONG);
      run(core);
      expect(core.forceAlone(CONTEXT)).toMatchObject({ index: 2 });
      run(core);
      expect(core.conf).toEqual(confOf([1]));
    }
  });

  test('does not while a leader was heard lately, nor as a leader, nor without membership', () => {
    const core = makeCore({ id: 1 });
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1), commit: 1 });
    run(core);
    expect(core.forceAlone(CONTEXT)).toEqual({ refused: 'leaderHeard' });
    expect(makeLeader().forceAlone(CONTEXT)).toEqual({ refused: 'leaderHeard' });
    const blank = makeCore({ id: 4, conf: confOf([]) });
    tick(blank, LONG);
    expect(blank.forceAlone(CONTEXT)).toEqual({ refused: 'noData' });
  });

  test('goes by a change that nobody can propose', () => {
    const change = forcedChange(1, CONTEXT);
    expect(makeLeader().proposeConf(change)).toEqual({ refused: 'confInvalid', problem: 'forced' });
    expect(decodeConfChange(encodeConfChange(change))).toEqual(change);
    expect(changeConf(confOf([1, 2, 3], [4]), change)).toEqual(confOf([1]));
    expect(changeConf(confOf([1]), confChange([]))).toEqual({ invalid: 'notJoint' });
  });
});

const schedule = fc.noBias(fc.array(fc.nat({ max: 2 ** 31 - 1 }), { minLength: 300, maxLength: 600, size: 'max' }));

describe('of those that are left the one with the best log', () => {
  for (const changes of [false, true]) {
    test(`holds whatever any of them has applied, and goes on${changes ? ', while members changed' : ''}`, () => {
      fc.assert(
        fc.property(fc.nat(), schedule, fc.nat(), (seed, steps, choice) => {
          const cluster = new TestCluster({ voters: 5, spares: changes ? 1 : 0, seed });
          expect(cluster.heals(100)).toBe(true);
          for (const step of steps) perform(cluster, step, changes);
          const left = survivors(cluster.nodes, choice);
          // Who is asked for its position has started: its log is no shorter than what it has applied.
          for (const { disk } of left) mend(disk);
          const best = left.reduce((a, b) => (isBehind(lastOf(a.disk), lastOf(b.disk)) ? b : a));
          for (const { disk } of left) expect(holds(best, disk.checkpoint)).toBe(true);
          goOnAlone(best);
        }),
        { numRuns: changes ? 25 : 40, interruptAfterTimeLimit: 8_000, markInterruptAsFailure: false },
      );
    });
  }
});

/** Two of those with membership, by chance. */
function survivors(nodes: readonly TestNode[], choice: number): readonly TestNode[] {
  const known = nodes.filter(({ disk }) => disk.checkpoint.conf.voters.length > 0);
  return known.filter((_, i) => i === choice % known.length || i === (choice + 1) % known.length);
}

function isBehind(a: LogPosition, b: LogPosition): boolean {
  return a.term < b.term || (a.term === b.term && a.index < b.index);
}

function holds({ disk }: TestNode, { index, term }: LogPosition): boolean {
  return index < disk.start.index || termAt(disk, index) === term;
}

function goOnAlone({ id, disk }: TestNode): void {
  const { index: last } = lastOf(disk);
  const core = bootCore({
    ...{ id, disk, config: {}, random: new SeededRandom(1), restarted: true, firstLeader: undefined, evicted: false },
  });
  tick(core, LONG);
  drop(core);
  if (core.role === 'leader') return; // it was alone anyway
  if (!core.conf.voters.includes(id) && !core.conf.learners.includes(id)) return; // it was removed, and knows it
  expect(core.forceAlone(CONTEXT)).toMatchObject({ index: last + 1 });
  run(core);
  expect([core.applied, core.conf]).toEqual([last + 1, confOf([id])]);
  tick(core, LONG);
  run(core);
  expect(core.role).toBe('leader');
}

/** Of what it asks others for, nothing arrives. */
function drop(core: RaftCore): void {
  const { marks, committed } = take(core);
  for (const mark of marks) core.persisted(mark);
  for (const entry of committed) apply(core, entry);
  run(core);
}
