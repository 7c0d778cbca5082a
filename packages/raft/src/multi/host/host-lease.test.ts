import { ManualClock } from '@remora/base/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { HostBed, replicaOn } from '../../../test/support/host/host-bed.ts';
import { LeaseClock } from './clock/lease-clock.ts';
import { HOST_DEFAULTS, hostOptions, leaseLengthOf } from './options.ts';

const GROUP = 2;
const NODES = [1, 2, 3];
const LEASE_MS = leaseLengthOf(HOST_DEFAULTS);

let bed: HostBed | undefined;
afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

async function leased(options = {}): Promise<{ b: HostBed; leader: number }> {
  const b = new HostBed({ seed: 1, options: { leaseReads: true, ...options } });
  bed = b;
  for (const id of NODES) b.start(id);
  b.addGroup(GROUP, NODES);
  const leader = await b.leader(GROUP);
  await b.run(300);
  return { b, leader };
}

function leaseRead(b: HostBed, id: number): { result: string | undefined; appliedThen: number } {
  const answer: { result: string | undefined; appliedThen: number } = { result: undefined, appliedThen: -1 };
  b.group(id, GROUP).leaseRead((refused) => {
    answer.result = refused ?? 'ok';
    answer.appliedThen = b.counter(id, GROUP).applied.index;
  });
  return answer;
}

const others = (node: number): number[] => NODES.filter((id) => id !== node);

describe('lease reads', () => {
  test('are answered at once, without a message, while the leader holds its lease', async () => {
    const { b, leader } = await leased();
    expect(b.group(leader, GROUP).hasLease()).toBe(true);
    const before = { ...b.node(leader).host.stats() };
    expect(leaseRead(b, leader).result).toBe('ok');
    await b.flush();
    const after = b.node(leader).host.stats();
    expect([after.messagesSent - before.messagesSent, after.readsLeased - before.readsLeased]).toEqual([0, 1]);
  });

  test('wait until what was committed when they came is applied, and are answered even if the lease ends meanwhile', async () => {
    const { b, leader } = await leased();
    let open: () => void = () => undefined;
    b.counter(leader, GROUP).gate = new Promise((resolve) => {
      open = resolve;
    });
    b.group(leader, GROUP).propose(Buffer.from('a')); // takes its time to be applied
    await b.run(20);
    b.group(leader, GROUP).propose(Buffer.from('b'));
    await b.run(20);
    const { commit, applied } = b.group(leader, GROUP).status();
    expect(applied).toBeLessThan(commit - 1);
    const read = leaseRead(b, leader);
    expect(read.result).toBeUndefined();
    b.network.partition(others(leader), [leader]);
    await b.run(2 * LEASE_MS);
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
    b.counter(leader, GROUP).gate = undefined;
    open();
    await b.run(5);
    expect(read).toEqual({ result: 'ok', appliedThen: commit });
  });

  test('fall back to a round of messages without a lease', async () => {
    const { b, leader } = await leased({ leaseReads: false });
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
    const read = leaseRead(b, leader);
    expect(read.result).toBeUndefined();
    await b.until('it is answered', () => read.result === 'ok', 50);
    expect(b.node(leader).host.stats().readsLeased).toBe(0);
  });

  test('of a follower are refused', async () => {
    const { b, leader } = await leased();
    const [follower = 0] = others(leader);
    expect(b.group(follower, GROUP).hasLease()).toBe(false);
    expect(leaseRead(b, follower).result).toBe('notLeader');
  });

  test('a leader that nobody hears loses its lease before anyone else is elected', async () => {
    const { b, leader } = await leased();
    b.network.partition(others(leader), [leader]);
    await b.run(LEASE_MS);
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
    expect(others(leader).some((id) => b.group(id, GROUP).role === 'leader')).toBe(false);
    expect(leaseRead(b, leader).result).toBeUndefined();
  });

  test('a leader that is handing over has no lease any more', async () => {
    const { b, leader } = await leased();
    b.group(leader, GROUP).transferLeader(replicaOn(GROUP, others(leader)[0] ?? 0));
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
  });

  test('a process that was stopped has no lease when it goes on, until a later round is answered', async () => {
    const { b, leader } = await leased();
    b.node(leader).clock.pause();
    await b.run(200); // shorter than the lease, longer than what is made up for
    b.node(leader).clock.resume();
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
    await b.run(400);
    expect(b.group(leader, GROUP).hasLease()).toBe(true);
  });

  test('a machine that was suspended has no lease when it goes on, although its monotonic clock stood still', async () => {
    const { b, leader } = await leased();
    b.node(leader).clock.suspend();
    await b.run(40);
    b.node(leader).clock.resume();
    expect(b.group(leader, GROUP).hasLease()).toBe(false);
    await b.run(400);
    expect(b.group(leader, GROUP).hasLease()).toBe(true);
  });

  test.each([{ checkQuorum: false }, { electionTicks: 9, catchUpTicksMax: 4 }])(
    'options that give no useful lease are refused: %o',
    (options) => {
      expect(() => hostOptions({ leaseReads: true, ...options })).toThrow('leaseReads needs');
    },
  );
});

describe('lease clock', () => {
  function reading() {
    const clock = new ManualClock();
    const voided: number[] = [];
    const leases = new LeaseClock({ clock, stallMs: 100, voided: (nowMs) => voided.push(nowMs) });
    const tick = () => leases.ticked(leases.now());
    return { clock, voided, leases, tick };
  }

  test('reads both clocks, and voids nothing while time passes as it should', () => {
    const { clock, voided, leases, tick } = reading();
    for (let i = 0; i < 10; i++) {
      clock.advance(100);
      expect(leases.now()).toEqual({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
      tick();
    }
    clock.jumpWall(-60_000);
    tick();
    expect(voided).toEqual([]);
  });

  test('voids leases when the wall clock ran ahead of the monotonic one', () => {
    const { clock, voided, leases } = reading();
    clock.advance(50);
    clock.jumpWall(11);
    leases.now();
    expect(voided).toEqual([50]);
    leases.now();
    expect(voided).toEqual([50]);
  });

  test('voids leases at the first use after a stall, not only at the first tick', () => {
    const { clock, voided, leases, tick } = reading();
    clock.advance(101);
    leases.now();
    expect(voided).toEqual([101]);
    tick();
    clock.advance(100);
    leases.now();
    expect(voided).toEqual([101, 101]); // the tick's own reading, and none since
  });
});
