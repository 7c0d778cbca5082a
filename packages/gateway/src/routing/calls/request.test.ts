import { type ErrorCode, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClusterView,
  type RangeDescriptor,
  type RangeInfo,
  type RangeReply,
  type RangeRequest,
  type RpcChannel,
  type RpcDialer,
  requestTag,
  staleEpoch,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CLUSTER } from '../../authorisation/clearance.ts';
import { LeaderSearch } from '../routes/leader-search.ts';
import { Routes } from '../routes/routes.ts';
import { nothingInFlight } from './in-flight.ts';
import { RoutedCall, type RoutedRequest } from './request.ts';
import type { RequestMeter, RequestTimes } from './request-meter.ts';
import { SlowAnswers } from './slow-answers.ts';

const WHOLE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [1, 2, 3].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' as const })),
  revisionSource: 'range',
};
const SPLIT = { epoch: { confVersion: 1, version: 2 }, revisionSource: 'master' } as const;
/** What became of it; requests of the tests are for a key of the second. */
const PARTS: readonly [RangeDescriptor, RangeDescriptor] = [
  { ...WHOLE, ...SPLIT, end: Buffer.from([2]) },
  { ...WHOLE, ...SPLIT, start: Buffer.from([2]), rangeId: 3 },
];

const VIEW: ClusterView = { clusterId: 'c', nodes: [], ranges: [WHOLE], leaders: [], masterLeader: 0 };

const RANGE_TIME_MS = 700_000;

type Answer = RangeReply | ServiceError | 'silence';

/** A cluster that answers as a script says. Node 1 leads unless told otherwise. */
class CallBed {
  readonly clock = new ManualClock({ monotonicMs: 5_000 });
  readonly routes = new Routes(this.clock, () => VIEW);
  readonly sent: { readonly node: number; readonly request: RangeRequest }[] = [];
  readonly asked: number[] = [];
  leader = 1;
  rangeTimeMs = RANGE_TIME_MS;
  info: (node: number, rangeId: number) => RangeInfo | ServiceError = (_node, rangeId) => this.#info(rangeId);
  answers: Answer[] = [];
  outcome: string | undefined;
  endedMs = 0;
  readonly inFlight = nothingInFlight();
  /** What the meter was told. */
  readonly measured: string[] = [];
  /** Of usual requests. */
  weight = 0;
  slow: RequestTimes | undefined;

  /** Requests of a second and more are slow. */
  get #meter(): Pick<RequestMeter, 'slowMs' | 'weight' | 'ended' | 'slow'> {
    return {
      slowMs: 1_000,
      weight: () => this.weight,
      ended: (body, tookMs, weight) => this.measured.push(`${weight} × ${body?.kind} ${Math.round(tookMs)} ms`),
      slow: (_body, times) => {
        this.slow = times;
      },
    };
  }

  #info(rangeId: number): RangeInfo {
    return { rangeId, leaderNode: this.leader, rangeTimeMs: this.rangeTimeMs, revision: 1, term: 4 };
  }

  begin(request: Partial<RoutedRequest> = {}): RoutedCall {
    const { routes, clock } = this;
    const dialer = this.#dialer();
    const search = new LeaderSearch({ dialer, routes, clock, stats: { leaders: 0 } });
    const slow = new SlowAnswers({ routes, search, clock });
    const [random, logger] = [new SeededRandom(1), silentLogger];
    const call = new RoutedCall(
      { dialer, routes, search, slow, clock, random, logger, inFlight: this.inFlight, meter: this.#meter },
      {
        key: Buffer.from([3]),
        build: () => ({ kind: 'command', command: { type: 'noop' } }),
        command: true,
        requestId: 'r1',
        timeoutMs: 3_000,
        deadlineMs: undefined,
        attemptMs: 1_000,
        awaits: false,
        clearance: CLUSTER,
        ...request,
      },
      {
        completed: (error, reply) => {
          expect(this.outcome, 'a request is answered once').toBeUndefined();
          this.outcome = error === undefined ? `ok ${reply?.revision}` : error.code;
          this.endedMs = this.clock.monotonicMs();
        },
      },
    );
    call.start();
    return call;
  }

  #dialer(): RpcDialer {
    const channel = (node: number): RpcChannel =>
      ({
        call: (
          method: { readonly name: string },
          request: RangeRequest,
          options: { readonly timeoutMs: number },
          done: (error: ServiceError | undefined, reply: unknown) => void,
        ) => {
          let over = false;
          const answer = (value: unknown, afterMs: number): void => {
            this.clock.setTimer(afterMs, () => {
              if (over) return;
              over = true;
              if (value instanceof ServiceError) done(value, undefined);
              else done(undefined, value);
            });
          };
          if (method.name === 'range.info' || method.name === 'range.awaitLeader') {
            this.asked.push(node);
            answer(this.info(node, request.rangeId), 1);
          } else {
            this.sent.push({ node, request });
            const next = this.answers.shift() ?? 'silence';
            if (next === 'silence') answer(new ServiceError('UNKNOWN_OUTCOME', 'timed out'), options.timeoutMs);
            else answer(next, 1);
          }
          return {
            cancel: () => {
              over = true;
            },
          };
        },
      }) as unknown as RpcChannel;
    return { channel, channelTo: () => channel(0) };
  }
}

const reply = (revision: number): RangeReply => ({
  revision,
  raftTerm: 4,
  rangeTimeMs: RANGE_TIME_MS,
  result: { type: 'noop' },
});
const error = (code: ErrorCode, details?: Record<string, unknown>): ServiceError =>
  new ServiceError(code, code, details === undefined ? {} : { details });

describe('is measured', () => {
  test('from its first attempt to its answer, and says where the time of a slow one went', () => {
    const bed = new CallBed();
    bed.answers = ['silence', reply(7)];
    bed.begin();
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe('ok 7');
    expect(bed.measured).toEqual([`1 × command ${bed.endedMs - 5_000} ms`]);
    expect(bed.slow).toMatchObject({ request: requestTag('r1'), rangeId: 2, node: 1, code: 'OK' });
    expect(bed.slow?.attempts).toBeGreaterThanOrEqual(bed.sent.length);
    expect(bed.slow?.searchedMs).toBeLessThan(10); // Its leader was not known at the beginning.
    expect(bed.slow?.lastAttemptMs).toBe(1); // As long as the answer took.
  });

  test('also while no leader is known', () => {
    const bed = new CallBed();
    bed.leader = 0;
    bed.begin();
    bed.clock.advance(2_000);
    bed.leader = 2;
    bed.answers = [reply(7)];
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe('ok 7');
    expect(bed.slow).toMatchObject({ node: 2, code: 'OK' });
    expect(bed.slow?.searchedMs).toBeGreaterThan(1_900);
  });

  test('unless it waits for something to happen', () => {
    const bed = new CallBed();
    bed.answers = [reply(7)];
    bed.begin({ awaits: true });
    bed.clock.advance(10_000);
    expect([bed.outcome, bed.measured]).toEqual(['ok 7', []]);
  });

  test.each([0, 8])('as often as the meter says, if it is usual: %s', (weight) => {
    const bed = new CallBed();
    bed.weight = weight;
    bed.answers = [error('LEASE_NOT_FOUND')];
    bed.routes.learnInfo({ rangeId: 2, leaderNode: 1, rangeTimeMs: RANGE_TIME_MS, revision: 1, term: 4 }, 1);
    bed.begin();
    bed.clock.advance(10_000);
    expect([bed.measured, bed.slow]).toEqual([weight === 0 ? [] : ['8 × command 1 ms'], undefined]);
  });
});

describe('a routed command', () => {
  const rows: readonly { name: string; answers: readonly Answer[]; expect: string; attempts?: number }[] = [
    { name: 'is answered', answers: [reply(7)], expect: 'ok 7', attempts: 1 },
    {
      name: 'follows the leader',
      answers: [error('NOT_LEADER', { leaderNode: 2 }), reply(7)],
      expect: 'ok 7',
      attempts: 2,
    },
    {
      name: 'tries again where nothing was applied',
      answers: [
        error('UNAVAILABLE'),
        error('STALE_EPOCH'),
        error('RANGE_NOT_FOUND'),
        error('UNIMPLEMENTED'),
        error('WRONG_CLUSTER'),
        reply(7),
      ],
      expect: 'ok 7',
      attempts: 6,
    },
    {
      name: "ends with the range's own refusal",
      answers: [error('LEASE_NOT_FOUND')],
      expect: 'LEASE_NOT_FOUND',
      attempts: 1,
    },
    {
      name: 'is told that a queue is full',
      answers: [error('RESOURCE_EXHAUSTED')],
      expect: 'RESOURCE_EXHAUSTED',
      attempts: 1,
    },
    {
      name: 'learns its outcome by asking again',
      answers: [error('UNKNOWN_OUTCOME'), reply(7)],
      expect: 'ok 7',
      attempts: 2,
    },
    {
      name: 'learns a refusal by asking again',
      answers: [error('UNKNOWN_OUTCOME'), error('COMPACTED')],
      expect: 'COMPACTED',
      attempts: 2,
    },
    {
      name: 'that may have been applied does not fail at a full queue',
      answers: [error('UNKNOWN_OUTCOME'), error('RESOURCE_EXHAUSTED'), reply(7)],
      expect: 'ok 7',
      attempts: 3,
    },
    {
      name: 'that may have been applied does not fail by its deadline',
      answers: [error('UNKNOWN_OUTCOME'), error('DEADLINE_EXCEEDED')],
      expect: 'UNKNOWN_OUTCOME',
    },
    {
      name: 'that may have been applied does not fail by an internal error',
      answers: [error('UNKNOWN_OUTCOME'), error('INTERNAL')],
      expect: 'UNKNOWN_OUTCOME',
    },
    {
      name: 'that was applied and whose result is gone says so at once',
      answers: [error('RESULT_LOST')],
      expect: 'RESULT_LOST',
      attempts: 1,
    },
    { name: 'that nobody answers is unknown', answers: [], expect: 'UNKNOWN_OUTCOME' },
  ];
  test.each(rows)('$name', (row) => {
    const bed = new CallBed();
    bed.answers = [...row.answers];
    bed.begin();
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe(row.expect);
    if (row.attempts !== undefined) expect(bed.sent.length).toBe(row.attempts);
    expect(bed.endedMs).toBeLessThanOrEqual(5_000 + 3_000);
    expect(new Set(bed.sent.map(({ request }) => `${request.requestId} ${request.deadlineMs}`)).size).toBeLessThan(2);
    expect(bed.clock.pendingTimers).toBe(0);
  });

  describe('whose range is split', () => {
    const rows: readonly { name: string; answers: readonly Answer[]; expect: string; sentTo: readonly string[] }[] = [
      {
        name: 'is sent to the range that has its key now',
        answers: [staleEpoch(PARTS), reply(7)],
        expect: 'ok 7',
        sentTo: ['2@1', '3@2'],
      },
      {
        name: 'after it may have been applied learns its outcome there',
        answers: [error('UNKNOWN_OUTCOME'), staleEpoch(PARTS), reply(7)],
        expect: 'ok 7',
        sentTo: ['2@1', '2@1', '3@2'],
      },
      {
        name: 'after it may have been applied has not failed when nobody tells its outcome',
        answers: [error('UNKNOWN_OUTCOME'), staleEpoch(PARTS)],
        expect: 'UNKNOWN_OUTCOME',
        sentTo: ['2@1', '2@1', '3@2'],
      },
      {
        name: 'is not sent back by a replica that has not heard of it',
        answers: [staleEpoch(PARTS), staleEpoch([WHOLE]), reply(7)],
        expect: 'ok 7',
        sentTo: ['2@1', '3@2', '3@2'],
      },
      {
        name: 'is sent again as long as nobody says where its key is',
        answers: [staleEpoch([]), staleEpoch([WHOLE]), staleEpoch(PARTS), reply(7)],
        expect: 'ok 7',
        sentTo: ['2@1', '2@1', '2@1', '3@2'],
      },
    ];
    test.each(rows)('$name', (row) => {
      const bed = new CallBed();
      bed.answers = [...row.answers];
      bed.begin();
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe(row.expect);
      expect(bed.sent.map(({ request }) => `${request.rangeId}@${request.epoch.version}`)).toEqual(row.sentTo);
      expect(new Set(bed.sent.map(({ request }) => `${request.requestId} ${request.deadlineMs}`)).size).toBe(1);
    });
  });

  describe('whose keys come to be in several ranges', () => {
    const all = { start: Buffer.from([0]), end: Buffer.from([9]) };
    const rows: readonly { name: string; answers: readonly Answer[]; expect: string; sentTo: readonly string[] }[] = [
      {
        name: 'is sent to none of them',
        answers: [staleEpoch(PARTS)],
        expect: 'STALE_EPOCH',
        sentTo: ['2@1'],
      },
      {
        name: 'after it may have been applied was not when the range does not remember it',
        answers: [error('UNKNOWN_OUTCOME'), staleEpoch(PARTS), staleEpoch([PARTS[1]])],
        expect: 'STALE_EPOCH',
        sentTo: ['2@1', '2@1', '3@2'],
      },
      {
        name: 'after it may have been applied learns its outcome from any of them',
        answers: [error('UNKNOWN_OUTCOME'), staleEpoch(PARTS), reply(7)],
        expect: 'ok 7',
        sentTo: ['2@1', '2@1', '3@2'],
      },
      {
        name: 'is not judged by a replica that has not heard of the split',
        answers: [
          error('UNKNOWN_OUTCOME'),
          staleEpoch(PARTS),
          staleEpoch([WHOLE]),
          error('NOT_LEADER', { leaderNode: 1 }),
          reply(7),
        ],
        expect: 'ok 7',
        sentTo: ['2@1', '2@1', '3@2', '3@2', '3@2'],
      },
      {
        name: 'is not known to have failed once its deadline has passed',
        answers: [error('UNKNOWN_OUTCOME'), staleEpoch(PARTS), error('DEADLINE_EXCEEDED')],
        expect: 'UNKNOWN_OUTCOME',
        sentTo: ['2@1', '2@1', '3@2'],
      },
    ];
    test.each(rows)('$name', (row) => {
      const bed = new CallBed();
      bed.answers = [...row.answers];
      bed.begin({ span: () => all });
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe(row.expect);
      expect(bed.sent.map(({ request }) => `${request.rangeId}@${request.epoch.version}`)).toEqual(row.sentTo);
    });

    test('is executed as ever while one range has all of them', () => {
      const bed = new CallBed();
      bed.answers = [staleEpoch(PARTS), reply(7)];
      bed.begin({ span: () => ({ start: Buffer.from([3]), end: Buffer.from([9]) }) });
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe('ok 7');
    });
  });

  test('that never reached a leader has certainly failed', () => {
    const bed = new CallBed();
    bed.info = () => error('UNAVAILABLE');
    bed.begin();
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe('DEADLINE_EXCEEDED');
    expect(bed.sent).toEqual([]);
  });

  test('believes no replica that names another one, and asks each at most once per round', () => {
    const bed = new CallBed();
    bed.info = (node) => ({ rangeId: 2, leaderNode: node === 1 ? 2 : 1, rangeTimeMs: 1, revision: 1, term: 4 });
    bed.begin();
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe('DEADLINE_EXCEEDED');
    expect(bed.sent).toEqual([]);
    expect(bed.asked.length).toBeLessThanOrEqual(3 * (1 + 3_000 / 25));
  });

  test('takes the time of a range from its leader only', () => {
    const bed = new CallBed();
    bed.leader = 2;
    bed.info = (node) => ({
      rangeId: 2,
      leaderNode: 2,
      rangeTimeMs: node === 2 ? RANGE_TIME_MS : 1,
      revision: 1,
      term: 4,
    });
    bed.answers = [reply(7)];
    bed.begin();
    bed.clock.advance(100);
    expect(bed.sent[0]?.request.deadlineMs).toBeGreaterThan(RANGE_TIME_MS);
    expect(bed.outcome).toBe('ok 7');
  });

  describe('that its range finds allowed by old users and roles (Q5)', () => {
    const stale = (mayCommit = false) => error('STALE_AUTH', { authRevision: 6, mayCommit });
    const rows: readonly { name: string; answers: readonly Answer[]; refused: boolean; expect: string }[] = [
      {
        name: 'is sent again with the revision of the new decision',
        answers: [stale(), reply(7)],
        refused: false,
        expect: 'ok 7',
      },
      {
        name: 'is refused when it is not allowed any more',
        answers: [stale()],
        refused: true,
        expect: 'PERMISSION_DENIED',
      },
      {
        name: 'has an unknown outcome if it is in progress there',
        answers: [stale(true)],
        refused: true,
        expect: 'UNKNOWN_OUTCOME',
      },
      {
        name: 'has an unknown outcome if an earlier attempt may have been applied',
        answers: [error('UNKNOWN_OUTCOME'), stale()],
        refused: true,
        expect: 'UNKNOWN_OUTCOME',
      },
    ];
    test.each(rows)('$name', ({ answers, refused, expect: outcome }) => {
      const bed = new CallBed();
      bed.answers = [...answers];
      const clearance = {
        revision: 5,
        onRefused: undefined,
        again(revision: number, _timeoutMs: number, done: (refusal: ServiceError | undefined) => void) {
          this.revision = revision;
          bed.clock.setTimer(5, () => done(refused ? error('PERMISSION_DENIED') : undefined));
          return () => {};
        },
      };
      bed.begin({ clearance });
      bed.clock.advance(3_500);
      expect(bed.outcome).toBe(outcome);
      expect(bed.sent.at(0)?.request.authRevision).toBe(5);
      if (!refused) expect(bed.sent.at(-1)?.request.authRevision).toBe(6);
    });
  });

  describe('with a deadline that the range refuses', () => {
    const late = error('DEADLINE_EXCEEDED', { rangeTimeMs: RANGE_TIME_MS + 500_000 });
    const early = error('UNAVAILABLE', { rangeTimeMs: RANGE_TIME_MS - 400_000 });

    test.each([
      { name: 'gets another one', refusal: late, timeMs: RANGE_TIME_MS + 500_000 },
      { name: 'gets an earlier one', refusal: early, timeMs: RANGE_TIME_MS - 400_000 },
    ])('$name, as nothing was applied', ({ refusal, timeMs }) => {
      const bed = new CallBed();
      bed.answers = [refusal, reply(7)];
      bed.begin();
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe('ok 7');
      const deadlines = bed.sent.map(({ request }) => request.deadlineMs);
      expect(Math.abs((deadlines[1] ?? 0) - timeMs - 3_000)).toBeLessThan(20);
    });

    test('keeps it once an attempt may have been applied', () => {
      const bed = new CallBed();
      bed.answers = [error('UNKNOWN_OUTCOME'), late, reply(7)];
      bed.begin();
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe('UNKNOWN_OUTCOME');
      expect(new Set(bed.sent.map(({ request }) => request.deadlineMs)).size).toBe(1);
    });

    test('keeps it when the client fixed it', () => {
      const bed = new CallBed();
      bed.answers = [late, reply(7)];
      bed.begin({ deadlineMs: RANGE_TIME_MS + 9 });
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe('DEADLINE_EXCEEDED');
      expect(bed.sent.map(({ request }) => request.deadlineMs)).toEqual([RANGE_TIME_MS + 9]);
    });

    test('does not look for one for ever', () => {
      const bed = new CallBed();
      bed.answers = Array.from({ length: 50 }, () => late);
      bed.begin();
      bed.clock.advance(10_000);
      expect(bed.outcome).toBe('DEADLINE_EXCEEDED');
      expect(bed.sent.length).toBeLessThan(10);
    });
  });

  test('that was given up is never answered, and asks nobody any more', () => {
    const bed = new CallBed();
    const call = bed.begin();
    bed.clock.advance(10);
    call.cancel();
    const { length } = bed.sent;
    bed.clock.advance(10_000);
    expect(bed.outcome).toBeUndefined();
    expect(bed.sent.length).toBe(length);
  });
});

describe('a routed query', () => {
  test('that is not answered has failed: it changed nothing', () => {
    const bed = new CallBed();
    bed.begin({ command: false, requestId: '' });
    bed.clock.advance(10_000);
    expect(bed.outcome).toBe('DEADLINE_EXCEEDED');
    expect(bed.endedMs).toBeLessThanOrEqual(8_000);
    expect(bed.sent.every(({ request }) => request.deadlineMs === 0)).toBe(true);
  });

  test('whose keys are in several ranges is asked of none', () => {
    const bed = new CallBed();
    bed.answers = [staleEpoch(PARTS)];
    bed.begin({ command: false, requestId: '', span: () => ({ start: Buffer.from([0]), end: Buffer.from([9]) }) });
    bed.clock.advance(10_000);
    expect([bed.outcome, bed.sent.length]).toEqual(['STALE_EPOCH', 1]);
  });

  test.each([true, false])(
    'that waits for something to happen (%s) leaves the leader trusted when nothing does',
    (awaits) => {
      const bed = new CallBed();
      bed.routes.learnLeader(2, 1);
      bed.begin({ command: false, requestId: '', awaits, attemptMs: 3_000 });
      bed.clock.advance(3_000);
      expect(bed.sent.length).toBe(1);
      expect(bed.routes.leader(2)).toBe(awaits ? 1 : 0);
    },
  );
});

test('a request is under way until it is answered, times out, or the caller has given up', () => {
  const bed = new CallBed();
  bed.begin();
  expect(bed.inFlight.calls).toBe(1);
  bed.clock.advance(10_000);
  expect(bed.outcome).toBeDefined();
  expect(bed.inFlight.calls).toBe(0);
  const other = new CallBed();
  const call = other.begin();
  call.cancel();
  call.cancel();
  other.clock.advance(10_000);
  expect(other.inFlight.calls).toBe(0);
});
