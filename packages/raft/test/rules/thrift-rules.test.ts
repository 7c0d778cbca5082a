// Entries that wait for followers whose acknowledgement is not awaited (core/thrifty-replication.ts).
import { describe, expect, test } from 'vitest';
import { confOf } from '../../src/core/membership/membership.ts';
import type { RaftCore } from '../../src/core/raft.ts';
import { ack, HEARTBEAT_TICKS, makeLeader, ofType, propose, run, settle, tick } from '../support/core/core-kit.ts';
import { HostBed } from '../support/host/host-bed.ts';

/** Proposes an entry. Returns who is sent entries with it. */
function put(core: RaftCore): number[] {
  propose(core, 'x');
  return sentTo(core);
}

function sentTo(core: RaftCore): number[] {
  return ofType(run(core), 'append').flatMap(({ to, entries }) => (entries.length > 0 ? [to] : []));
}

/** A leader that counts on itself and on 2. */
function leaderWithTwo(): RaftCore {
  const core = makeLeader({ config: { entriesMayWait: true } });
  tick(core, HEARTBEAT_TICKS);
  expect(put(core)).toEqual([2, 3]);
  settle(core, [2, 3]);
  return core;
}

describe('entries that wait', () => {
  test('design §4: leave at the next tick, whatever follows them', () => {
    const core = leaderWithTwo();
    for (let i = 0; i < 3; i++) {
      expect(put(core)).toEqual([2]);
      ack(core, 2);
    }
    tick(core, 1);
    expect(sentTo(core)).toEqual([3]);
  });

  test('design §4: wait for one entry only in vain for a follower that has fallen silent', () => {
    const core = leaderWithTwo();
    expect(put(core)).toEqual([2]);
    expect(put(core)).toEqual([2, 3]);
    ack(core, 3);
    expect(core.commit).toBe(core.lastIndex);
    expect(put(core)).toEqual([2, 3]);
  });

  test('design §4: do so only for a quorum of the present configuration', () => {
    const core = leaderWithTwo();
    core.applyConf(confOf([1, 2, 3, 4, 5]));
    run(core);
    for (const from of [4, 5]) ack(core, from);
    run(core);
    expect(put(core)).toEqual([2, 3, 4, 5]);
  });

  test('design §5: leave within two reviews of the host when nothing follows them', async () => {
    const bed = new HostBed({ seed: 1, options: { appendReviewMs: 3 } });
    for (const id of [1, 2, 3]) bed.start(id);
    bed.addGroup(2, [1, 2, 3]);
    const leader = await bed.leader(2);
    const { host } = bed.node(leader);
    for (let i = 0; i < 20; i++) {
      await bed.write(2, `w${i}`);
      await bed.run(7);
      const ends = [1, 2, 3].map((id) => bed.group(id, 2).status().lastIndex);
      expect(new Set(ends).size).toBe(1);
    }
    expect(host.stats().appendsDelayed).toBeGreaterThan(5);
  });
});
