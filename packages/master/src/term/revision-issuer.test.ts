import { ServiceError } from '@remora/base';
import type { DrawRevisionsReply, DrawRevisionsRequest } from '@remora/protocol';
import type { Refusal, Role } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { RevisionIssuer } from './revision-issuer.ts';

const WINDOW = 100;

interface Answer {
  error: ServiceError | undefined;
  reply: DrawRevisionsReply | undefined;
}

/** A master group whose rounds and log entries end when the test says so. */
class IssuerBed {
  role: Role = 'leader';
  term = 1;
  bound = 0;
  refused: Refusal | undefined;
  readonly rounds: (() => void)[] = [];
  readonly lifts: { readonly upTo: number; readonly done: (error: ServiceError | undefined) => void }[] = [];
  readonly issuer = new RevisionIssuer({
    group: () => ({
      role: this.role,
      term: this.term,
      leaseRead: (done) => {
        this.rounds.push(() => done(this.refused));
      },
    }),
    bound: () => this.bound,
    lift: (upTo, done) => {
      this.lifts.push({ upTo, done });
    },
    notLeader: () => new ServiceError('NOT_LEADER', 'not here'),
    refusal: (refused) => (refused === 'queueFull' ? new ServiceError('RESOURCE_EXHAUSTED', 'full') : undefined),
    window: WINDOW,
  });

  draw(counts: readonly number[], floor = 0): Answer {
    const answer: Answer = { error: undefined, reply: undefined };
    const request: DrawRevisionsRequest = { floor, draws: counts.map((count, i) => ({ rangeId: i + 2, count })) };
    this.issuer.draw(request, (error, reply) => Object.assign(answer, { error, reply }));
    return answer;
  }

  round(): void {
    for (const done of this.rounds.splice(0)) done();
  }

  /** Applies what was proposed. */
  commit(): void {
    for (const { upTo, done } of this.lifts.splice(0)) {
      this.bound = Math.max(this.bound, upTo);
      done(undefined);
    }
  }

  /** A new process or another node begins to lead, with what is applied. */
  elect(): void {
    this.term++;
    this.role = 'leader';
    this.issuer.roleChanged();
  }

  given(counts: readonly number[], floor = 0): DrawRevisionsReply {
    const answer = this.draw(counts, floor);
    this.round();
    this.commit();
    if (answer.reply === undefined) throw new Error('nothing was given out');
    return answer.reply;
  }
}

describe('the issuer of revisions', () => {
  test('gives nothing out before a bound above it is applied (V1)', () => {
    const bed = new IssuerBed();
    const answer = bed.draw([3, 2]);
    bed.round();
    expect(answer.reply).toBeUndefined();
    expect(bed.lifts.map(({ upTo }) => upTo)).toEqual([5 + WINDOW]);
    bed.commit();
    const blocks = [
      { rangeId: 2, first: 1, count: 3 },
      { rangeId: 3, first: 4, count: 2 },
    ];
    expect(answer.reply).toEqual({ newest: 5, blocks });
  });

  test('gives nothing out before it is known to lead (V2)', () => {
    const bed = new IssuerBed();
    bed.given([1]);
    const answer = bed.draw([1]);
    expect(answer).toEqual({ error: undefined, reply: undefined });
    bed.round();
    expect(answer.reply?.newest).toBe(2);
  });

  test('reserves a window at a time, and the next one before the last is used up', () => {
    const bed = new IssuerBed();
    bed.given([1]);
    let lifts = 0;
    for (let i = 0; i < 100; i++) {
      const answer = bed.draw([5]);
      bed.round();
      expect(answer.reply?.newest).toBe(6 + 5 * i);
      lifts += bed.lifts.length;
      bed.commit();
    }
    expect(lifts).toBeLessThan(12);
  });

  test('begins a term above all that an earlier leader may have given out, or still does (V1)', () => {
    const bed = new IssuerBed();
    bed.given([1]);
    const bound = bed.bound;
    bed.elect();
    expect(bed.given([1]).blocks[0]?.first).toBe(bound + 1);
  });

  test('gives out what is above the floor, which the bound covers before the answer (V3)', () => {
    const bed = new IssuerBed();
    bed.given([1]);
    const answer = bed.draw([2], 5_000);
    bed.round();
    expect(answer.reply).toBeUndefined();
    bed.commit();
    expect(answer.reply?.blocks[0]?.first).toBe(5_001);
    expect(bed.bound).toBeGreaterThan(5_002);
    expect(bed.given([1], 10).blocks[0]?.first).toBe(5_003);
  });

  test('a floor alone raises what comes later, at the next leader too', () => {
    const bed = new IssuerBed();
    expect(bed.given([], 700)).toEqual({ newest: 700, blocks: [] });
    bed.elect();
    expect(bed.given([1]).blocks[0]?.first).toBeGreaterThan(700);
  });

  test('serves in the order in which requests were confirmed, also while the bound is lifted', () => {
    const bed = new IssuerBed();
    const answers = [bed.draw([1]), bed.draw([1]), bed.draw([1])];
    bed.round();
    expect(bed.lifts.length).toBe(1);
    bed.commit();
    expect(answers.map(({ reply }) => reply?.newest)).toEqual([1, 2, 3]);
  });

  const ends: readonly { name: string; end: (bed: IssuerBed) => void }[] = [
    {
      name: 'is deposed',
      end: (bed) => {
        bed.role = 'follower';
        bed.issuer.roleChanged();
      },
    },
    { name: 'leads another term', end: (bed) => bed.elect() },
    {
      name: 'leads another term that it was not told of',
      end: (bed) => {
        bed.term++;
      },
    },
  ];
  test.each(ends)('that $name answers who waits for the bound with NOT_LEADER, and gives nothing (V4)', ({ end }) => {
    const bed = new IssuerBed();
    const answer = bed.draw([1]);
    bed.round();
    end(bed);
    bed.commit();
    expect(answer).toMatchObject({ error: { code: 'NOT_LEADER' }, reply: undefined });
    expect(bed.issuer.waiting).toBe(0);
  });

  test.each(ends)('that $name before the round is over gives nothing (V4)', ({ end }) => {
    const bed = new IssuerBed();
    bed.given([1]);
    const answer = bed.draw([1]);
    end(bed);
    bed.round();
    expect(answer).toMatchObject({ error: { code: 'NOT_LEADER' }, reply: undefined });
  });

  test('a lift of an earlier term that ends late does not serve those of the present one', () => {
    const bed = new IssuerBed();
    bed.draw([1]);
    bed.round();
    const [early] = bed.lifts.splice(0);
    bed.elect();
    const answer = bed.draw([1]);
    bed.round();
    early?.done(undefined);
    expect(answer.reply).toBeUndefined();
    bed.commit();
    expect(answer.reply?.newest).toBe(1);
  });

  test('says why when the log does not take the bound, and tries again for the next one who asks', () => {
    const bed = new IssuerBed();
    const answer = bed.draw([1]);
    bed.round();
    bed.lifts.shift()?.done(new ServiceError('RESOURCE_EXHAUSTED', 'full'));
    expect(answer.error?.code).toBe('RESOURCE_EXHAUSTED');
    expect(bed.given([1]).newest).toBe(1);
  });

  test('passes on what keeps the master from confirming that it leads', () => {
    const bed = new IssuerBed();
    const answers = (['queueFull', 'notLeader'] as const).map((refused) => {
      bed.refused = refused;
      const answer = bed.draw([1]);
      bed.round();
      return answer.error?.code;
    });
    expect(answers).toEqual(['RESOURCE_EXHAUSTED', 'NOT_LEADER']);
  });
});
