import { FIRST_VERSION, type ServiceError, versionOf } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type Command, type CommandBatch, decodeEntry, type RangeDescriptor, staleEpoch } from '@remora/protocol';
import type { Group, Refusal } from '@remora/raft';
import { afterEach, describe, expect, test } from 'vitest';
import { NOBODY_NUMBERS } from '../../../test/support/own-revisions.ts';
import { DESCRIPTOR, put, range } from '../../../test/support/state-bed.ts';
import { prepare } from '../../../test/support/txn-bed.ts';
import type { Drawing, RevisionSource } from '../../revisions/revision-drawer.ts';
import type { PendingCommand } from './pending-command.ts';
import { Proposals, refusalError } from './proposals.ts';

const MOVED = staleEpoch([DESCRIPTOR, { ...DESCRIPTOR, rangeId: 3 }]);

function proposalsOf(descriptor: RangeDescriptor, clock: ManualClock, drawer = NOBODY_NUMBERS): Proposals {
  const state = { rangeId: descriptor.rangeId, descriptor, revision: 40 };
  return new Proposals({ clock, drawer, state, version: () => inForce, rangeTimeMs: () => 1, staleEpoch: () => MOVED });
}

let inForce = FIRST_VERSION;

afterEach(() => {
  inForce = FIRST_VERSION;
});

test.each<{ refused: Refusal; code: string; retry: string }>([
  { refused: 'notLeader', code: 'NOT_LEADER', retry: 'refreshRoute' },
  { refused: 'queueFull', code: 'RESOURCE_EXHAUSTED', retry: 'later' },
  { refused: 'transferring', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'noOwnTermCommit', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'confPending', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'confInvalid', code: 'INVALID_ARGUMENT', retry: 'no' },
  { refused: 'notVoter', code: 'INVALID_ARGUMENT', retry: 'no' },
])('what Raft refuses as $refused a caller gets as $code', ({ refused, code, retry }) => {
  expect(refusalError(refused)).toMatchObject({ code, retry });
});

test('commands are under way until they are answered, by apply or because leadership is lost', () => {
  const clock = new ManualClock();
  const proposals = proposalsOf(DESCRIPTOR, clock);
  let index = 0;
  proposals.attach({ propose: () => ({ index: ++index, term: 1 }) } as unknown as Group);
  const add = (): void => proposals.add(pending({ type: 'noop' }));
  add();
  add();
  expect(proposals.inFlight).toBe(2);
  clock.advance(0);
  expect(proposals.inFlight).toBe(2);
  const taken = proposals.take({ index: 1, term: 1 });
  expect(taken?.pending.length).toBe(2);
  expect(proposals.inFlight).toBe(0);
  add();
  clock.advance(0);
  proposals.abandon();
  expect(proposals.inFlight).toBe(0);
});

/** A leader of term 7 of which the entries are kept. */
class ProposalsBed {
  readonly clock = new ManualClock();
  readonly entries: CommandBatch[] = [];
  readonly formats: (number | undefined)[] = [];
  drawing: Drawing | undefined;
  readonly proposals: Proposals;

  constructor(revisionSource: RangeDescriptor['revisionSource']) {
    const drawer: RevisionSource = { ...NOBODY_NUMBERS, want: (drawing) => (this.drawing = drawing) };
    const source = revisionSource === 'range' ? NOBODY_NUMBERS : drawer;
    this.proposals = proposalsOf({ ...DESCRIPTOR, revisionSource }, this.clock, source);
    const propose = (data: Uint8Array) => {
      this.formats.push(data[0]);
      this.entries.push(decodeEntry(data));
      return { index: this.entries.length, term: 7 };
    };
    this.proposals.attach({ propose, role: 'leader', term: 7 } as unknown as Group);
  }

  add(command: Command = write('k')): void {
    this.proposals.add(pending(command));
  }
}

function pending(
  command: Command,
  { requestId = '', told = () => {} }: { requestId?: string; told?: (error: ServiceError | undefined) => void } = {},
): PendingCommand {
  return { item: { requestId, deadlineMs: 0, command }, bytes: 1, complete: told };
}

function write(key: string): Command {
  return { type: 'kv', op: put(key, 'v') };
}

describe('commands of a range', () => {
  test('that counts its revisions are proposed in the turn in which they came, and nobody is asked (P3)', () => {
    const bed = new ProposalsBed('range');
    bed.add();
    bed.clock.runImmediates();
    expect(bed.formats).toEqual([1]);
    expect(bed.entries[0]).not.toHaveProperty('block');
  });

  test.each(['range', 'master'] as const)('are known by their ids wherever they are, if the %s numbers them', (by) => {
    const bed = new ProposalsBed(by);
    const isInFlight = (): boolean => bed.proposals.isInFlight('r');
    bed.proposals.add(pending(write('k'), { requestId: 'r' }));
    const seen = [isInFlight()];
    bed.clock.runImmediates();
    seen.push(isInFlight());
    bed.drawing?.sending();
    seen.push(isInFlight());
    bed.drawing?.answered({ first: 90, count: 1 });
    seen.push(isInFlight());
    bed.proposals.take({ index: 1, term: 7 }); // and is being applied
    seen.push(isInFlight(), bed.proposals.isInFlight('s'));
    expect(seen).toEqual([true, true, true, true, true, false]);
    bed.proposals.take({ index: 2, term: 7 });
    expect(isInFlight()).toBe(false);
  });

  test('that the master numbers wait for a block, which their entry carries', () => {
    const bed = new ProposalsBed('master');
    bed.add();
    bed.add();
    bed.clock.runImmediates();
    expect(bed.entries).toEqual([]);
    expect(bed.drawing?.sending()).toEqual({ floor: 40, count: 2 });
    expect(bed.proposals.inFlight).toBe(2);
    bed.drawing?.answered({ first: 90, count: 2 });
    expect(bed.entries.map(({ block }) => block)).toEqual([{ first: 90, count: 2 }]);
    expect(bed.proposals.inFlight).toBe(2);
  });

  test('carry the version in force, and none in the first one (P4)', () => {
    const bed = new ProposalsBed('range');
    bed.add();
    bed.clock.runImmediates();
    inForce = versionOf('0.2') ?? 0;
    bed.add();
    bed.clock.runImmediates();
    expect(bed.entries.map(({ version }) => version)).toEqual([undefined, inForce]);
    expect(bed.formats).toEqual([1, 10]);
  });

  test.each(['0.1', '0.2'])(
    'that prepare a part wait for a block if they read at a revision, from 0.2 on: %s',
    (at) => {
      inForce = versionOf(at) ?? 0;
      const bed = new ProposalsBed('master');
      bed.add(prepare('now', 0, [range('k')]));
      bed.add(prepare('then', 0, [range('k', undefined, { revision: 5 })]));
      bed.clock.runImmediates();
      const names = bed.entries.map(({ commands }) => commands.length);
      expect(names).toEqual(at === '0.1' ? [2] : [1]);
      expect(bed.drawing?.sending()).toEqual(at === '0.1' ? undefined : { floor: 40, count: 1 });
    },
  );

  test('that wait for revisions when it is split are told at once which range has their keys by now', () => {
    let drawing: Drawing | undefined;
    const drawer: RevisionSource = { ...NOBODY_NUMBERS, want: (wanting) => (drawing = wanting) };
    const state = { rangeId: 2, descriptor: { ...DESCRIPTOR, revisionSource: 'master' as const }, revision: 40 };
    const clock = new ManualClock();
    const version = () => inForce;
    const proposals = new Proposals({ clock, drawer, state, version, rangeTimeMs: () => 1, staleEpoch: () => MOVED });
    proposals.attach({ role: 'leader', term: 7 } as unknown as Group);
    const answers: unknown[] = [];
    proposals.add(pending(write('k'), { told: (error) => void answers.push(error) }));
    clock.runImmediates();
    state.descriptor = { ...state.descriptor, epoch: { confVersion: 1, version: 2 } };
    expect(drawing?.sending()).toBeUndefined();
    expect(answers).toEqual([MOVED]);
  });

  test('that change nothing do not wait for revisions', () => {
    const bed = new ProposalsBed('master');
    bed.add({ type: 'noop' });
    bed.clock.runImmediates();
    expect(bed.formats).toEqual([1]);
    expect(bed.drawing).toBeUndefined();
  });

  test('that do not fit into one entry share the block: no revision is in two entries', () => {
    const bed = new ProposalsBed('master');
    for (let i = 0; i < 2_500; i++) bed.add();
    bed.clock.runImmediates();
    bed.drawing?.sending();
    bed.drawing?.answered({ first: 1_000, count: 2_500 });
    expect(bed.entries.map(({ block, commands }) => [block?.first, block?.count, commands.length])).toEqual([
      [1_000, 1_024, 1_024],
      [2_024, 1_024, 1_024],
      [3_048, 452, 452],
    ]);
  });

  test('that wait for revisions count for the bound of the queue', () => {
    const bed = new ProposalsBed('master');
    for (let i = 0; i < 20_000; i++) bed.add();
    bed.clock.runImmediates();
    let code: string | undefined;
    bed.proposals.add(
      pending(write('k'), {
        told: (error) => {
          code = error?.code;
        },
      }),
    );
    expect(code).toBe('RESOURCE_EXHAUSTED');
  });
});

test('an entry that waits for cold data as it is applied has its block yet: when the next one cannot be had, all is settled behind it', () => {
  const bed = new ProposalsBed('master');
  const settled: number[] = [];
  const settle = (): void => bed.proposals.whenSettled((index) => settled.push(index));
  bed.add();
  bed.clock.advance(0);
  bed.drawing?.sending();
  bed.drawing?.answered({ first: 50, count: 1 });
  bed.add();
  bed.clock.advance(0);
  bed.drawing?.sending();
  settle();
  bed.proposals.take({ index: 1, term: 7 });
  bed.drawing?.failed();
  settle();
  expect([bed.entries.length, settled]).toEqual([1, [1, 1]]);
});
