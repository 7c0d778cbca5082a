import { describe, expect, test } from 'vitest';
import {
  ack,
  ELECTION_TICKS,
  HEARTBEAT_TICKS,
  heartbeat,
  makeLeader,
  ofType,
  progressOf,
  propose,
  run,
  tick,
} from '../../test/support/core/core-kit.ts';
import { confOf } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';

const steady = (core: RaftCore) => core.steadyFollowers().map(({ replica }) => replica);
const epochOf = (core: RaftCore, replica: number) =>
  core.steadyFollowers().find((follower) => follower.replica === replica)?.epoch ?? 0;
const beatsOf = (core: RaftCore) => {
  run(core);
  tick(core, HEARTBEAT_TICKS);
  return ofType(run(core), 'heartbeat').map(({ to }) => to);
};

describe('merged heartbeats', () => {
  test('a follower is steady once it has acknowledged an append in the current term', () => {
    const core = makeLeader({ silent: [3] });
    expect(steady(core)).toEqual([2]);
    const { steadyVersion } = core;
    ack(core, 3);
    expect(steady(core)).toEqual([2, 3]);
    expect(core.steadyVersion).toBeGreaterThan(steadyVersion);
  });

  test('the core leaves out the heartbeats that the host has taken over, and takes them back with the steadiness', () => {
    const core = makeLeader();
    expect(beatsOf(core)).toEqual([2, 3]);
    core.mergeHeartbeats(2, epochOf(core, 2), true);
    expect(beatsOf(core)).toEqual([3]);
    core.reportUnreachable(2);
    expect(steady(core)).toEqual([3]);
    expect(beatsOf(core)).toEqual([2, 3]);
    ack(core, 2);
    expect(beatsOf(core)).toEqual([2, 3]); // steady again, but nobody has taken it over since
  });

  test('reads under way still send full heartbeats to all', () => {
    const core = makeLeader();
    core.mergeHeartbeats(2, epochOf(core, 2), true);
    core.readIndex(1);
    expect(beatsOf(core)).toEqual([2, 3]);
  });

  test('a leader with nothing to do is due for its quorum check only, until the next input; its rhythm goes on', () => {
    const time = { ticks: 0, now: undefined };
    const core = makeLeader({ config: { time } });
    for (const { replica, epoch } of core.steadyFollowers()) {
      core.mergeHeartbeats(replica, epoch, true);
      ack(core, replica);
    }
    const asked: number[] = [];
    const pass = (ticks: number) => {
      for (let i = 0; i < ticks; i++) {
        for (const { replica, epoch } of core.steadyFollowers()) core.heartbeatAnsweredBy(replica, epoch);
        if (++time.ticks < core.dueTick) continue;
        asked.push(time.ticks);
        core.elapsed();
      }
    };
    pass(3 * HEARTBEAT_TICKS); // beats that settle
    asked.length = 0;
    pass(ELECTION_TICKS);
    expect(asked).toHaveLength(1);
    propose(core, 'x');
    pass(1);
    expect(asked.at(-1)).toBe(time.ticks);
    run(core);
    ack(core, 3);
    pass(2 * HEARTBEAT_TICKS);
    expect(ofType(run(core), 'append').map(({ to }) => to)).toContain(2); // its answer was lost: it is stirred up
  });

  test('answers of a stretch of steadiness that is over count for nothing', () => {
    const core = makeLeader({ silent: [3] });
    const before = epochOf(core, 2);
    core.reportUnreachable(2);
    ack(core, 2);
    tick(core, ELECTION_TICKS); // forgets who was heard
    core.heartbeatAnsweredBy(2, before);
    expect(progressOf(core, 2)?.active).toBe(false);
    core.heartbeatRefusedBy(2, before);
    expect(steady(core)).toEqual([2]);
    core.heartbeatAnsweredBy(2, epochOf(core, 2));
    expect(progressOf(core, 2)?.active).toBe(true);
  });

  test('answers keep a leader up like those to full heartbeats, and without them it steps down', () => {
    const core = makeLeader();
    for (let i = 0; i < 5 * ELECTION_TICKS; i++) {
      core.tick();
      core.heartbeatAnsweredBy(2, epochOf(core, 2));
    }
    expect(core.role).toBe('leader');
    tick(core, 2 * ELECTION_TICKS);
    expect(core.role).toBe('follower');
  });

  test('a refusal is answered with a full heartbeat at once, and the follower has to become steady again', () => {
    const core = makeLeader();
    run(core);
    core.mergeHeartbeats(2, epochOf(core, 2), true);
    core.heartbeatRefusedBy(2, epochOf(core, 2));
    expect(ofType(run(core), 'heartbeat').map(({ to }) => to)).toEqual([2]);
    expect(steady(core)).toEqual([3]);
    expect(progressOf(core, 2)?.state).toBe('probe');
  });

  test('epochs are never used twice, over terms and memberships', () => {
    const core = makeLeader();
    const first = epochOf(core, 2);
    const { steadyVersion } = core;
    core.applyConf(confOf([1, 3]));
    expect(steady(core)).toEqual([3]);
    expect(core.steadyVersion).toBeGreaterThan(steadyVersion);
    core.applyConf(confOf([1, 2, 3]));
    ack(core, 2);
    expect(epochOf(core, 2)).toBeGreaterThan(first);
    const last = core.steadyVersion;
    heartbeat(core, 3, 9);
    expect(steady(core)).toEqual([]);
    expect(core.steadyVersion).toBeGreaterThan(last);
  });
});
