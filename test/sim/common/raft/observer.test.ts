import { SeededRandom } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { confOf, encodeConfChange, type Group, type GroupStatus, type Message } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { SimLoop } from '../env/loop.ts';
import { Trace } from '../trace.ts';
import { DurableGroup, DurableLog } from './durable-log.ts';
import { KeptCheck } from './kept-check.ts';
import type { ObservedNode } from './observed-node.ts';
import { Observer } from './observer.ts';
import { ReplicaView } from './replica-view.ts';

const GROUP = 7;
const CONF = confOf([1, 2, 3]);

/** A node whose Raft does what a test says. */
class FakeNode implements ObservedNode {
  readonly id: number;
  readonly durable: DurableLog;
  readonly medium = new DurableGroup();
  readonly groupIds = [GROUP];
  status: GroupStatus;

  constructor(id: number, disk: SimDisk) {
    this.id = id;
    this.durable = new DurableLog(disk, 'log');
    this.durable.groups.set(GROUP, this.medium);
    this.status = {
      groupId: GROUP,
      replicaId: id,
      role: 'follower',
      term: 1,
      leader: 0,
      commit: 0,
      applied: 0,
      lastIndex: 0,
      lastTerm: 0,
      silentTicks: 0,
      firstIndex: 1,
      conf: CONF,
      changePending: false,
      progress: [],
    };
  }

  group(): Group {
    const { groupId, replicaId, role, term, leader } = this.status;
    return { groupId, replicaId, role, term, leader, status: () => this.status } as Group;
  }

  /** Its group has removed its replica, and its data is gone. */
  removed = false;

  stored() {
    return this.removed ? undefined : { replicaId: this.id, applied: { index: 0, term: 0 } };
  }
}

class Bed {
  readonly failures: unknown[] = [];
  readonly nodes: readonly FakeNode[];
  readonly observer: Observer;
  /** Nodes that are lost for good. */
  readonly lost = new Set<number>();

  constructor() {
    const loop = new SimLoop();
    const disk = new SimDisk({ random: new SeededRandom(1), clock: loop, latencyMs: 0 });
    this.nodes = [1, 2, 3].map((id) => new FakeNode(id, disk));
    this.observer = new Observer({
      trace: new Trace(() => 0),
      node: (id) => this.nodes[id - 1],
      isLost: ({ nodeId }) => this.lost.has(nodeId),
      fail: (error) => this.failures.push(error),
    });
    this.observer.addGroup(GROUP, CONF);
    for (const { id } of this.nodes) {
      this.observer.addView(new ReplicaView({ groupId: GROUP, replicaId: id, nodeId: id }, CONF));
    }
  }

  node(id: number): FakeNode {
    const node = this.nodes[id - 1];
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  send(id: number, message: Partial<Message>): void {
    const whole = { from: id, to: 2, term: 1, ...message } as Message;
    this.observer.sent(this.node(id), [{ groupId: GROUP, message: whole }]);
  }

  append(id: number, index: number, type: 'normal' | 'conf' = 'normal'): void {
    const entries = [{ index, term: 1, type, data: Buffer.alloc(0) }];
    this.observer.appended(this.node(id), [{ groupId: GROUP, entries }]);
  }

  /** A replica makes itself the only member, by an entry of term 2. */
  alone(id: number): void {
    this.observer.appended(this.node(id), [{ groupId: GROUP, entries: [forcedEntry(id)] }]);
  }

  /** And that takes effect. */
  applyAlone(id: number): void {
    this.sync(id, { term: 2, terms: [1, 2] });
    this.look(id, { term: 2, lastIndex: 2, commit: 2, conf: confOf([id]) });
    this.observer.applied(this.node(id), GROUP, forcedEntry(id), { checksum: id, conf: confOf([id]) });
  }

  look(id: number, status: Partial<GroupStatus>): void {
    const node = this.node(id);
    node.status = { ...node.status, ...status };
    this.observer.looked(node);
  }

  /** What a disk's medium holds. */
  sync(id: number, held: { readonly term?: number; readonly vote?: number; readonly terms?: number[] }): void {
    Object.assign(this.node(id).medium, held);
  }
}

function forcedEntry(id: number) {
  const steps = [{ type: 'addVoter' as const, replica: id }];
  const data = encodeConfChange({ steps, transition: 'forced', context: Buffer.alloc(0) });
  return { index: 2, term: 2, type: 'conf' as const, data };
}

/** Node 1 leads term 1 with one entry, which it has sent to all. */
function begun(): Bed {
  const bed = new Bed();
  for (const id of [1, 2, 3]) bed.append(id, 1);
  for (const id of [1, 2, 3]) bed.sync(id, { term: 1, vote: 1, terms: [1] });
  for (const id of [1, 2, 3]) bed.look(id, { lastIndex: 1, role: id === 1 ? 'leader' : 'follower', leader: 1 });
  return bed;
}

describe('what Raft does on nodes', () => {
  test('a good run: votes and acknowledgements that are on disk, a commit that a majority holds', () => {
    const bed = begun();
    bed.send(1, { type: 'vote' });
    bed.send(2, { type: 'voteResponse', to: 1, reject: false });
    bed.send(2, { type: 'appendResponse', to: 1, reject: false, index: 1 });
    bed.sync(3, { terms: [] });
    bed.look(1, { commit: 1 });
    bed.look(1, { applied: 1 });
    expect(bed.failures).toEqual([]);
  });

  test('a good run: what is committed by a group that is over need not be on disks that have let go of it', () => {
    const bed = begun();
    for (const id of [2, 3]) bed.sync(id, { terms: [] });
    bed.observer.over(GROUP);
    bed.look(1, { commit: 1 });
    expect(bed.failures).toEqual([]);
  });

  const bad: readonly { readonly name: string; readonly run: (bed: Bed) => void; readonly found: string }[] = [
    {
      name: 'a vote request leaves before the own vote is on disk',
      run: (bed) => bed.send(1, { type: 'vote', term: 2 }),
      found: 'promise durable: group 7, replica 1 on node 1 votes for 1 in term 2; its disk has term 1, vote 1',
    },
    {
      name: 'a vote leaves before it is on disk',
      run: (bed) => {
        bed.sync(2, { vote: 0 });
        bed.send(2, { type: 'voteResponse', to: 1, reject: false });
      },
      found: 'promise durable',
    },
    {
      name: 'two votes in one term',
      run: (bed) => {
        bed.send(2, { type: 'voteResponse', to: 1, reject: false });
        bed.sync(2, { vote: 3 });
        bed.send(2, { type: 'voteResponse', to: 3, reject: false });
      },
      found: 'one vote per term',
    },
    {
      name: 'an acknowledgement leaves before its entry is on disk',
      run: (bed) => {
        bed.sync(2, { terms: [] });
        bed.send(2, { type: 'appendResponse', to: 1, reject: false, index: 1 });
      },
      found:
        'promise durable: group 7, replica 2 on node 2 acknowledges index 1 of term 1; its disk has term undefined',
    },
    {
      name: 'an acknowledgement leaves before its term is on disk',
      run: (bed) => bed.send(2, { type: 'appendResponse', to: 1, reject: false, index: 1, term: 2 }),
      found: 'acknowledges index 1 in term 2; its disk has term 1',
    },
    {
      name: 'a commit that is on one disk of three',
      run: (bed) => {
        for (const id of [2, 3]) bed.sync(id, { terms: [] });
        bed.look(1, { commit: 1 });
      },
      found: 'commit durable on a quorum',
    },
    { name: 'a term that falls', run: (bed) => bed.look(2, { term: 0 }), found: 'terms and commit grow' },
    {
      name: 'a commit that falls',
      run: (bed) => {
        bed.look(1, { commit: 1 });
        bed.look(1, { commit: 0 });
      },
      found: 'terms and commit grow',
    },
    {
      name: 'something applied beyond the commit',
      run: (bed) => bed.look(1, { applied: 1 }),
      found: 'applied within commit',
    },
    {
      name: 'a membership change before an entry of the own term is committed',
      run: (bed) => bed.append(1, 2, 'conf'),
      found: 'one pending membership change',
    },
    {
      name: 'two leaders of a term, seen on their nodes',
      run: (bed) => bed.look(2, { role: 'leader' }),
      found: 'election safety',
    },
  ];
  test.each(bad)('found: $name', ({ run, found }) => {
    const bed = begun();
    run(bed);
    expect(bed.failures.map(String).join('\n')).toContain(found);
  });
});

describe('a replica that goes on alone', () => {
  /** Node 1 is lost. Each of the others knows itself as the only other voter. */
  const halved = (): Bed => {
    const bed = begun();
    bed.look(1, { commit: 1 });
    bed.lost.add(1);
    for (const id of [2, 3]) bed.look(id, { conf: confOf([1, id]) });
    return bed;
  };
  const failures = (run: (bed: Bed) => void): string => {
    const bed = halved();
    run(bed);
    return bed.failures.map(String).join('\n');
  };
  const committedMore = (bed: Bed): void => {
    bed.append(2, 2);
    bed.look(2, { lastIndex: 2, commit: 2 });
    bed.failures.length = 0;
  };
  const aloneThenRemoved = (bed: Bed): void => {
    bed.alone(2);
    bed.node(2).removed = true;
    bed.alone(3);
    bed.applyAlone(3);
  };

  test('a good run: it holds what the others have committed', () => {
    expect(failures((bed) => bed.alone(3))).toBe('');
  });

  test('a good run: a replica that was removed does not remain, whatever it had committed', () => {
    const run = (bed: Bed): void => {
      committedMore(bed);
      bed.node(2).removed = true;
      bed.alone(3);
    };
    expect(failures(run)).toBe('');
  });

  test('a good run: the first one is removed before that takes effect, and another one goes on', () => {
    expect(failures(aloneThenRemoved)).toBe('');
  });

  test('found: another replica remains that has committed more', () => {
    const run = (bed: Bed): void => {
      committedMore(bed);
      bed.alone(3);
    };
    expect(failures(run)).toContain('the best goes on');
  });

  test('found: another one has gone on before, and remains', () => {
    const run = (bed: Bed): void => {
      bed.alone(2);
      bed.alone(3);
    };
    expect(failures(run)).toContain('goes on alone, and another replica has done so before');
  });

  test('found: another one has gone on before and taken effect, though it is removed by now', () => {
    const run = (bed: Bed): void => {
      bed.alone(2);
      bed.applyAlone(2);
      bed.node(2).removed = true;
      bed.alone(3);
    };
    expect(failures(run)).toContain('goes on alone, and another replica has done so before');
  });
});

describe('what a disk keeps of the log', () => {
  const found = (work: (kept: KeptCheck, bed: Bed) => void): string => {
    const bed = begun();
    bed.look(1, { commit: 1 });
    work(new KeptCheck(bed.node(2), bed.observer), bed);
    return bed.failures.map(String).join('\n');
  };
  const recovered = (change: { readonly term?: number; readonly vote?: number; readonly last?: number }) => {
    const { term = 1, vote = 1, last = 1 } = change;
    const terms = last === 0 ? [] : [{ index: 1, term: 1 }];
    const outline = { terms, lastIndex: last, confs: [] };
    const group = { hardState: { term, vote, commit: 0 }, start: { index: 0, term: 0 }, outline, entries: [] };
    return new Map([[GROUP, group as never]]);
  };

  test('a good run: recovery finds what was synced', () => {
    expect(found((kept) => kept.recovered(recovered({})))).toBe('');
    expect(found((kept) => kept.recovered(recovered({ term: 2, vote: 0 })))).toBe('');
  });

  test('found: recovery lost a committed entry', () => {
    const text = 'durable is kept: node 2, group 7: index 1 of term 1 was synced and is gone';
    expect(found((kept) => kept.recovered(recovered({ last: 0 })))).toContain(text);
  });

  test('found: recovery forgot a vote, or a term', () => {
    expect(found((kept) => kept.recovered(recovered({ vote: 0 })))).toContain('term 1, vote 1 became 1, 0');
    expect(found((kept) => kept.recovered(recovered({ term: 0 })))).toContain('term 1, vote 1 became 0, 1');
  });

  test('found: a crash left nothing on the medium', () => {
    expect(found((kept) => kept.ended())).toContain('node 2, group 7: all of it is gone');
  });

  test('found: a vote on the medium is overwritten by another', () => {
    const text = found((kept, bed) => {
      bed.node(2).medium.takenBack = { term: 1, vote: 1 };
      bed.sync(2, { vote: 3 });
      kept.synced('elsewhere');
    });
    expect(text).toContain('term 1, vote 1 was overwritten, now 1, 3');
  });

  test('found: a log is cut behind what is durable besides it', () => {
    const text = found((kept, bed) => {
      bed.node(2).medium.start = { index: 1, term: 1 };
      kept.synced('elsewhere');
    });
    expect(text).toContain('the log begins behind index 1, and what is applied is durable up to 0');
  });
});
