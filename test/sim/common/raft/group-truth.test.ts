import type { ConfState, Entry, GroupAppend } from '@remora/raft';
import { confOf } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { GroupTruth } from './group-truth.ts';
import { ReplicaView } from './replica-view.ts';

const CONF = confOf([1, 2, 3]);

/** Entries `index:term`, or `index:term:content`. */
function entries(...texts: readonly string[]): readonly Entry[] {
  return texts.map((text) => {
    const [index, term, content = ''] = text.split(':');
    return { index: Number(index), term: Number(term), type: 'normal', data: Buffer.from(content) };
  });
}

/** A group of three, whose replicas do what a test says. */
class Bed {
  readonly truth = new GroupTruth(7, CONF);
  readonly views = [1, 2, 3].map((id) => new ReplicaView({ groupId: 7, replicaId: id, nodeId: id }, CONF));

  view(id: number): ReplicaView {
    const view = this.views[id - 1];
    if (view === undefined) throw new Error(`no replica ${id}`);
    return view;
  }

  append(id: number, ...texts: readonly string[]): void {
    this.give(id, { groupId: 7, entries: entries(...texts) });
  }

  give(id: number, append: GroupAppend): void {
    const view = this.view(id);
    this.truth.appended(view, append, view);
    view.follow(append);
  }

  elect(id: number, term: number): void {
    const view = this.view(id);
    view.role = 'leader';
    view.term = term;
    this.truth.elected(view);
  }

  follow(id: number, term: number): void {
    const view = this.view(id);
    view.role = 'follower';
    view.term = term;
  }

  commit(id: number, index: number): void {
    const view = this.view(id);
    this.truth.committed(view, index, view.term);
    view.commit = index;
  }

  apply(id: number, text: string, checksum = 1, conf: ConfState = CONF): void {
    const [entry] = entries(text);
    if (entry !== undefined) this.truth.applied(this.view(id), entry, { checksum, conf });
  }
}

/** Replica 1 leads term 1, and everybody has two entries of it. */
function begun(): Bed {
  const bed = new Bed();
  bed.elect(1, 1);
  for (const id of [1, 2, 3]) bed.append(id, '1:1', '2:1:x');
  return bed;
}

describe('the truth about a group', () => {
  test('a good run: a leader fails, its tail is replaced, its successor commits and all apply', () => {
    const bed = begun();
    bed.append(1, '3:1:lost');
    bed.commit(1, 2);
    bed.elect(2, 2);
    bed.append(2, '3:2:kept');
    bed.follow(1, 2);
    bed.append(1, '3:2:kept');
    bed.commit(2, 3);
    for (const id of [2, 1]) bed.apply(id, '1:1');
    bed.truth.installed(bed.view(3), { index: 1, term: 1 }, 1);
    expect(bed.truth.elections).toBe(2);
  });

  test('a good run: all replicas have applied the first entry before there is a log, and commit what follows', () => {
    const truth = new GroupTruth(7, CONF, { index: 1, term: 1 });
    const view = new ReplicaView({ groupId: 7, replicaId: 1, nodeId: 1 }, CONF);
    view.begin({ start: { index: 1, term: 1 }, terms: [], confs: [], applied: 1, conf: CONF });
    expect(truth.committed(view, 1, 1)).toBe(false);
    const append: GroupAppend = { groupId: 7, entries: entries('2:1') };
    truth.appended(view, append, view);
    view.follow(append);
    expect(truth.committed(view, 2, 1)).toBe(true);
    truth.installed(view, { index: 1, term: 1 }, 0);
    expect(truth.committedTerm(1)).toBe(1);
  });

  const bad: readonly { readonly name: string; readonly run: (bed: Bed) => void; readonly found: string }[] = [
    {
      name: 'two leaders of a term',
      run: (bed) => bed.elect(2, 1),
      found: 'election safety: group 7: replicas 1 and 2 lead term 1',
    },
    {
      name: 'a leader that replaces its own entries',
      run: (bed) => bed.append(1, '2:1:x'),
      found: 'leader append-only: group 7, replica 1 on node 1 leads term 1 and replaced index 2 of 2',
    },
    {
      name: 'a leader that restarts its log',
      run: (bed) => bed.give(1, { groupId: 7, entries: entries('3:1'), restartAt: { index: 2, term: 1 } }),
      found: 'leader append-only',
    },
    {
      name: 'two entries of one index and term with other contents',
      run: (bed) => bed.append(3, '2:1:y'),
      found: 'log matching',
    },
    {
      name: 'an entry that follows another one than elsewhere',
      run: (bed) => {
        bed.append(2, '3:3');
        bed.append(3, '2:2', '3:3');
      },
      found: 'log matching',
    },
    { name: 'a gap in a log', run: (bed) => bed.append(3, '4:1'), found: 'a gap before index 4' },
    {
      name: 'a leader without an entry that was committed before it was elected',
      run: (bed) => {
        bed.append(2, '2:2');
        bed.commit(1, 2);
        bed.elect(2, 3);
      },
      found: 'leader completeness: group 7: replica 2 was elected for term 3 without (index 2, term 1)',
    },
    {
      name: 'an entry committed in an earlier term, which the newer leader lacks',
      run: (bed) => {
        bed.append(1, '3:1');
        bed.elect(2, 2);
        bed.commit(1, 3);
      },
      found: 'leader completeness',
    },
    {
      name: 'two replicas that commit another entry at one index',
      run: (bed) => {
        bed.commit(1, 2);
        bed.append(2, '2:2');
        bed.follow(2, 2);
        bed.commit(2, 2);
      },
      found: 'state machine safety: group 7, replica 2 on node 2 has committed index 2 with term 2, others with term 1',
    },
    {
      name: 'a replica that replaces what it knows to be committed',
      run: (bed) => {
        bed.follow(3, 1);
        bed.commit(3, 2);
        bed.append(3, '2:2');
      },
      found: 'replaced index 2, which it had committed',
    },
    {
      name: 'an entry applied before it is committed',
      run: (bed) => bed.apply(1, '1:1'),
      found: 'state machine safety',
    },
    {
      name: 'an entry applied that is not the committed one',
      run: (bed) => {
        bed.commit(1, 2);
        bed.apply(2, '2:2');
      },
      found: 'applied (index 2, term 2), committed is term 1',
    },
    {
      name: 'a state machine that makes something else of an entry',
      run: (bed) => {
        bed.commit(1, 2);
        bed.apply(1, '1:1', 1);
        bed.apply(2, '1:1', 2);
      },
      found: 'replica 2 on node 2 differs from other replicas after index 1',
    },
    {
      name: 'a snapshot of a state that nobody had',
      run: (bed) => {
        bed.commit(1, 2);
        bed.apply(1, '1:1', 1);
        bed.truth.installed(bed.view(3), { index: 1, term: 1 }, 2);
      },
      found: 'installed a snapshot of index 1 that no replica had there',
    },
    {
      name: 'a second membership change while one is pending',
      run: (bed) => {
        bed.view(1).confs = [3, 4];
        bed.truth.confProposed(bed.view(1), 2, CONF);
      },
      found: 'one pending membership change',
    },
  ];
  test.each(bad)('found: $name', ({ run, found }) => {
    const bed = begun();
    expect(() => run(bed)).toThrow(found);
  });
});
