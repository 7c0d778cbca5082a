import { describe, expect, test } from 'vitest';
import {
  ack,
  append,
  ELECTION_TICKS,
  entries,
  HEARTBEAT_TICKS,
  heartbeat,
  type KitOptions,
  makeCore,
  makeLeader,
  ofType,
  propose,
  run,
  take,
  tick,
} from '../../test/support/core/core-kit.ts';
import { leaseLengthMs } from './lease.ts';
import { confOf, EMPTY_CONF } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';
import type { Message, Moment } from './types.ts';

const LEASE_MS = 100;
const at = (ms: number, wallMs = 1_000_000 + ms): Moment => ({ monotonicMs: ms, wallMs });

function leader(options: KitOptions & { silent?: readonly number[] } = {}): RaftCore {
  return makeLeader({ ...options, config: { leaseMs: LEASE_MS, ...options.config } });
}

/** Sends a round of heartbeats at `ms`; returns its number. */
function roundAt(core: RaftCore, ms: number): number {
  run(core);
  for (let i = 0; i < HEARTBEAT_TICKS; i++) core.tick(at(ms));
  return ofType(run(core), 'heartbeat')[0]?.readContext ?? 0;
}

function answer(core: RaftCore, from: number, round: number): void {
  const { id: to, term, commit } = core;
  core.step({ type: 'heartbeatResponse', from, to, term, commit, readContext: round });
}

/** A leader whose round of heartbeats at 1000 ms was answered by 2. */
function leased(options: Parameters<typeof leader>[0] = {}): RaftCore {
  const core = leader(options);
  answer(core, 2, roundAt(core, 1000));
  return core;
}

describe('the lease of a leader', () => {
  test('counts from the send time of the heartbeats that a quorum answered, not from when answers came', () => {
    const core = leader();
    const round = roundAt(core, 1000);
    expect(core.hasLease(at(1000))).toBe(false);
    core.tick(at(1080));
    answer(core, 2, round);
    expect(core.hasLease(at(1099))).toBe(true);
    expect(core.hasLease(at(1100))).toBe(false);
  });

  test('is prolonged by each newer round, and not shortened by a late answer to an older one', () => {
    const core = leader();
    const older = roundAt(core, 1000);
    const newer = roundAt(core, 1060);
    answer(core, 2, newer);
    answer(core, 2, older);
    expect(core.hasLease(at(1159))).toBe(true);
    answer(core, 3, 999); // a round that nobody sent
    expect(core.hasLease(at(1160))).toBe(false);
  });

  test('counts from merged heartbeats too, while the follower is steady', () => {
    const core = leader();
    const follower = core.steadyFollowers().find(({ replica }) => replica === 2);
    core.heartbeatAnsweredBy(2, follower?.epoch ?? 0, at(1000));
    expect(core.hasLease(at(1099))).toBe(true);
    core.heartbeatRefusedBy(2, follower?.epoch ?? 0);
    expect(core.hasLease(at(1099))).toBe(false);
    core.heartbeatAnsweredBy(2, follower?.epoch ?? 0, at(1050));
    expect(core.hasLease(at(1099))).toBe(false);
  });

  test('does not count followers that may not have its term on disk: their restart could pass unnoticed', () => {
    const core = leader({ voters: [1, 2, 3, 4, 5], silent: [4, 5] });
    const round = roundAt(core, 1000);
    answer(core, 2, round);
    answer(core, 4, round);
    answer(core, 5, round);
    expect(core.hasLease(at(1001))).toBe(false);
    ack(core, 4);
    answer(core, 4, roundAt(core, 1010));
    expect(core.hasLease(at(1011))).toBe(true);
  });

  test('needs a quorum of the present configuration: no learners, both halves of a joint one', () => {
    const core = leader({ learners: [4] });
    const round = roundAt(core, 1000);
    answer(core, 4, round);
    expect(core.hasLease(at(1001))).toBe(false);
    answer(core, 2, round);
    expect(core.hasLease(at(1001))).toBe(true);
    core.applyConf({ ...EMPTY_CONF, voters: [1, 2, 3], votersOutgoing: [1, 4, 5] });
    expect(core.hasLease(at(1001))).toBe(true); // 4 had answered
    core.applyConf({ ...EMPTY_CONF, voters: [1, 5, 6], votersOutgoing: [1, 2, 3] });
    expect(core.hasLease(at(1001))).toBe(false);
    core.applyConf({ ...EMPTY_CONF, voters: [1, 2, 3], votersOutgoing: [1, 5, 6] });
    expect(core.hasLease(at(1001))).toBe(false);
    core.applyConf(confOf([1]));
    expect(core.hasLease(at(1001))).toBe(true);
  });

  test('needs an applied entry of the own term', () => {
    const core = makeLeader({ config: { leaseMs: LEASE_MS }, silent: [2, 3] });
    ack(core, 2);
    const [, entry] = [take(core), core.commit];
    core.tick(at(1000));
    core.readIndex(1);
    const round = ofType(take(core).messages, 'heartbeat')[0]?.readContext ?? 0;
    answer(core, 2, round);
    expect(core.hasLease(at(1001))).toBe(false);
    core.appliedTo(entry);
    expect(core.hasLease(at(1001))).toBe(true);
  });

  test('ends when TimeoutNow is sent, for the whole term, even if the transfer fails', () => {
    const core = leased();
    expect(core.hasLease(at(1001))).toBe(true);
    core.transferLeader(3);
    expect(core.hasLease(at(1001))).toBe(false);
    for (let i = 0; i < ELECTION_TICKS; i++) {
      answer(core, 2, roundAt(core, 2000 + i));
    }
    expect(core.status().transferee).toBe(0); // given up
    expect(core.role).toBe('leader');
    expect(core.hasLease(at(2001 + ELECTION_TICKS))).toBe(false);
  });

  test('goes on while a transfer only waits for its target to catch up', () => {
    const core = leased();
    propose(core, 'x');
    core.transferLeader(3);
    expect(core.hasLease(at(1001))).toBe(true);
  });

  test('is used up by wall time that ran ahead of monotonic time: the machine was suspended', () => {
    const core = leased();
    expect(core.hasLease(at(1010, 1_001_010))).toBe(true);
    expect(core.hasLease(at(1010, 1_001_100))).toBe(false);
    expect(core.hasLease(at(1010, 900_000))).toBe(true); // set back: the monotonic clock decides
  });

  test('is void after a stall, until a round that was sent later is answered', () => {
    const core = leased();
    const before = roundAt(core, 1020);
    core.voidLease(1030);
    answer(core, 2, before);
    expect(core.hasLease(at(1031))).toBe(false);
    answer(core, 2, roundAt(core, 1030));
    expect(core.hasLease(at(1031))).toBe(false);
    answer(core, 2, roundAt(core, 1031));
    expect(core.hasLease(at(1032))).toBe(true);
  });

  test('ends with the leadership, and is not inherited by a later term', () => {
    const core = leased();
    heartbeat(core, 3, 9);
    expect(core.hasLease(at(1001))).toBe(false);
  });

  test.each([
    { name: 'is not configured', config: {} },
    { name: 'has no length', config: { leaseMs: 0 } },
    { name: 'lacks CheckQuorum: nobody sticks to the leader', config: { leaseMs: LEASE_MS, checkQuorum: false } },
  ])('there is none if it $name', ({ config }) => {
    const core = makeLeader({ config });
    core.readIndex(1);
    answer(core, 2, roundAt(core, 1000));
    expect(core.hasLease(at(1000))).toBe(false);
  });

  test('the leader of a single replica is its own quorum', () => {
    const core = leader({ voters: [1] });
    expect(core.hasLease(at(5))).toBe(true);
  });

  test('is shorter than an election timeout by the ticks that may be made up for, the first tick, and the drift', () => {
    const given = { electionTicks: 18, tickMs: 25, aheadTicksMax: 4, driftPercent: 5 };
    expect(leaseLengthMs(given)).toBe(308); // 13 ticks less 5 %
    expect(leaseLengthMs({ ...given, electionTicks: 5 })).toBe(0);
  });
});

describe('the promise behind a lease', () => {
  const voteFor = (core: RaftCore, from: number, term: number, force = false): Message[] => {
    core.step({ type: 'vote', from, to: core.id, term, lastIndex: 50, lastTerm: 50, force });
    return run(core);
  };
  const granted = (messages: readonly Message[]) => ofType(messages, 'voteResponse').some((m) => !m.reject);
  const preVoteFor = (core: RaftCore, from: number, term: number): boolean => {
    core.step({ type: 'preVote', from, to: core.id, term, lastIndex: 50, lastTerm: 50 });
    return ofType(run(core), 'preVoteResponse').some((m) => !m.reject);
  };

  test.each<{ name: string; message: (term: number) => Message }>([
    {
      name: 'a refused pre-vote of long ago',
      message: (term) => ({ type: 'preVoteResponse', from: 3, to: 1, term, reject: true }),
    },
    {
      name: 'a refused vote of long ago',
      message: (term) => ({ type: 'voteResponse', from: 3, to: 1, term, reject: true }),
    },
  ])('holds although $name brings a newer term, in which another asks for a vote', ({ message }) => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    run(core);
    core.step(message(5));
    expect(core.term).toBe(5);
    expect(granted(voteFor(core, 3, 5))).toBe(false);
    expect(granted(voteFor(core, 3, 6))).toBe(false);
    expect(preVoteFor(core, 3, 7)).toBe(false);
    tick(core, ELECTION_TICKS - 1);
    expect(granted(voteFor(core, 3, 6))).toBe(false);
    core.tick();
    expect(granted(voteFor(core, 3, 6))).toBe(true);
  });

  test('does not bind against a vote that the leader itself asked for', () => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    run(core);
    expect(granted(voteFor(core, 3, 2, true))).toBe(true);
  });

  test('is renewed by merged heartbeats and by appends', () => {
    for (const renew of [
      (core: RaftCore) => void core.heartbeatFrom(2),
      (core: RaftCore) => append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) }),
    ]) {
      const core = makeCore();
      heartbeat(core, 2, 1);
      run(core);
      tick(core, ELECTION_TICKS - 1);
      renew(core);
      run(core);
      tick(core, ELECTION_TICKS - 1);
      expect(preVoteFor(core, 3, 2)).toBe(false);
      expect(granted(voteFor(core, 3, 2))).toBe(false);
    }
  });

  test('is kept by a restarted replica for a full election timeout: no vote, no pre-vote, no campaign of its own', () => {
    const core = makeCore({
      hardState: { term: 1, vote: 2, commit: 0 },
      restarted: true,
      firstWaitTicks: 2, // no short first wait after a restart
    });
    for (let i = 0; i < ELECTION_TICKS - 1; i++) {
      core.tick();
      expect(core.role).toBe('follower');
      expect(preVoteFor(core, 3, 2)).toBe(false);
      expect(granted(voteFor(core, 3, 2))).toBe(false);
    }
    core.tick();
    expect(preVoteFor(core, 3, 2)).toBe(true);
  });
});
