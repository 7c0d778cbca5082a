import { afterEach, describe, expect, test } from 'vitest';
import { HostBed, replicaOn } from '../../../test/support/host/host-bed.ts';
import { confChange } from '../../core/membership/conf-change.ts';
import { HOST_DEFAULTS } from './options.ts';

const GROUP = 2;
const NODES = [1, 2, 3];

let bed: HostBed | undefined;

/** Three nodes with one group, whatever else a test adds. */
function three(given: Partial<ConstructorParameters<typeof HostBed>[0]> = {}): HostBed {
  const made = new HostBed({ seed: 1, ...given });
  for (const id of NODES) made.start(id);
  made.addGroup(GROUP, NODES);
  bed = made;
  return made;
}

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

/** Waits until the replicas on `nodes` have applied all that the leader has, and hold the same. */
async function converged(b: HostBed, groupId = GROUP, nodes = NODES): Promise<readonly string[]> {
  await b.until('all replicas have applied everything', () => {
    const leader = b.leaderOf(groupId);
    if (leader === undefined) return false;
    const { lastIndex } = b.group(leader, groupId).status();
    return nodes.every((id) => b.group(id, groupId).status().applied === lastIndex);
  });
  expect(new Set(nodes.map((id) => b.counter(id, groupId).history.join(' '))).size).toBe(1);
  return b.counter(nodes[0] ?? 0, groupId).history;
}

function others(leader: number): number[] {
  return NODES.filter((id) => id !== leader);
}

function readAt(b: HostBed, id: number, groupId = GROUP): { result: string | undefined; appliedThen: number } {
  const answer: { result: string | undefined; appliedThen: number } = { result: undefined, appliedThen: -1 };
  b.group(id, groupId).readIndex((refused) => {
    answer.result = refused ?? 'ok';
    answer.appliedThen = b.counter(id, groupId).applied.index;
  });
  return answer;
}

describe('an idle host', () => {
  test('wakes for its beats and for little else, and every tick is counted', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.run(2_000);
    const before = NODES.map((id) => ({ ...b.node(id).host.stats() }));
    await b.run(10_000);
    for (const [i, id] of NODES.entries()) {
      const [was, is] = [before[i] ?? expect.fail('no such node'), b.node(id).host.stats()];
      expect(is.ticks - was.ticks).toBeGreaterThanOrEqual(10_000 / HOST_DEFAULTS.tickMs - 14);
      // An input makes the ticks before it, so a follower counts one wake-up for each heartbeat, too.
      expect(is.wakeUps - was.wakeUps).toBeLessThanOrEqual(id === leader ? 230 : 145);
      if (id === leader) expect(is.heartbeatsSent - was.heartbeatsSent).toBeGreaterThanOrEqual(2 * 98);
    }
    expect(await b.leader(GROUP)).toBe(leader);
  });

  test('makes each tick when leases are read from: a pause would make them void', async () => {
    const b = three({ options: { leaseReads: true } });
    await b.leader(GROUP);
    await b.run(2_000);
    for (const id of NODES) {
      const { wakeUps, ticks } = b.node(id).host.stats();
      expect(wakeUps).toBe(ticks);
    }
  });
});

describe('replication', () => {
  test('three hosts elect one leader and apply what is proposed, in order, on all of them', async () => {
    const b = three();
    for (let i = 0; i < 20; i++) await b.write(GROUP, `w${i}`);
    expect(await converged(b)).toEqual(Array.from({ length: 20 }, (_, i) => `w${i}`));
    const leader = await b.leader(GROUP);
    for (const id of others(leader)) {
      expect(b.group(id, GROUP).role).toBe('follower');
      expect(b.group(id, GROUP).leader).toBe(replicaOn(GROUP, leader));
      expect(b.group(id, GROUP).propose(Buffer.from('x'))).toEqual({ refused: 'notLeader' });
    }
  });

  test('all proposals of one turn share one frame per peer and one log append', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.run(150); // after a heartbeat interval the next entries go to all
    const before = { ...b.node(leader).host.stats() };
    for (let i = 0; i < 50; i++) b.group(leader, GROUP).propose(Buffer.from(`p${i}`));
    await b.flush();
    const after = b.node(leader).host.stats();
    expect(after.appends - before.appends).toBe(1);
    expect(after.framesSent - before.framesSent).toBe(2);
    expect(await converged(b)).toHaveLength(50);
  });

  test('many groups share one append and one frame per peer and turn', async () => {
    const b = three();
    const groups = Array.from({ length: 40 }, (_, i) => 10 + i);
    for (const groupId of groups) b.addGroup(groupId, NODES);
    for (const groupId of groups) await b.leader(groupId);
    await b.run(200);
    const leader = 1;
    const led = groups.filter((groupId) => b.group(leader, groupId).role === 'leader');
    expect(led.length).toBeGreaterThan(3);
    const before = { ...b.node(leader).host.stats() };
    for (const groupId of led) b.group(leader, groupId).propose(Buffer.from('x'));
    await b.flush();
    const after = b.node(leader).host.stats();
    expect(after.appends - before.appends).toBe(1);
    expect(after.framesSent - before.framesSent).toBe(2);
    expect(after.messagesSent - before.messagesSent).toBe(2 * led.length);
    expect(b.node(leader).log.groupsPerAppend.at(-1)).toBe(led.length);
    for (const groupId of led) expect(await converged(b, groupId)).toEqual(['x']);
  });

  test('the outage after the death of a leader is about an election timeout', async () => {
    const outages: number[] = [];
    for (let seed = 1; seed <= 15; seed++) {
      const b = three({ seed });
      await b.write(GROUP, 'before');
      await b.run(seed * 7);
      const leader = await b.leader(GROUP);
      const diedMs = b.clock.monotonicMs();
      await b.crash(leader);
      b.nodes.delete(leader);
      await b.until('there is a new leader', () => b.leaderOf(GROUP) !== undefined);
      outages.push(b.clock.monotonicMs() - diedMs);
    }
    outages.sort((a, b) => a - b);
    expect(outages[7]).toBeLessThan(750);
    expect(outages.at(-1)).toBeLessThan(3000); // with split votes
  });

  test.each([1, 2, 3, 4, 5, 6])(
    'nothing acknowledged is lost under loss, repetition and reordering (seed %i)',
    async (seed) => {
      const b = three({
        seed,
        faults: { dropPerMille: 100, duplicatePerMille: 50, delayMs: 1, jitterMs: 20, reorder: true },
      });
      const written: string[] = [];
      for (let i = 0; i < 25; i++) {
        await b.write(GROUP, `w${i}`);
        written.push(`w${i}`);
      }
      b.network.heal();
      const history = await converged(b);
      // A write whose answer was lost may have been repeated by the test, but order and presence hold.
      expect([...new Set(history)]).toEqual(written);
    },
  );

  test('a leader in the minority steps down, and its uncommitted entries give way to the new leader', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const old = await b.leader(GROUP);
    b.network.partition([old], others(old));
    b.group(old, GROUP).propose(Buffer.from('lost'));
    await b.until('the majority has a leader', () => others(old).some((id) => b.group(id, GROUP).ready));
    const read = readAt(b, old);
    await b.until('the old one has stepped down', () => b.group(old, GROUP).role !== 'leader');
    await b.run(5);
    expect(read.result).toBe('notLeader');
    await b.write(GROUP, 'b');
    b.network.heal();
    expect(await converged(b)).toEqual(['a', 'b']);
  });

  test('leadership goes where it is transferred to', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const old = await b.leader(GROUP);
    const target = others(old)[0] ?? 0;
    expect(b.group(old, GROUP).transferLeader(replicaOn(GROUP, target))).toBeUndefined();
    await b.until('the target leads', () => b.leaderOf(GROUP) === target, 300);
  });
});

describe('applying', () => {
  test('roles are told between applies, in order, before entries of the new term', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const leader = await b.leader(GROUP);
    const roles = b.counter(leader, GROUP).roles;
    expect(roles.at(-1)).toMatchObject({ role: 'leader', term: b.group(leader, GROUP).term });
    for (let i = 1; i < roles.length; i++) {
      expect(roles[i]?.term).toBeGreaterThanOrEqual(roles[i - 1]?.term ?? 0);
    }
  });

  test('a state machine that waits holds up its own group only', async () => {
    const b = three();
    b.addGroup(3, NODES);
    const leader = await b.leader(GROUP);
    await b.leader(3);
    let open: () => void = () => undefined;
    b.counter(leader, GROUP).gate = new Promise((resolve) => {
      open = resolve;
    });
    b.group(leader, GROUP).propose(Buffer.from('a'));
    b.group(leader, GROUP).propose(Buffer.from('b'));
    await b.run(20);
    b.group(leader, GROUP).propose(Buffer.from('c'));
    const read = readAt(b, leader);
    await b.write(3, 'x');
    expect(b.group(leader, GROUP).status().commit).toBe(b.group(leader, GROUP).status().lastIndex);
    expect(b.counter(leader, GROUP).history).not.toContain('c');
    expect(read.result).toBeUndefined();
    b.counter(leader, GROUP).gate = undefined;
    open();
    await b.until('it goes on', () => b.counter(leader, GROUP).history.includes('c'));
    await b.run(5);
    expect(read.result).toBe('ok');
    expect(await converged(b)).toEqual(['a', 'b', 'c']);
  });

  test('an exception out of a state machine stops the host, and says so once', async () => {
    const b = three();
    await b.leader(GROUP);
    const counter = b.counter(2, GROUP);
    counter.apply = () => {
      throw new Error('broken');
    };
    await b.write(GROUP, 'a').catch(() => undefined);
    await b.until('it is reported', () => b.node(2).fatal.length > 0);
    await b.run(1000);
    expect(b.node(2).fatal).toEqual([new Error('broken')]);
    b.nodes.delete(2);
  });
});

describe('reads', () => {
  test('a read is answered after everything committed before it is applied', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const leader = await b.leader(GROUP);
    const committed = b.group(leader, GROUP).status().commit;
    const read = readAt(b, leader);
    expect(read.result).toBeUndefined();
    await b.until('it is answered', () => read.result !== undefined, 100);
    expect(read.result).toBe('ok');
    expect(read.appliedThen).toBeGreaterThanOrEqual(committed);
  });

  test('reads of one turn share a round', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.run(30);
    const before = b.node(leader).host.stats().messagesSent;
    const reads = Array.from({ length: 100 }, () => readAt(b, leader));
    await b.flush();
    expect(b.node(leader).host.stats().messagesSent - before).toBeLessThanOrEqual(2);
    await b.until('all are answered', () => reads.every((read) => read.result === 'ok'), 100);
  });

  test('followers refuse, and a queue that is full refuses', async () => {
    const b = three({ options: { pendingReadsMax: 3 } });
    const leader = await b.leader(GROUP);
    expect(readAt(b, others(leader)[0] ?? 0).result).toBe('notLeader');
    const reads = Array.from({ length: 5 }, () => readAt(b, leader));
    expect(reads.map((read) => read.result)).toEqual([undefined, undefined, undefined, 'queueFull', 'queueFull']);
  });
});

describe('restart', () => {
  test('a node comes back from its log with everything that was acknowledged', async () => {
    const b = three();
    for (let i = 0; i < 10; i++) await b.write(GROUP, `w${i}`);
    await converged(b);
    b.group(2, GROUP).checkpointed(b.counter(2, GROUP).checkpoint());
    for (let i = 10; i < 15; i++) await b.write(GROUP, `w${i}`);
    for (const id of NODES) await b.crash(id);
    for (const id of NODES) b.start(id);
    await b.write(GROUP, 'after');
    expect(await converged(b)).toEqual([...Array.from({ length: 15 }, (_, i) => `w${i}`), 'after']);
  });

  test.each([11, 12, 13, 14])('crashes at any moment lose nothing acknowledged (seed %i)', async (seed) => {
    const b = three({ seed });
    const written: string[] = [];
    for (let i = 0; i < 12; i++) {
      const text = `w${i}`;
      const writing = b.write(GROUP, text);
      const victim = 1 + b.random.int(3);
      await writing;
      written.push(text);
      const leader = await b.leader(GROUP);
      b.group(leader, GROUP).propose(Buffer.from(`maybe${i}`));
      await b.run(b.random.int(4));
      await b.crash(victim);
      b.start(victim);
    }
    const history = await converged(b);
    expect([...new Set(history)].filter((text) => text.startsWith('w'))).toEqual(written);
  });

  test('a log that ends before what is applied restarts there', async () => {
    const b = three();
    for (let i = 0; i < 5; i++) await b.write(GROUP, `w${i}`);
    await converged(b);
    const follower = others(await b.leader(GROUP))[0] ?? 0;
    b.counter(follower, GROUP).checkpoint();
    const state = b.node(follower).log.durable.get(GROUP);
    await b.crash(follower);
    if (state !== undefined) state.entries = state.entries.slice(0, 2);
    b.start(follower);
    await b.write(GROUP, 'after');
    expect(await converged(b)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4', 'after']);
    await b.crash(follower);
    b.start(follower);
    await b.write(GROUP, 'more');
    expect((await converged(b)).at(-1)).toBe('more');
  });
});

describe('snapshots', () => {
  const options = { tailEntries: 10, tailBytes: 1_000_000, snapshotHoldMs: 0 };

  async function lagging(b: HostBed, entries = 60): Promise<{ leader: number; behind: number }> {
    await b.write(GROUP, 'first');
    const leader = await b.leader(GROUP);
    const behind = others(leader)[0] ?? 0;
    b.network.partition(
      NODES.filter((id) => id !== behind),
      [behind],
    );
    for (let i = 0; i < entries; i++) await b.write(GROUP, `w${i}`);
    for (const id of NODES.filter((node) => node !== behind)) {
      b.group(id, GROUP).checkpointed(b.counter(id, GROUP).checkpoint());
    }
    return { leader: await b.leader(GROUP), behind };
  }

  test('a checkpoint compacts the log down to the tail kept for followers', async () => {
    const b = three({ options });
    const { leader } = await lagging(b);
    const { firstIndex, lastIndex } = b.group(leader, GROUP).status();
    expect(lastIndex - firstIndex).toBeGreaterThanOrEqual(options.tailEntries - 1);
    expect(lastIndex - firstIndex).toBeLessThan(options.tailEntries + 3);
    expect(b.node(leader).log.durable.get(GROUP)?.start.index).toBe(firstIndex - 1);
  });

  test('a checkpoint ahead of what the group knows to be applied compacts nothing yet', async () => {
    const b = three({ options: { ...options, tailEntries: 0, tailBytes: 0 } });
    const leader = await b.leader(GROUP);
    await b.write(GROUP, 'a');
    const { lastIndex, firstIndex, term } = b.group(leader, GROUP).status();
    b.group(leader, GROUP).checkpointed({ index: lastIndex + 1, term });
    expect(b.group(leader, GROUP).status().firstIndex).toBe(firstIndex);
    await b.write(GROUP, 'b');
    b.group(leader, GROUP).checkpointed({ index: lastIndex + 1, term });
    expect(b.group(leader, GROUP).status().firstIndex).toBe(lastIndex + 2);
    expect(b.fatal()).toEqual([]);
  });

  test('a follower behind the compacted log catches up by a snapshot, and goes on from the log', async () => {
    const b = three({ options });
    const { leader, behind } = await lagging(b);
    b.network.heal();
    await converged(b);
    expect(b.node(behind).host.stats().snapshotsReceived).toBe(1);
    await b.write(GROUP, 'after');
    expect((await converged(b)).at(-1)).toBe('after');
    expect(b.node(leader).host.stats().snapshotsSent).toBe(1);
  });

  test('a node that crashes after installing and before its log knows comes back at the snapshot', async () => {
    const b = three({ options });
    const { behind } = await lagging(b);
    b.node(behind).log.syncMs = 1_000_000; // the log's restart record never becomes durable
    b.network.heal();
    await b.until('it is installed', () => b.node(behind).host.stats().snapshotsReceived === 1);
    await b.crash(behind);
    b.node(behind).log.syncMs = 1;
    b.start(behind);
    await b.write(GROUP, 'after');
    expect((await converged(b)).at(-1)).toBe('after');
    expect(b.node(behind).log.durable.get(GROUP)?.start.index).toBeGreaterThan(50);
  });

  test('a snapshot that breaks off is sent again', async () => {
    const b = three({ options });
    const { leader, behind } = await lagging(b);
    b.counter(leader, GROUP).snapshotChunks = 40;
    b.network.setLink({ from: leader, to: behind }, { blocked: false, delayMs: 5 });
    b.network.setLink({ from: behind, to: leader }, { blocked: false, delayMs: 5 });
    await b.until('it is on its way', () => b.counter(behind, GROUP).installs === 1);
    await b.run(50);
    b.network.partition(
      NODES.filter((id) => id !== behind),
      [behind],
    );
    await b.until('the receiver gives up', () => b.counter(behind, GROUP).aborts === 1);
    expect(b.counter(behind, GROUP).history).toEqual(['first']);
    b.network.heal();
    await converged(b);
    expect(b.counter(behind, GROUP).installs).toBeGreaterThan(1);
  });

  test('entries that a snapshot under way builds on are not compacted', async () => {
    const b = three({ options });
    const { leader, behind } = await lagging(b);
    let open: () => void = () => undefined;
    b.counter(behind, GROUP).installGate = new Promise((resolve) => {
      open = resolve;
    });
    b.network.heal();
    await b.run(300);
    const snapshotAt = b.group(leader, GROUP).status().lastIndex;
    for (let i = 0; i < 60; i++) await b.write(GROUP, `more${i}`);
    b.group(leader, GROUP).checkpointed(b.counter(leader, GROUP).checkpoint());
    expect(b.group(leader, GROUP).status().firstIndex).toBeLessThanOrEqual(snapshotAt + 1);
    open();
    await converged(b);
    expect(b.node(leader).host.stats().snapshotsSent).toBe(1);
  });
});

describe('groups', () => {
  test('a removed group answers nothing, and messages for it are counted and told', async () => {
    const unknown: number[] = [];
    const b = three({ extra: { onUnknownGroup: (_from, { groupId }) => unknown.push(groupId) } });
    await b.write(GROUP, 'a');
    const leader = await b.leader(GROUP);
    const follower = others(leader)[0] ?? 0;
    const handle = b.group(follower, GROUP);
    await b.removeGroup(follower, GROUP);
    await b.write(GROUP, 'b');
    await b.run(300);
    expect(unknown).toContain(GROUP);
    expect(b.node(follower).host.stats().messagesUnknown).toBeGreaterThan(0);
    expect(b.node(follower).host.group(GROUP)).toBeUndefined();
    expect(handle.propose(Buffer.from('x'))).toEqual({ refused: 'notLeader' });
    expect(handle.ready).toBe(false);
    expect(b.node(follower).log.durable.has(GROUP)).toBe(false);
  });

  test('reads under way are refused when their group is removed', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    const read = readAt(b, leader);
    await b.removeGroup(leader, GROUP);
    expect(read.result).toBe('notLeader');
  });

  test('the log of a removed group stays until its end is recorded, and goes durably', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const follower = others(await b.leader(GROUP))[0] ?? 0;
    const { host, log } = b.node(follower);
    let record: () => void = () => {};
    const recorded = new Promise<void>((resolve) => {
      record = resolve;
    });
    let removed = false;
    const removal = host
      .removeGroup(GROUP, () => recorded)
      .then(() => {
        removed = true;
      });
    b.node(follower).counters.delete(GROUP);
    await b.run(300);
    expect([log.durable.has(GROUP), removed]).toEqual([true, false]);
    record();
    await b.flush();
    expect([log.durable.has(GROUP), removed]).toEqual([false, false]); // on its way to the disk
    await b.until('it is durable', () => removed);
    await removal;
  });

  test('the log of a group that does not run is let go too', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const follower = others(await b.leader(GROUP))[0] ?? 0;
    const { log } = b.node(follower);
    await b.removeGroup(follower, GROUP);
    log.durable.set(GROUP, { hardState: { term: 1, vote: 0, commit: 0 }, start: { index: 0, term: 0 }, entries: [] });
    await b.removeGroup(follower, GROUP);
    expect(log.durable.has(GROUP)).toBe(false);
  });

  test('a group of one node needs no one else', async () => {
    const b = three();
    b.addGroup(5, [2]);
    await b.write(5, 'alone');
    expect(b.counter(2, 5).history).toEqual(['alone']);
  });

  test('logDurable waits for what was appended before it', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.run(20);
    b.node(leader).log.syncMs = 50;
    b.group(leader, GROUP).propose(Buffer.from('a'));
    await b.flush();
    let durable = false;
    void b
      .node(leader)
      .host.logDurable()
      .then(() => {
        durable = true;
      });
    await b.run(40);
    expect(durable).toBe(false);
    await b.run(20);
    expect(durable).toBe(true);
  });

  test.each(['before', 'while'])('a log that fails %s the host stops does not keep it from stopping', async (when) => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.run(20);
    const { host, log } = b.node(leader);
    b.group(leader, GROUP).propose(Buffer.from('a'));
    await b.flush();
    log.crash(); // what is under way is never called back
    const failure = new Error('no space');
    const waiting = host.logDurable().catch((error: unknown) => error);
    if (when === 'before') host.logFailed(failure);
    const stopping = host.stop();
    await b.flush();
    if (when === 'while') host.logFailed(failure);
    await stopping;
    expect(await waiting).toBe(failure);
    await expect(host.logDurable()).rejects.toBe(failure);
    expect(b.fatal()).toEqual(when === 'before' ? [failure] : []);
    bed = undefined; // its failure was meant
  });

  test('stopping ends everything: no timer is left', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    for (const id of NODES) {
      const stopping = b.node(id).host.stop();
      await b.run(5);
      await stopping;
    }
    await b.run(100);
    expect(b.clock.pendingTimers).toBe(0);
  });
});

describe('stalls', () => {
  test('a leader that was stopped for long leads no more when it goes on, and answers no read from before', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const old = await b.leader(GROUP);
    b.node(old).clock.pause();
    const read = readAt(b, old);
    await b.until('another leads', () => others(old).some((id) => b.group(id, GROUP).ready));
    const leader = others(old).find((id) => b.group(id, GROUP).ready) ?? 0;
    await b.write(GROUP, 'b');
    const { term } = b.group(leader, GROUP);
    await b.run(5000);
    const late = readAt(b, old);
    b.node(old).clock.resume();
    await b.run(1000);
    expect([read.result, late.result]).toEqual(['notLeader', 'notLeader']);
    expect(b.node(old).host.stats().stalls).toBe(1);
    expect(b.group(leader, GROUP).term).toBe(term);
    expect(b.group(old, GROUP).role).toBe('follower');
    expect(await converged(b)).toEqual(['a', 'b']);
  });

  test('a follower that was stopped for long does not campaign when it goes on', async () => {
    const b = three();
    await b.write(GROUP, 'a');
    const leader = await b.leader(GROUP);
    const { term } = b.group(leader, GROUP);
    const stopped = others(leader)[0] ?? 0;
    b.node(stopped).clock.pause();
    await b.run(5000);
    b.node(stopped).clock.resume();
    await b.run(1000);
    expect(b.counter(stopped, GROUP).roles.map(({ role }) => role)).not.toContain('preCandidate');
    expect(b.group(leader, GROUP)).toMatchObject({ role: 'leader', term });
  });
});

describe('membership', () => {
  test('a learner is added, catches up, and votes after its promotion', async () => {
    const b = three({ options: { tailEntries: 10, snapshotHoldMs: 0 } });
    for (let i = 0; i < 5; i++) await b.write(GROUP, `w${i}`);
    const r4 = replicaOn(GROUP, 4);
    b.start(4);
    b.addGroup(GROUP, [4], NODES);
    await b.change(GROUP, confChange([{ type: 'addLearner', replica: r4 }]), ({ learners }) => learners.includes(r4));
    expect((await converged(b, GROUP, [1, 2, 3, 4])).slice(0, 5)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4']);
    await b.change(GROUP, confChange([{ type: 'addVoter', replica: r4 }]), ({ voters }) => voters.includes(r4));
    await converged(b, GROUP, [1, 2, 3, 4]);
    const leader = await b.leader(GROUP);
    await b.crash(others(leader)[0] ?? 0);
    await b.write(GROUP, 'three of four');
    expect(b.group(leader, GROUP).status().conf.voters).toContain(r4);
  });
});
