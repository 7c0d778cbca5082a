import { type ConfState, changeConf, confChange, confOf, isJoint, leaveJoint, type ProgressStatus } from '@remora/raft';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MasterNode, type MastersView, missedBecause, nextMastersStep, staysBecause } from './plan.ts';

const up = (nodeId: number): MasterNode => ({ nodeId, liveness: 'up', serving: true, leaving: false });
const down = (nodeId: number): MasterNode => ({ ...up(nodeId), liveness: 'down' });
const silent = (nodeId: number): MasterNode => ({ ...up(nodeId), liveness: 'suspect' });
const leaving = (nodeId: number): MasterNode => ({ ...up(nodeId), serving: false, leaving: true });

function progress(replica: number, heard: boolean, caughtUp = heard): ProgressStatus {
  return { replica, heardLately: heard, caughtUp } as ProgressStatus;
}

function view(conf: ConfState, nodes: readonly MasterNode[], given: Partial<MastersView> = {}): MastersView {
  return {
    ...{ self: 1, conf, changePending: false, nodes, former: [], wanted: 3 },
    progress: nodes.map(({ nodeId, liveness }) => progress(nodeId, liveness === 'up')),
    ...given,
  };
}

function told(of: MastersView): string {
  const step = nextMastersStep(of);
  if (step.type === 'change') return step.steps.map(({ type, replica }) => `${type} ${replica}`).join(', ');
  return step.type === 'handOver' ? `hand over to ${step.to}` : step.why;
}

const THREE = confOf([1, 2, 3]);
const FOURTH = [up(1), up(2), leaving(3), up(4)];

describe('the next step of the masters', () => {
  const rows = [
    { name: 'none when all is well', of: view(THREE, [up(1), up(2), up(3), up(4)]), expect: '' },
    { name: 'one that leaves is replaced: another copies', of: view(THREE, FOURTH), expect: 'addLearner 4' },
    {
      name: 'and is waited for',
      of: view(confOf([1, 2, 3], [4]), FOURTH, { progress: [progress(2, true), progress(4, true, false)] }),
      expect: "node 4 is still copying the masters' state",
    },
    {
      name: 'then votes in its place, in one change (MS1)',
      of: view(confOf([1, 2, 3], [4]), FOURTH),
      expect: 'addVoter 4, addLearner 3',
    },
    { name: 'and the one that left is removed', of: view(confOf([1, 2, 4], [3]), FOURTH), expect: 'remove 3' },
    {
      name: 'one that is down is replaced, too',
      of: view(THREE, [up(1), up(2), down(3), up(4)]),
      expect: 'addLearner 4',
    },
    {
      name: 'one that is silent for a while is not',
      of: view(THREE, [up(1), up(2), { ...up(3), liveness: 'suspect' }, up(4)]),
      expect: '',
    },
    {
      name: 'of two that are to go the one that lives stays, where only one can be replaced',
      of: view(confOf([1, 2, 3], [4]), [leaving(1), down(2), up(3), up(4)], { self: 3 }),
      expect: 'addVoter 4, addLearner 2',
    },
    {
      name: 'and waits for another node',
      of: view(confOf([1, 3, 4]), [leaving(1), down(2), up(3), up(4)], { self: 3, former: [2] }),
      expect: 'no other node can take the place of node 1 among the masters',
    },
    {
      name: 'a leader that leaves hands over first',
      of: view(confOf([1, 2, 3], [4]), [leaving(1), up(2), up(3), up(4)]),
      expect: 'hand over to 2',
    },
    {
      name: 'who was a master is none again (MS3)',
      of: view(THREE, FOURTH, { former: [4] }),
      expect: 'no other node can take the place of node 3 among the masters',
    },
    {
      name: 'nor is a node that takes nothing new',
      of: view(THREE, [up(1), up(2), leaving(3), { ...up(4), serving: false }]),
      expect: 'no other node can take the place of node 3 among the masters',
    },
    {
      name: 'of five one may go without a successor',
      of: view(confOf([1, 2, 3, 4, 5]), [up(1), up(2), up(3), up(4), leaving(5)], { wanted: 5 }),
      expect: 'addLearner 5',
    },
    {
      name: 'three that nobody can replace stay',
      of: view(confOf([1, 2, 3, 4, 5]), [up(1), up(2), leaving(3), down(4), down(5)], { wanted: 5 }),
      expect: 'no other node can take the place of node 3 and node 4 and node 5 among the masters',
    },
    {
      name: 'not when too few would be heard (MS2)',
      of: view(confOf([1, 2, 3, 4, 5]), [up(1), up(2), silent(3), silent(4), leaving(5)], { wanted: 5 }),
      expect: 'too few masters respond for: node 5 leaves the masters without a replacement',
    },
    {
      name: 'a master that is alone gets two more, not one (MS5)',
      of: view(confOf([1]), [up(1), up(4)]),
      expect: '',
    },
    { name: 'both copy first', of: view(confOf([1], [4]), [up(1), up(4), up(5)]), expect: 'addLearner 5' },
    {
      name: 'and vote at once',
      of: view(confOf([1], [4, 5]), [up(1), up(4), up(5)]),
      expect: 'addVoter 4, addVoter 5',
    },
    {
      name: 'one that was to be replaced has come back: its successor goes',
      of: view(confOf([1, 2, 3], [4]), [up(1), up(2), up(3), up(4)]),
      expect: 'remove 4',
    },
    {
      name: 'nothing while a change is under way',
      of: view(THREE, FOURTH, { changePending: true }),
      expect: 'another change of the masters is in progress',
    },
  ];
  test.each(rows)('$name', (row) => expect(told(row.of)).toBe(row.expect));
});

test('a node that nobody can replace is told so before it is emptied', () => {
  const nodes = [up(1), up(2), up(3)];
  expect(staysBecause(view(THREE, nodes), 3)).toContain('one of the 3 masters');
  expect(staysBecause(view(THREE, [...nodes, up(4)]), 3)).toBeUndefined();
  expect(staysBecause(view(THREE, [...nodes, up(4)]), 4)).toBeUndefined();
});

test('of two that leave one after the other the second is told, when one node alone could take a place', () => {
  const nodes = [leaving(1), up(2), up(3), up(4)];
  expect(staysBecause(view(THREE, nodes, { self: 3 }), 2)).toContain('no other node can take its place');
  expect(staysBecause(view(THREE, [...nodes, up(5)], { self: 3 }), 2)).toBeUndefined();
  // While the one that was replaced is on its way out, it is nobody's successor.
  expect(staysBecause(view(confOf([2, 3, 4], [1]), nodes, { self: 3 }), 2)).toContain('no other node');
  // Who is alone, or one of two, cannot leave fewer behind than there are.
  expect(staysBecause(view(confOf([1]), [up(1), up(4)]), 1)).toBeUndefined();
  expect(staysBecause(view(confOf([1, 2]), [up(1), up(2), up(4)]), 2)).toBeUndefined();
});

describe('a master that is to be away for a while', () => {
  const away = (nodeId: number): MasterNode => ({ ...up(nodeId), serving: false, away: true });
  const rows = [
    { name: 'while all others are heard', nodes: [up(1), up(2), up(3)], nodeId: 3, refused: false },
    { name: 'while another one is silent', nodes: [up(1), silent(2), up(3)], nodeId: 3, refused: true },
    { name: 'while another one may be away, too', nodes: [up(1), away(2), up(3)], nodeId: 3, refused: true },
    { name: 'that is away already', nodes: [up(1), silent(2), away(3)], nodeId: 3, refused: true },
    { name: 'that is silent itself', nodes: [up(1), up(2), silent(3)], nodeId: 3, refused: false },
    { name: 'that is none', nodes: [up(1), silent(2), up(3), up(4)], nodeId: 4, refused: false },
  ];
  test.each(rows)('$name is refused: $refused', ({ nodes, nodeId, refused }) => {
    const why = missedBecause(view(THREE, nodes), nodeId);
    if (refused) expect(why).toContain('the masters would lose their majority');
    else expect(why).toBeUndefined();
  });

  test('that is alone, or leads beside one other, may be: nothing would change that', () => {
    expect(missedBecause(view(confOf([1]), [up(1), up(4)]), 1)).toBeUndefined();
    expect(missedBecause(view(confOf([1, 2]), [up(1), up(2)]), 1)).toBeUndefined();
  });
});

/** Takes the steps until there is none, as a group does that is led by `self`; gives what it comes to. */
function settle(start: MastersView): MastersView {
  let now = start;
  for (let i = 0; i < 40; i++) {
    const step = nextMastersStep(now);
    if (step.type === 'none') return now;
    if (step.type === 'handOver') {
      now = { ...now, self: step.to };
      continue;
    }
    const made = changeConf(now.conf, confChange(step.steps));
    if ('invalid' in made) throw new Error(`not possible: ${made.invalid}`);
    const next = isJoint(made) ? leaveJoint(made) : made;
    const heard = next.voters.filter((id) => now.nodes.some((node) => node.nodeId === id && node.liveness === 'up'));
    expect(2 * heard.length).toBeGreaterThan(next.voters.length); // MS2
    const gone = [...now.conf.voters, ...now.conf.learners].filter(
      (id) => !next.voters.includes(id) && !next.learners.includes(id),
    );
    for (const id of gone) expect(now.conf.voters).not.toContain(id); // only learners are removed
    now = { ...now, conf: next, former: [...now.former, ...gone] };
  }
  throw new Error('it does not come to rest');
}

test('whatever nodes there are, it comes to rest, with a majority that is heard, and with nobody that leaves if that can be', () => {
  const node = fc.constantFrom(up, down, leaving);
  fc.assert(
    fc.property(fc.array(node, { minLength: 3, maxLength: 8 }), fc.constantFrom(1, 3, 5), (kinds, wanted) => {
      const nodes = kinds.map((kind, i) => kind(i + 1));
      const founders = nodes.slice(0, wanted).map(({ nodeId }) => nodeId);
      const self = founders.find((id) => nodes[id - 1]?.liveness === 'up');
      const heard = founders.filter((id) => nodes[id - 1]?.liveness === 'up').length;
      fc.pre(self !== undefined && founders.length === wanted && 2 * heard > wanted);
      const { conf } = settle(view(confOf(founders), nodes, { self: self ?? 0, wanted }));
      expect(conf.learners).toEqual([]);
      const staying = nodes.filter(({ liveness, leaving: goes }) => liveness === 'up' && !goes).length;
      if (staying < wanted) return;
      expect(conf.voters).toHaveLength(wanted);
      for (const id of conf.voters) expect(nodes[id - 1]).toEqual(up(id));
    }),
    { numRuns: 500 },
  );
});
