import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  HEARTBEAT_TICKS,
  heartbeat,
  makeCore,
  makeLeader,
  ofType,
  run,
  take,
  tick,
} from '../../test/support/core/core-kit.ts';
import { confOf, EMPTY_CONF } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';

describe('ReadIndex', () => {
  const statesOf = (core: RaftCore) => take(core).readies.flatMap((r) => r.readStates);
  const roundOf = (core: RaftCore) => ofType(run(core), 'heartbeat')[0]?.readContext ?? 0;

  test('starts a round at once and is confirmed by a quorum', () => {
    const core = makeLeader();
    expect(core.readIndex(5)).toBeUndefined();
    const round = roundOf(core);
    expect(round).toBeGreaterThan(0);
    expect(statesOf(core)).toEqual([]);
    answerHeartbeat(core, 2, round);
    expect(statesOf(core)).toEqual([{ context: 5, index: 1 }]);
  });

  test('an answer from an earlier round confirms nothing newer', () => {
    const core = makeLeader();
    core.readIndex(1);
    const early = roundOf(core);
    core.readIndex(2);
    const late = roundOf(core);
    answerHeartbeat(core, 2, early);
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
    answerHeartbeat(core, 3, early);
    expect(statesOf(core)).toEqual([]);
    answerHeartbeat(core, 3, late);
    expect(statesOf(core)).toEqual([{ context: 2, index: 1 }]);
  });

  test('a later round confirms the earlier ones too, and a lost round is repeated with a new number', () => {
    const core = makeLeader();
    core.readIndex(1);
    core.readIndex(2);
    const lost = ofType(run(core), 'heartbeat').at(-1)?.readContext ?? 0;
    tick(core, HEARTBEAT_TICKS);
    const again = roundOf(core);
    expect(again).toBeGreaterThan(lost);
    answerHeartbeat(core, 2, again);
    expect(statesOf(core).map((s) => s.context)).toEqual([1, 2]);
  });

  test('a learner confirms nothing, a joint configuration needs both majorities', () => {
    const core = makeLeader({ learners: [4] });
    core.readIndex(1);
    const round = roundOf(core);
    answerHeartbeat(core, 4, round);
    expect(statesOf(core)).toEqual([]);
    core.applyConf({ ...EMPTY_CONF, voters: [1, 2, 3], votersOutgoing: [1, 4, 5] });
    expect(statesOf(core)).toEqual([]);
    answerHeartbeat(core, 2, round);
    expect(statesOf(core).length).toBe(1); // 4 had answered
  });

  test('a smaller quorum confirms what was waiting', () => {
    const core = makeLeader();
    core.readIndex(1);
    run(core);
    core.applyConf(confOf([1]));
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
  });

  test('waits until an entry of the own term is committed', () => {
    const core = makeLeader({ silent: [2, 3] });
    expect(core.readIndex(1)).toBeUndefined();
    expect(ofType(run(core), 'heartbeat')).toEqual([]);
    ack(core, 2);
    const round = roundOf(core);
    answerHeartbeat(core, 2, round);
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
  });

  test('a single replica confirms itself', () => {
    const core = makeLeader({ voters: [1] });
    core.readIndex(1);
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
  });

  test('is dropped with the leadership, waiting or under way', () => {
    for (const silent of [[], [2, 3]]) {
      const core = makeLeader({ silent });
      core.readIndex(1);
      core.readIndex(2);
      heartbeat(core, 3, 9);
      expect(take(core).readies.flatMap((r) => r.readsDropped)).toEqual([1, 2]);
    }
  });

  test('is refused by others than the leader, and contexts must grow', () => {
    expect(makeCore().readIndex(1)).toBe('notLeader');
    const core = makeLeader();
    core.readIndex(3);
    expect(() => core.readIndex(3)).toThrow('contexts grow');
  });
});
