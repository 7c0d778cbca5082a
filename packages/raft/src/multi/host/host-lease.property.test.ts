/**
 * Leases against elections, on hosts whose clocks run at different rates (within the bound), whose processes are
 * paused, machines suspended, links cut and slow, which restart and hand over, and whose members come and go. After
 * every millisecond:
 *
 * Z1. While a node holds a lease, nobody else leads a newer term: nothing newer can have been committed.
 * Z2. A read under the lease shows everything that was committed anywhere when it came.
 */
import { assert, type Random, SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { HostBed, replicaOn } from '../../../test/support/host/host-bed.ts';
import { type ConfStep, confChange, LEAVE_JOINT } from '../../core/membership/conf-change.ts';

const GROUP = 2;
const SEEDS = Array.from({ length: 40 }, (_, i) => 1 + i);
const CHANGING_SEEDS = SEEDS.slice(0, 15);
const EPISODES = 50;
/** The rates of any two clocks differ by less than the 5 % that the options allow for. */
const RATES = [0.976, 1, 1.024];

const OPTIONS = {
  tickMs: 10,
  electionTicks: 10,
  heartbeatTicks: 2,
  catchUpTicksMax: 2,
  leaseReads: true,
};

/** Waits for a leader are often the shortest possible: what a lease leans on is the shortest one. */
class Hasty implements Random {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  int(bound: number): number {
    const drawn = this.#random.int(bound);
    return bound === OPTIONS.electionTicks && this.#random.int(2) === 0 ? 0 : drawn;
  }

  bytes(length: number): Buffer {
    return this.#random.bytes(length);
  }
}

class LeaseBed {
  readonly bed: HostBed;
  readonly #nodes: readonly number[];
  /** Virtual milliseconds in which somebody held a lease, and reads that it served. */
  leasedMs = 0;
  leasedReads = 0;
  elections = 0;
  /** Membership changes proposed. */
  changes = 0;
  #maxTerm = 0;

  constructor(seed: number, given: { readonly nodes: number; readonly voters: number }) {
    this.#nodes = Array.from({ length: given.nodes }, (_, i) => 1 + i);
    this.bed = new HostBed({
      seed,
      options: OPTIONS,
      faults: { delayMs: 1, jitterMs: 3 },
      extra: { random: new Hasty(new SeededRandom(seed)) },
      rateOf: (node) => RATES[(node + seed) % RATES.length] ?? 1,
    });
    for (const id of this.#nodes) this.bed.start(id);
    this.bed.addGroup(GROUP, this.#nodes, this.#nodes.slice(0, given.voters));
  }

  run(ms: number): void {
    for (let i = 0; i < ms; i++) {
      this.bed.clock.advance(1);
      this.check();
    }
  }

  get leased(): boolean {
    return this.#nodes.some((id) => this.bed.group(id, GROUP).hasLease());
  }

  check(): void {
    const { bed } = this;
    for (const id of this.#nodes) {
      const group = bed.group(id, GROUP);
      if (group.term > this.#maxTerm && group.role === 'leader') {
        this.#maxTerm = group.term;
        this.elections++;
      }
      if (bed.node(id).clock.paused || !group.hasLease()) continue;
      this.leasedMs++;
      for (const other of this.#nodes) {
        const rival = bed.group(other, GROUP);
        const deposed = rival.role === 'leader' && rival.term > group.term;
        assert(
          !deposed,
          `Z1: node ${other} leads term ${rival.term} while node ${id} holds the lease of ${group.term}`,
        );
      }
      this.#read(id);
    }
  }

  #read(id: number): void {
    const committed = Math.max(...this.#nodes.map((node) => this.bed.group(node, GROUP).status().commit));
    this.bed.group(id, GROUP).leaseRead((refused) => {
      if (refused !== undefined) return;
      this.leasedReads++;
      assert(this.bed.counter(id, GROUP).applied.index >= committed, 'Z2: a read under a lease is current');
    });
  }

  misfortune(): void {
    const { random, network } = this.bed;
    const leader = this.bed.leaderOf(GROUP) ?? 1;
    const others = this.#nodes.filter((id) => id !== leader);
    const from = random.int(2) * (others.length - 1);
    const [first = 1, second = 1] = [others[from], others[others.length - 1 - from]];
    const victim = 1 + random.int(this.#nodes.length);
    switch (random.int(10)) {
      case 0:
        return network.partition(others, [leader]);
      case 1:
        return this.#mute(leader, [first]);
      case 2: // it hears answers for a while and reaches nobody: a lease must not count from when they come
        for (const id of [first, second]) network.setLink({ from: id, to: leader }, { delayMs: random.int(90) });
        this.bed.clock.setTimer(random.int(60), () => this.#mute(leader, [first, second]));
        return;
      case 3: // who promised restarts again and again, while another wants to lead
        this.#mute(leader, [first]);
        for (let ms = 10; ms < 250; ms += 10 + random.int(40)) this.bed.clock.setTimer(ms, () => this.#restart(second));
        return;
      case 4: // followers that make up for ticks right after a heartbeat, the last that they hear
        for (const id of [first, second]) this.#stopFor(id, 15 + random.int(20), 'pause');
        this.bed.clock.setTimer(10 + random.int(10), () => this.#mute(leader, [first, second]));
        return;
      case 5:
        return this.#stopFor(victim, 1 + random.int(150), 'pause');
      case 6: // time that it does not see, while nobody hears it
        this.#mute(leader, [first, second]);
        return this.#stopFor(leader, 50 + random.int(150), 'suspend');
      case 7:
        this.bed.group(leader, GROUP).transferLeader(replicaOn(GROUP, first));
        if (random.int(2) === 0) network.setLink({ from: first, to: leader }, { blocked: true });
        return;
      case 8:
        return this.#restart(victim);
      default:
        this.bed.group(leader, GROUP).propose(Buffer.from('x'));
    }
  }

  /** One to three steps, or the end of a joint configuration; refused where it is not possible. */
  change(): void {
    const { random } = this.bed;
    const group = this.bed.group(this.bed.leaderOf(GROUP) ?? 1, GROUP);
    if (random.int(4) === 0) {
      group.proposeConf(LEAVE_JOINT);
      return;
    }
    const steps = Array.from({ length: 1 + random.int(3) }, (): ConfStep => {
      const type = (['addVoter', 'addVoter', 'addLearner', 'remove'] as const)[random.int(4)] ?? 'remove';
      return { type, replica: replicaOn(GROUP, 1 + random.int(this.#nodes.length)) };
    });
    const transition = (['auto', 'auto', 'jointAuto', 'joint'] as const)[random.int(4)] ?? 'auto';
    if (!('refused' in group.proposeConf(confChange(steps, transition)))) this.changes++;
  }

  /** Silently: nobody is told that the link is down. */
  #mute(leader: number, towards: readonly number[]): void {
    for (const to of towards) this.bed.network.setLink({ from: leader, to }, { dropPerMille: 1000 });
  }

  #stopFor(id: number, ms: number, how: 'pause' | 'suspend'): void {
    const { clock } = this.bed.node(id);
    if (how === 'pause') clock.pause();
    else clock.suspend();
    this.bed.clock.setTimer(ms, () => {
      clock.resume();
      this.check(); // the first thing that it does
    });
  }

  #restart(id: number): void {
    const node = this.bed.node(id);
    if (node.clock.paused) return;
    node.log.crash();
    void node.host.stop();
    this.bed.start(id);
  }
}

test.each(SEEDS)(
  'no lease holds while another leads a newer term, and reads under it are current (seed %i)',
  (seed) => {
    const world = new LeaseBed(seed, { nodes: 3, voters: 3 });
    const { random } = world.bed;
    for (let episode = 0; episode < EPISODES; episode++) {
      world.bed.network.heal();
      for (let ms = 0; ms < 500 && !world.leased; ms++) world.run(1);
      world.run(random.int(25));
      world.misfortune();
      if (random.int(4) === 0) world.misfortune();
      world.run(250);
    }
    expect(world.bed.fatal()).toEqual([]);
    // What is checked did happen.
    expect(world.leasedMs).toBeGreaterThan(10 * EPISODES);
    expect(world.leasedReads).toBeGreaterThan(100);
    expect(world.elections).toBeGreaterThan(EPISODES / 4);
  },
);

test.each(CHANGING_SEEDS)('nor while members come and go (seed %i)', (seed) => {
  const world = new LeaseBed(seed, { nodes: 5, voters: 1 + (seed % 3) });
  const { random } = world.bed;
  for (let episode = 0; episode < EPISODES; episode++) {
    world.bed.network.heal();
    for (let ms = 0; ms < 500 && !world.leased; ms++) world.run(1);
    world.change();
    world.run(random.int(25));
    world.misfortune();
    world.run(random.int(12));
    if (random.int(2) === 0) world.change();
    else world.misfortune();
    world.run(200);
  }
  expect(world.bed.fatal()).toEqual([]);
  expect(world.leasedMs).toBeGreaterThan(5 * EPISODES);
  expect(world.changes).toBeGreaterThan(10);
});
