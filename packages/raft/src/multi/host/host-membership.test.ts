import { afterEach, describe, expect, test } from 'vitest';
import { HostBed, replicaOn } from '../../../test/support/host/host-bed.ts';
import { type ConfChange, type ConfStep, confChange, LEAVE_JOINT } from '../../core/membership/conf-change.ts';
import { confOf, isJoint } from '../../core/membership/membership.ts';
import type { ConfState } from '../../core/types.ts';

const GROUP = 2;
const NODES = [1, 2, 3];
const [r1, r2, r3, r4] = [1, 2, 3, 4].map((node) => replicaOn(GROUP, node)) as [number, number, number, number];

const add = (replica: number): ConfStep => ({ type: 'addVoter', replica });
const learn = (replica: number): ConfStep => ({ type: 'addLearner', replica });
const remove = (replica: number): ConfStep => ({ type: 'remove', replica });

let bed: HostBed | undefined;

/** Nodes with one group, whose first voters are on `voters`. */
function start(
  nodes: readonly number[],
  voters = nodes,
  given: Partial<ConstructorParameters<typeof HostBed>[0]> = {},
) {
  const made = new HostBed({ seed: 1, ...given });
  for (const id of nodes) made.start(id);
  made.addGroup(GROUP, nodes, voters);
  bed = made;
  return made;
}

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

/** Changes the membership, until the leader is in this one. */
function changeTo(b: HostBed, change: ConfChange, conf: ConfState): Promise<void> {
  return b.change(GROUP, change, (now) => JSON.stringify(now) === JSON.stringify(conf));
}

async function applied(b: HostBed, nodes: readonly number[], text: string): Promise<void> {
  await b.write(GROUP, text);
  await b.until(`'${text}' is applied`, () => nodes.every((id) => b.counter(id, GROUP).history.includes(text)));
}

describe('the host drives membership changes', () => {
  test('a replica is replaced: learner, then a joint configuration that is left by itself', async () => {
    const b = start([1, 2, 3, 4], NODES);
    await applied(b, NODES, 'a');
    await changeTo(b, confChange([learn(r4)]), confOf([r1, r2, r3], [r4]));
    await b.until('the learner has caught up', () => {
      const leader = b.leaderOf(GROUP);
      const progress = leader === undefined ? [] : b.group(leader, GROUP).status().progress;
      return progress.find(({ replica }) => replica === r4)?.caughtUp === true;
    });
    const leader = await b.leader(GROUP);
    const leaving = NODES.find((id) => id !== leader) ?? 0;
    const after = confOf([r1, r2, r3, r4].filter((id) => id !== replicaOn(GROUP, leaving)));
    await changeTo(b, confChange([add(r4), remove(replicaOn(GROUP, leaving))]), after);
    const staying = [1, 2, 3, 4].filter((id) => id !== leaving);
    await applied(b, staying, 'b');
    const confs = b.counter(leader, GROUP).confs;
    expect(confs.map(({ conf }) => [isJoint(conf), conf.autoLeave])).toEqual([
      [false, false],
      [true, true],
      [false, false],
    ]);
    for (const id of staying) expect(b.counter(id, GROUP).confs).toEqual(confs);
    for (const id of staying) expect(b.group(id, GROUP).status().conf).toEqual(after);
  });

  test('a leader that removes itself steps down; the others go on and it stays quiet', async () => {
    const b = start(NODES);
    const leader = await b.leader(GROUP);
    const { term } = b.group(leader, GROUP);
    b.group(leader, GROUP).proposeConf(confChange([remove(replicaOn(GROUP, leader))]));
    await b.until('it has stepped down', () => b.group(leader, GROUP).role === 'follower');
    expect(b.counter(leader, GROUP).conf.voters).not.toContain(replicaOn(GROUP, leader));
    const others = NODES.filter((id) => id !== leader);
    await b.until('another leads', () => others.includes(b.leaderOf(GROUP) ?? 0));
    await applied(b, others, 'a');
    await b.run(5000);
    const roles = b.counter(leader, GROUP).roles.filter((change) => change.term > term);
    expect(roles.filter(({ role }) => role !== 'follower')).toEqual([]);
  });

  test('of two voters the one that leads can be removed and be gone at once: the other knows that it is alone', async () => {
    const b = start([1, 2]);
    await applied(b, [1, 2], 'a');
    const leader = await b.leader(GROUP);
    const other = 3 - leader;
    b.group(leader, GROUP).proposeConf(confChange([remove(replicaOn(GROUP, leader))]));
    await b.until('it has stepped down', () => b.group(leader, GROUP).role === 'follower');
    await b.run(1);
    await b.crash(leader);
    await b.until('the other leads', () => b.node(other).host.group(GROUP)?.ready === true);
    expect(b.group(other, GROUP).status().conf).toEqual(confOf([replicaOn(GROUP, other)]));
  });

  test('a joint configuration survives the restart of all, and a new leader can leave it', async () => {
    const b = start([1, 2, 3, 4], NODES);
    const joint = { ...confOf([r1, r2, r4]), votersOutgoing: [r1, r2, r3] };
    await applied(b, NODES, 'a');
    await b.change(GROUP, confChange([add(r4), remove(r3)], 'joint'), ({ voters }) => voters.includes(r4));
    await applied(b, [1, 2, 3, 4], 'b');
    b.counter(1, GROUP).checkpoint(); // the others find it in the log again
    for (const id of [1, 2, 3, 4]) await b.crash(id);
    for (const id of [1, 2, 3, 4]) b.start(id);
    await applied(b, [1, 2, 3, 4], 'c');
    for (const id of [1, 2, 3, 4]) expect(b.group(id, GROUP).status().conf).toEqual(joint);
    await changeTo(b, LEAVE_JOINT, confOf([r1, r2, r4]));
    await applied(b, [1, 2, 4], 'd');
  });

  test('a snapshot brings a joint configuration with it', async () => {
    const b = start(NODES, NODES, { options: { tailEntries: 0, snapshotHoldMs: 0 } });
    await applied(b, NODES, 'a');
    await b.change(GROUP, confChange([add(r4), learn(r3)], 'joint'), isJoint);
    await b.write(GROUP, 'b');
    const leader = await b.leader(GROUP);
    b.group(leader, GROUP).checkpointed(b.counter(leader, GROUP).checkpoint());
    b.start(4);
    b.addGroup(GROUP, [4], NODES);
    await b.until('it is installed', () => b.counter(4, GROUP).installs === 1);
    await b.until('it is told', () => b.group(4, GROUP).status().conf.learnersNext.includes(r3));
    expect(b.group(4, GROUP).status().conf).toEqual({
      ...confOf([r1, r2, r4]),
      votersOutgoing: [r1, r2, r3],
      learnersNext: [r3],
    });
    await changeTo(b, LEAVE_JOINT, confOf([r1, r2, r4], [r3]));
    await applied(b, [1, 2, 3, 4], 'c');
  });

  test('a snapshot under way to a replica that is removed is given up (traps 3)', async () => {
    const b = start(NODES, NODES, { options: { tailEntries: 0, snapshotHoldMs: 0 } });
    await applied(b, NODES, 'a');
    await changeTo(b, confChange([learn(r4)]), confOf([r1, r2, r3], [r4]));
    const leader = await b.leader(GROUP);
    b.group(leader, GROUP).checkpointed(b.counter(leader, GROUP).checkpoint());
    b.start(4);
    b.addGroup(GROUP, [4], NODES);
    b.counter(4, GROUP).installGate = new Promise(() => {}); // it never ends by itself
    await b.until('it is under way', () => b.counter(4, GROUP).installs === 1);
    await changeTo(b, confChange([remove(r4)]), confOf([r1, r2, r3]));
    const { host } = b.node(leader);
    await b.until('it is given up', () => host.stats().snapshotsSendFailed === 1, 1000);
    await b.run(1000);
    expect(host.stats().snapshotsSendFailed).toBe(1); // and not tried again
  });

  test('an impossible change is refused with its reason, at a follower as such', async () => {
    const b = start(NODES);
    const leader = await b.leader(GROUP);
    expect(b.group(leader, GROUP).proposeConf(LEAVE_JOINT)).toEqual({ refused: 'confInvalid', problem: 'notJoint' });
    const other = NODES.find((id) => id !== leader) ?? 0;
    expect(b.group(other, GROUP).proposeConf(confChange([learn(r4)]))).toEqual({ refused: 'notLeader' });
  });
});

describe("the state machine's veto (design §7: checked at apply by the same rule on every replica)", () => {
  test('changes nothing anywhere; what comes behind is applied, and the next change may come', async () => {
    const b = start(NODES);
    await applied(b, NODES, 'a');
    const asked: { readonly id: number; readonly context: string; readonly applied: number }[] = [];
    for (const id of NODES) {
      const counter = b.counter(id, GROUP);
      counter.admits = ({ context }) => {
        asked.push({ id, context: Buffer.from(context).toString(), applied: counter.applied.index });
        return context.length === 0;
      };
    }
    const leader = await b.leader(GROUP);
    const group = b.group(leader, GROUP);
    const proposed = group.proposeConf({ ...confChange([learn(r4)]), context: Buffer.from('old epoch') });
    expect(proposed).toMatchObject({ term: group.term });
    const { index } = proposed as { readonly index: number };
    group.propose(Buffer.from('behind'));
    await applied(b, NODES, 'b');
    // Asked once each, when all before it was applied.
    expect(asked.toSorted((x, y) => x.id - y.id)).toEqual(
      NODES.map((id) => ({ id, context: 'old epoch', applied: index - 1 })),
    );
    for (const id of NODES) expect(b.group(id, GROUP).status().conf).toEqual(confOf([r1, r2, r3]));
    await changeTo(b, confChange([learn(r4)]), confOf([r1, r2, r3], [r4]));
  });

  test('is not asked about leaving a joint configuration', async () => {
    const b = start([1, 2, 3, 4], NODES);
    await b.change(GROUP, confChange([add(r4), remove(r3)], 'joint'), isJoint);
    await b.until('all have applied it', () => [1, 2, 3, 4].every((id) => isJoint(b.counter(id, GROUP).conf)));
    for (const id of [1, 2, 3, 4]) b.counter(id, GROUP).admits = () => false;
    await changeTo(b, LEAVE_JOINT, confOf([r1, r2, r4]));
  });

  test('an apply that takes long holds back the entries behind a change, and the change itself', async () => {
    const b = start([1]);
    await applied(b, [1], 'a');
    const counter = b.counter(1, GROUP);
    let release = () => {};
    counter.gate = new Promise((resolve) => {
      release = resolve;
    });
    const group = b.group(1, GROUP);
    group.propose(Buffer.from('b'));
    group.proposeConf(confChange([learn(r4)]));
    group.propose(Buffer.from('c'));
    await b.run(200);
    expect(group.status().conf).toEqual(confOf([r1]));
    expect(counter.history).toEqual(['a', 'b']);
    release();
    counter.gate = undefined;
    await b.until('all is applied', () => counter.history.includes('c'));
    expect(group.status().conf).toEqual(confOf([r1], [r4]));
  });
});

describe('a replica that joins, without any membership', () => {
  test('is brought in by a snapshot though the log reaches back to its beginning, and agrees about all that follows', async () => {
    const b = start(NODES);
    await applied(b, NODES, 'a');
    // Changes that mean something else, or nothing, to who knows what they have led to.
    await changeTo(b, confChange([learn(r4)]), confOf([r1, r2, r3], [r4]));
    await changeTo(b, confChange([add(r4)]), confOf([r1, r2, r3, r4]));
    b.start(4);
    b.addGroup(GROUP, [4], []);
    await applied(b, [1, 2, 3, 4], 'b');
    expect(b.counter(4, GROUP)).toMatchObject({ installs: 1, confs: [] });
    expect(b.counter(4, GROUP).history).toEqual(b.counter(1, GROUP).history);
    const leader = await b.leader(GROUP);
    const leaving = NODES.find((id) => id !== leader) ?? 0;
    const left = [r1, r2, r3, r4].filter((id) => id !== replicaOn(GROUP, leaving));
    await changeTo(b, confChange([remove(replicaOn(GROUP, leaving))]), confOf(left));
    await b.until('the one that joined knows', () => b.counter(4, GROUP).confs.length === 1);
    expect(b.group(4, GROUP).status().conf).toEqual(confOf(left));
  });

  test('takes nothing and does not campaign until then, over a restart too', async () => {
    const b = start(NODES);
    await applied(b, NODES, 'a');
    await changeTo(b, confChange([learn(r4)]), confOf([r1, r2, r3], [r4]));
    b.start(4);
    b.addGroup(GROUP, [4], []);
    b.counter(4, GROUP).installGate = new Promise(() => {}); // it never ends by itself
    await b.until('a snapshot is under way', () => b.counter(4, GROUP).installs === 1);
    await b.crash(4);
    b.start(4);
    const role = () => b.group(4, GROUP).status();
    expect(role()).toMatchObject({ role: 'follower', lastIndex: 0, applied: 0, conf: confOf([]) });
    await applied(b, [1, 2, 3, 4], 'b');
    expect(role().conf).toEqual(confOf([r1, r2, r3], [r4]));
  });

  test('that has applied something is a contradiction', () => {
    const b = start([1]);
    const { host } = b.node(1);
    const stateMachine = b.counter(1, GROUP);
    const applied = { index: 3, term: 1 };
    const options = { groupId: 9, replicaId: 901, applied, conf: confOf([]), stateMachine, locate: () => 1 };
    expect(() => host.createGroup(options)).toThrow('without membership');
  });
});

test('a voter that was removed while it was away is heard by its votes, with where it lives; a member is not', async () => {
  const strangers: { readonly replicaId: number; readonly node: number }[] = [];
  const b = start(NODES, NODES, { extra: { onNonMember: (_group, stranger) => strangers.push(stranger) } });
  await applied(b, NODES, 'a');
  const leader = await b.leader(GROUP);
  const away = NODES.find((id) => id !== leader) ?? 0;
  const others = NODES.filter((id) => id !== away);
  b.network.partition(others, [away]);
  await b.run(5_000); // it asks for votes, and nobody hears it
  const left = others.map((node) => replicaOn(GROUP, node));
  await changeTo(b, confChange([learn(replicaOn(GROUP, away))]), confOf(left, [replicaOn(GROUP, away)]));
  await changeTo(b, confChange([remove(replicaOn(GROUP, away))]), confOf(left));
  expect(strangers).toEqual([]);
  b.network.heal();
  await b.until('it is heard', () => strangers.length > 0);
  expect(strangers[0]).toEqual({ replicaId: replicaOn(GROUP, away), node: away });
});
