// The leader's lease: every condition of design §4 ▸, and trap 6.
import { CLOCK_DRIFT_PERCENT } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { confOf } from '../../src/core/membership/membership.ts';
import type { RaftCore } from '../../src/core/raft.ts';
import { LeaseClock } from '../../src/multi/host/clock/lease-clock.ts';
import { HOST_DEFAULTS, leaseLengthOf } from '../../src/multi/host/options.ts';
import { ack, answerHeartbeat, HEARTBEAT_TICKS, makeLeader, ofType, run, take } from '../support/core/core-kit.ts';
import { HostBed } from '../support/host/host-bed.ts';

const LEASE_MS = 100;
const at = (monotonicMs: number, wallMs = monotonicMs) => ({ monotonicMs, wallMs });

function leader(options: Parameters<typeof makeLeader>[0] = {}): RaftCore {
  return makeLeader({ ...options, config: { leaseMs: LEASE_MS, ...options.config } });
}

/** Sends a round of heartbeats at `ms`; returns its number. */
function beatAt(core: RaftCore, ms: number): number {
  run(core);
  for (let i = 0; i < HEARTBEAT_TICKS; i++) core.tick(at(ms));
  return ofType(run(core), 'heartbeat').at(-1)?.readContext ?? 0;
}

describe('a lease', () => {
  test('trap 6: counts from the send time of the heartbeat that was answered, not from the answer', () => {
    const core = leader();
    const round = beatAt(core, 0);
    expect(core.hasLease(at(0))).toBe(false);
    core.tick(at(90));
    answerHeartbeat(core, 2, round);
    expect(core.hasLease(at(99))).toBe(true);
    expect(core.hasLease(at(100))).toBe(false);
  });

  test('design §4 ▸: is none in a term in which TimeoutNow was sent, even if the transfer fails', () => {
    const core = leader();
    answerHeartbeat(core, 2, beatAt(core, 0));
    expect(core.hasLease(at(1))).toBe(true);
    core.transferLeader(2);
    for (let i = 0; i < 12; i++) core.tick(at(10));
    expect(core.status().transferee).toBe(0); // given up
    answerHeartbeat(core, 2, beatAt(core, 20));
    answerHeartbeat(core, 3, beatAt(core, 20));
    expect([core.role, core.hasLease(at(21))]).toEqual(['leader', false]);
  });

  test('design §4 ▸: is void when the wall clock ran ahead of the monotonic clock', () => {
    const core = leader();
    answerHeartbeat(core, 2, beatAt(core, 0));
    expect(core.hasLease(at(10, 10))).toBe(true);
    expect(core.hasLease(at(10, 100))).toBe(false);
  });

  test('design §4 ▸: is void after a stall, until a heartbeat that was sent later is answered', () => {
    const core = leader();
    answerHeartbeat(core, 2, beatAt(core, 0));
    const early = beatAt(core, 5);
    core.voidLease(10);
    answerHeartbeat(core, 2, early);
    expect(core.hasLease(at(11))).toBe(false);
    answerHeartbeat(core, 2, beatAt(core, 11));
    expect(core.hasLease(at(12))).toBe(true);
  });

  test('design §4 ▸: needs an applied entry of the own term', () => {
    const core = leader({ silent: [2, 3] });
    ack(core, 2);
    const { committed } = take(core);
    expect(committed).toHaveLength(1);
    for (let i = 0; i < HEARTBEAT_TICKS; i++) core.tick(at(0));
    const [beat] = ofType(take(core).messages, 'heartbeat');
    answerHeartbeat(core, 2, beat?.readContext);
    expect(core.hasLease(at(1))).toBe(false);
    core.appliedTo(1);
    expect(core.hasLease(at(1))).toBe(true);
  });

  test('design §4: needs a quorum of the present configuration', () => {
    const core = leader();
    answerHeartbeat(core, 2, beatAt(core, 0));
    expect(core.hasLease(at(1))).toBe(true);
    core.applyConf({ ...confOf([1, 4, 5]), votersOutgoing: [1, 2, 3] });
    expect(core.hasLease(at(1))).toBe(false);
  });

  test('design §4: needs CheckQuorum, on which the promise of the followers rests', () => {
    const core = leader({ config: { checkQuorum: false } });
    answerHeartbeat(core, 2, beatAt(core, 0));
    expect(core.hasLease(at(1))).toBe(false);
  });

  test('design §4: is shorter than the promise by what clocks may drift and ticks may run ahead', () => {
    const { electionTicks, tickMs, catchUpTicksMax } = HOST_DEFAULTS;
    const [slow, fast] = [1 - CLOCK_DRIFT_PERCENT / 100, 1 + CLOCK_DRIFT_PERCENT / 100];
    const promiseMs = ((electionTicks - catchUpTicksMax - 1) * tickMs) / fast;
    expect(leaseLengthOf({ ...HOST_DEFAULTS, leaseReads: true }) / slow).toBeLessThan(promiseMs);
  });
});

describe('the host', () => {
  test('design §4 ▸: work under the lease waits until what was committed at its arrival is applied', async () => {
    const bed = new HostBed({ seed: 1, options: { leaseReads: true } });
    for (const id of [1, 2, 3]) bed.start(id);
    bed.addGroup(2, [1, 2, 3]);
    const id = await bed.leader(2);
    await bed.run(300);
    const counter = bed.counter(id, 2);
    let open: () => void = () => undefined;
    counter.gate = new Promise((resolve) => {
      open = resolve;
    });
    bed.group(id, 2).propose(Buffer.from('a')); // takes its time to be applied
    await bed.run(20);
    bed.group(id, 2).propose(Buffer.from('b'));
    await bed.run(20);
    const { commit } = bed.group(id, 2).status();
    let appliedThen = -1;
    bed.group(id, 2).leaseRead(() => {
      appliedThen = counter.applied.index;
    });
    expect(bed.group(id, 2).hasLease()).toBe(true);
    expect(appliedThen).toBe(-1);
    counter.gate = undefined;
    open();
    await bed.run(5);
    expect(appliedThen).toBe(commit);
    expect(bed.fatal()).toEqual([]);
  });

  test('trap 6: the first use of a lease after an event-loop stall finds it void', () => {
    const bed = new HostBed({ seed: 1 });
    const voided: number[] = [];
    const leases = new LeaseClock({ clock: bed.clock, stallMs: 100, voided: (nowMs) => voided.push(nowMs) });
    leases.ticked(leases.now());
    bed.clock.advance(101);
    leases.now();
    expect(voided).toHaveLength(1);
  });
});
