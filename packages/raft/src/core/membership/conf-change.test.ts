import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfProblem, ConfState } from '../types.ts';
import { type ConfChange, type ConfStep, changeConf, confChange, LEAVE_JOINT } from './conf-change.ts';
import { confOf, leaveJoint } from './membership.ts';

const add = (replica: number): ConfStep => ({ type: 'addVoter', replica });
const learn = (replica: number): ConfStep => ({ type: 'addLearner', replica });
const remove = (replica: number): ConfStep => ({ type: 'remove', replica });

const three = confOf([1, 2, 3]);
const joint: ConfState = { ...confOf([1, 2, 4], [9]), votersOutgoing: [1, 2, 3], learnersNext: [3] };

describe('a change makes the next configuration (M1–M3)', () => {
  const rows: { name: string; of: ConfState; change: ConfChange; expect: ConfState }[] = [
    { name: 'a voter is added', of: three, change: confChange([add(4)]), expect: confOf([1, 2, 3, 4]) },
    { name: 'a voter is removed', of: three, change: confChange([remove(1)]), expect: confOf([2, 3]) },
    { name: 'a learner is added', of: three, change: confChange([learn(4)]), expect: confOf([1, 2, 3], [4]) },
    {
      name: 'a learner is promoted',
      of: confOf([1, 2], [3]),
      change: confChange([add(3)]),
      expect: confOf([1, 2, 3]),
    },
    { name: 'a learner is removed', of: confOf([1], [2]), change: confChange([remove(2)]), expect: confOf([1]) },
    {
      name: 'a demoted voter is a learner at once when nothing else changes',
      of: three,
      change: confChange([learn(3)]),
      expect: confOf([1, 2], [3]),
    },
    {
      name: 'any number of learners is a simple change',
      of: confOf([1], [7]),
      change: confChange([learn(5), learn(4), remove(7)]),
      expect: confOf([1], [4, 5]),
    },
    {
      name: 'a voter and learners are a simple change',
      of: three,
      change: confChange([add(4), learn(5)]),
      expect: confOf([1, 2, 3, 4], [5]),
    },
    {
      name: 'two voters go through a joint configuration that is left automatically',
      of: three,
      change: confChange([add(4), remove(1)]),
      expect: { ...confOf([2, 3, 4]), votersOutgoing: [1, 2, 3], autoLeave: true },
    },
    {
      name: 'jointAuto is joint even for one voter',
      of: three,
      change: confChange([add(4)], 'jointAuto'),
      expect: { ...confOf([1, 2, 3, 4]), votersOutgoing: [1, 2, 3], autoLeave: true },
    },
    {
      name: 'joint waits for an explicit leave',
      of: confOf([1], [8]),
      change: confChange([add(2)], 'joint'),
      expect: { ...confOf([1, 2], [8]), votersOutgoing: [1] },
    },
    {
      name: 'a voter demoted in a joint configuration is a learner only when it is left',
      of: three,
      change: confChange([add(4), learn(3)]),
      expect: { ...confOf([1, 2, 4]), votersOutgoing: [1, 2, 3], learnersNext: [3], autoLeave: true },
    },
    {
      name: 'a voter that is removed and added again as a learner waits likewise',
      of: three,
      change: confChange([remove(3), learn(3)], 'joint'),
      expect: { ...confOf([1, 2]), votersOutgoing: [1, 2, 3], learnersNext: [3] },
    },
    {
      name: 'the leave makes learners of those that waited, and forgets the outgoing side',
      of: joint,
      change: LEAVE_JOINT,
      expect: confOf([1, 2, 4], [3, 9]),
    },
    {
      name: 'a leave may have a context, and any transition',
      of: joint,
      change: { steps: [], transition: 'joint', context: Buffer.from('x') },
      expect: confOf([1, 2, 4], [3, 9]),
    },
    {
      name: 'steps that find what they want change nothing',
      of: confOf([1, 2], [3]),
      change: confChange([add(1), learn(3), remove(4)]),
      expect: confOf([1, 2], [3]),
    },
    {
      name: 'steps are taken in order',
      of: three,
      change: confChange([add(4), remove(4)]),
      expect: three,
    },
  ];
  test.each(rows)('$name', ({ of, change, expect: expected }) => expect(changeConf(of, change)).toEqual(expected));
});

describe('a change that is not possible says why', () => {
  const rows: { name: string; of: ConfState; change: ConfChange; expect: ConfProblem }[] = [
    { name: 'a change while joint', of: joint, change: confChange([learn(5)]), expect: 'joint' },
    { name: 'a leave while not joint', of: three, change: LEAVE_JOINT, expect: 'notJoint' },
    { name: 'removal of the last voter', of: confOf([1], [2]), change: confChange([remove(1)]), expect: 'noVoters' },
    {
      name: 'demotion of all voters',
      of: confOf([1, 2]),
      change: confChange([learn(1), learn(2)], 'joint'),
      expect: 'noVoters',
    },
    { name: 'a configuration that nobody is in', of: confOf([]), change: confChange([add(1)]), expect: 'noVoters' },
    { name: 'replica 0', of: three, change: confChange([add(0)]), expect: 'noReplica' },
    { name: 'a fraction', of: three, change: confChange([add(1.5)]), expect: 'noReplica' },
  ];
  test.each(rows)('$name', ({ of, change, expect: expected }) =>
    expect(changeConf(of, change)).toEqual({ invalid: expected }),
  );
});

describe('whatever changes are made in whatever order', () => {
  const step = fc.record({
    type: fc.constantFrom<ConfStep['type']>('addVoter', 'addLearner', 'remove'),
    replica: fc.integer({ min: 1, max: 6 }),
  });
  const change = fc.record({
    steps: fc.array(step, { maxLength: 4 }),
    transition: fc.constantFrom<ConfChange['transition']>('auto', 'joint', 'jointAuto'),
    context: fc.constant(new Uint8Array(0)),
  });

  test('nobody has two roles, somebody votes, and each majority overlaps the majorities before it', () => {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), (changes) => {
        let conf = three;
        for (const each of changes) {
          const next = changeConf(conf, each);
          if ('invalid' in next) continue;
          checkRoles(next);
          checkOverlap(conf, next);
          conf = next;
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a joint configuration left has exactly what the steps alone would have made', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 5 }), (steps) => {
        const start = confOf([1, 2, 3], [4]);
        const viaJoint = changeConf(start, confChange(steps, 'joint'));
        let voters: number[] = [1, 2, 3];
        let learners: number[] = [4];
        for (const { type, replica } of steps) {
          voters = voters.filter((id) => id !== replica);
          learners = learners.filter((id) => id !== replica);
          if (type === 'addVoter') voters.push(replica);
          if (type === 'addLearner') learners.push(replica);
        }
        if ('invalid' in viaJoint) {
          expect(voters).toEqual([]);
          return;
        }
        const left = leaveJoint(viaJoint);
        expect([...left.voters].toSorted()).toEqual(voters.toSorted());
        expect([...left.learners].toSorted()).toEqual(learners.toSorted());
      }),
      { numRuns: 500 },
    );
  });
});

function checkRoles(conf: ConfState): void {
  const { voters, votersOutgoing, learners, learnersNext } = conf;
  expect(voters.length).toBeGreaterThan(0);
  const all = [...voters, ...learners, ...learnersNext];
  expect(new Set(all).size).toBe(all.length);
  expect(learners.filter((id) => votersOutgoing.includes(id))).toEqual([]);
  expect(learnersNext.filter((id) => !votersOutgoing.includes(id))).toEqual([]);
  if (votersOutgoing.length === 0) expect(conf.autoLeave).toBe(false);
}

/** No two disjoint sets decide: tried out over all subsets of the members. */
function checkOverlap(before: ConfState, after: ConfState): void {
  for (let set = 0; set < 1 << 6; set++) {
    const inSet = (id: number) => (set & (1 << (id - 1))) !== 0;
    if (decides(before, inSet)) expect(decides(after, (id) => !inSet(id))).toBe(false);
  }
}

/** Counted independently of `quorum.ts`. */
function decides(conf: ConfState, inSet: (id: number) => boolean): boolean {
  const sides = conf.votersOutgoing.length === 0 ? [conf.voters] : [conf.voters, conf.votersOutgoing];
  return sides.every((side) => 2 * side.filter(inSet).length > side.length);
}
