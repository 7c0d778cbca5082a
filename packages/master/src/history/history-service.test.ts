import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  createLocalChannel,
  createRpcRegistry,
  type HeatReply,
  type HeatRequest,
  MEASURES,
  MINUTE_MS,
  masterActivity,
  masterHeat,
} from '@remora/protocol';
import { beforeEach, expect, test } from 'vitest';
import { ClusterHistory } from './cluster-history.ts';
import { registerHistory } from './history-service.ts';

const ALL = { minutes: 60, columns: 8, measure: 'reads', start: Buffer.of(), end: Buffer.of() } as const;

let clock: ManualClock;
let history: ClusterHistory;
let refusal: ServiceError | undefined;

beforeEach(() => {
  clock = new ManualClock();
  history = new ClusterHistory();
  refusal = undefined;
});

function channel() {
  const registry = createRpcRegistry();
  registerHistory(registry, { clock, history, confirm: (done) => done(refusal) });
  return createLocalChannel({ registry, clock });
}

/** Node 1 reports 5 reads of `k` in each of the next minutes. */
function pass(minutes: number): void {
  for (let i = 0; i < minutes; i++) {
    const minute = Math.floor(clock.wallMs() / MINUTE_MS);
    clock.advance(MINUTE_MS);
    const values = new Array<number>(2 * MEASURES).fill(0);
    values[MEASURES] = 5;
    const heat = { borders: [Buffer.of(), Buffer.from('k')], values };
    history.reported(1, { minute, rates: { readsPerS: 5 / 60 }, heat }, clock.wallMs());
  }
}

function heats(count: number, request: (i: number) => HeatRequest = () => ALL, to = channel()) {
  const answers: (HeatReply | ServiceError)[] = [];
  for (let i = 0; i < count; i++) {
    to.call(masterHeat, request(i), { timeoutMs: 1_000 }, (error, reply) =>
      answers.push(error ?? (reply as HeatReply)),
    );
  }
  return answers;
}

test('answers with what nodes reported in the last minutes, by turns of the event loop (HQ2)', () => {
  pass(30);
  const answers = heats(1);
  expect(answers).toEqual([]);
  for (let turn = 0; turn < 20; turn++) clock.advance(1);
  const [heat] = answers as HeatReply[];
  expect(heat?.span.count).toBe(30);
  expect(heat?.borders.map((border) => Buffer.from(border).toString())).toEqual(['', 'k']);
  expect(heat?.values.reduce((a, b) => a + b, 0)).toBe(150);
});

test('works on one query after the other, and refuses those above its limit (HA1)', () => {
  pass(30);
  const answers = heats(18, (i) => ({ ...ALL, columns: i + 1 }));
  expect(answers.map((answer) => (answer instanceof ServiceError ? answer.code : 'ok'))).toEqual([
    'RESOURCE_EXHAUSTED',
    'RESOURCE_EXHAUSTED',
  ]);
  clock.advance(1);
  expect(answers).toHaveLength(18);
  const later = heats(1);
  clock.advance(1);
  expect(later[0]).not.toBeInstanceOf(ServiceError);
});

test('gives the same answer to all who ask the same in a minute and a term (HA2)', () => {
  pass(3);
  const to = channel();
  const answers = heats(3, () => ALL, to);
  clock.advance(1);
  answers.push(...heats(1, () => ALL, to));
  const spans = [...new Set(answers)] as HeatReply[];
  expect([answers.length, spans.length]).toEqual([4, 1]);
  pass(1);
  const next = heats(1, () => ALL, to);
  clock.advance(1);
  expect((next[0] as HeatReply).span.count).toBe(4);
  history.termBegan();
  const anew = heats(1, () => ALL, to);
  clock.advance(1);
  expect((anew[0] as HeatReply).span.count).toBe(0);
});

test('a query that the end of a term interrupts is not answered with half of the load', () => {
  pass(30);
  const answers = heats(2);
  history.termBegan();
  clock.advance(1);
  expect(answers.map((answer) => (answer as ServiceError).code)).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
});

test('only the leader answers', () => {
  refusal = new ServiceError('NOT_LEADER', 'another one leads');
  const codes: unknown[] = [];
  channel().call(masterActivity, { minutes: 5 }, { timeoutMs: 1_000 }, (error) => codes.push(error?.code));
  expect([...codes, ...heats(1).map((answer) => (answer as ServiceError).code)]).toEqual(['NOT_LEADER', 'NOT_LEADER']);
});
