import { ServiceError, type Span } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { RangeReply } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { memoryEngine } from '../../../test/support/state-bed.ts';
import type { NewestDone } from '../../revisions/revision-drawer.ts';
import { type Lease, Leases } from '../../state/leases/leases.ts';
import type { RangeState } from '../../state/range-state.ts';
import { LeaseManager } from './lease-manager.ts';

const SPAN: Span = { start: Buffer.from([1, 0x6b]), end: Buffer.from([1, 0x6c]) };
const ALL: Span = { start: Buffer.alloc(0), end: Buffer.alloc(0) };

/** Counts how often all that are ending are gone over. */
class CountedLeases extends Leases {
  looks = 0;

  override allEnding(): IterableIterator<Lease> {
    this.looks++;
    return super.allEnding();
  }
}

/** The home of leases that another range has something of. */
class HomeBed {
  readonly clock = new ManualClock();
  readonly leases = new CountedLeases(memoryEngine());
  /** What the master was asked, to be answered. */
  readonly questions: { readonly floor: number; readonly done: NewestDone }[] = [];
  /** What the other range was told, to be answered. */
  readonly asked: (() => void)[] = [];
  readonly manager = new LeaseManager({
    clock: this.clock,
    engine: memoryEngine(),
    state: this.#state(),
    others: {
      command: (_command, _options, done) => {
        this.asked.push(() => done(undefined, { result: { type: 'leaseEnd', more: false, covered: SPAN } }));
        return () => {};
      },
      query: () => () => {},
    },
    source: { newest: (floor, done) => this.questions.push({ floor, done }) },
    commands: {
      propose: ({ id }: { readonly id: bigint }, done: (outcome: unknown) => void) => {
        this.leases.settle(id, SPAN);
        done({ ok: true });
      },
      proposeAlone: () => {},
    } as never,
    term: () => 1,
    rangeTimeMs: () => 0,
  });

  #state(): RangeState {
    const descriptor = { revisionSource: 'master' };
    const rest = { leases: this.leases, bounds: { routed: ALL }, delays: { all: () => [] }, descriptor };
    return { ...rest, references: { size: 0 }, revision: 20 } as unknown as RangeState;
  }

  grant(id: bigint): void {
    this.leases.grant({ id, ttlMs: 1_000, incarnation: 5, attributes: {}, spans: [SPAN], change: 0 });
  }
}

function revoked(revision: number): RangeReply {
  return { revision, raftTerm: 1, rangeTimeMs: 0, result: { type: 'leaseRevoke' } };
}

describe('the leader of a home, for leases that end', () => {
  let bed: HomeBed;
  beforeEach(() => {
    bed = new HomeBed();
  });

  test('who ends one again is told that there is none only when every range has let go of it', () => {
    const { clock, manager, leases } = bed;
    bed.grant(7n);
    leases.beginEnd(7n);
    manager.start(1);
    const told: (string | undefined)[] = [];
    const unknown = new ServiceError('LEASE_NOT_FOUND', 'there is no such lease');
    manager.answerRevoke(7n, unknown, (error) => told.push(error?.code));
    expect(told).toEqual([]);
    for (const settle of bed.asked.splice(0)) settle();
    clock.advance(1_000);
    expect(told).toEqual(['LEASE_NOT_FOUND']);
    manager.stop(new ServiceError('NOT_LEADER', 'stopped'));
  });

  test('a caller that ended one is answered when every range has let go of it, with a revision of that moment (ER1)', () => {
    const { clock, manager, leases, questions } = bed;
    bed.grant(7n);
    leases.beginEnd(7n);
    manager.ended(7n, { revision: 9, isWhole: false });
    manager.start(1);
    const told: unknown[] = [];
    const answer = (): void =>
      manager.answerRevoke(7n, revoked(9), (error, reply) => told.push(error?.code ?? reply?.revision));
    answer();
    expect([told, questions.length]).toEqual([[], 0]);
    for (const settle of bed.asked.splice(0)) settle();
    clock.advance(1_000);
    expect([told, questions.map(({ floor }) => floor)]).toEqual([[], [20]]);
    questions[0]?.done(undefined, 31);
    answer(); // repeated
    questions[1]?.done(new ServiceError('UNAVAILABLE', 'no leader'), undefined);
    expect(told).toEqual([31, 'UNKNOWN_OUTCOME']);
    manager.stop(new ServiceError('NOT_LEADER', 'stopped'));
  });

  test('a lease whose record goes to another range has not ended here (ER2)', () => {
    const { manager, questions } = bed;
    manager.start(1);
    manager.ended(7n, { revision: 20, isWhole: false });
    manager.ended(7n);
    const told: unknown[] = [];
    manager.answerRevoke(7n, revoked(20), (error, reply) => told.push(error?.code ?? reply?.revision));
    expect([told, questions.length]).toEqual([[], 1]);
    manager.stop(new ServiceError('NOT_LEADER', 'stopped'));
  });

  test('the end of one that took a single entry is answered with its revision, and nobody is asked (ER2)', () => {
    const { manager, questions } = bed;
    manager.start(1);
    manager.ended(7n, { revision: 20, isWhole: true });
    const told: unknown[] = [];
    manager.answerRevoke(7n, revoked(20), (error, reply) => told.push(error?.code ?? reply?.revision));
    expect([told, questions.length]).toEqual([[20], 0]);
    manager.stop(new ServiceError('NOT_LEADER', 'stopped'));
  });

  test('those that end in one entry are gone over once, and each is told', () => {
    const { clock, manager, leases } = bed;
    manager.start(1);
    clock.advance(1);
    leases.looks = 0;
    for (const ids of [
      [1n, 2n, 3n],
      [4n, 5n],
    ]) {
      for (const id of ids) {
        bed.grant(id);
        leases.beginEnd(id);
        manager.ended(id);
      }
      clock.advance(1);
    }
    expect([bed.asked.length, leases.looks]).toEqual([5, 2]);
    manager.stop(new ServiceError('NOT_LEADER', 'stopped'));
  });
});
