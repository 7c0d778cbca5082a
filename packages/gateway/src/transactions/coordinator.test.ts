import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { kvRoutingKey, rangeOp } from '@remora/protocol';
import { expect, test } from 'vitest';
import { FakeRanges } from '../../test/support/fake-ranges.ts';
import { CLUSTER } from '../authorisation/clearance.ts';
import type { RangeCallsDeps } from '../routing/calls/range-calls.ts';
import { Coordinator } from './coordinator.ts';

const put = (key: string) => ({
  ...{ type: 'put' as const, key: Buffer.from(key), value: Buffer.from('v'), lease: 0n },
  ...{ prevKv: false, ignoreValue: false, ignoreLease: false },
});
const BOTH = { type: 'txn' as const, txn: { compare: [], success: [put('a'), put('z')], failure: [] } };

test('a transaction counts as under way until ranges have nothing of it any more, also when nobody waits for it', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const coordinator = new Coordinator({ ...ranges.calls(), newTxnId: () => 't1' });
  expect(coordinator.inFlight).toBe(0);
  const giveUp = coordinator.command(
    BOTH,
    { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER },
    () => expect.unreachable('nobody waits'),
    undefined,
  );
  giveUp();
  for (let steps = 0; coordinator.inFlight > 0; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
    if (ranges.ranges.some(({ prepared }) => prepared.size > 0)) expect(coordinator.inFlight).toBeGreaterThan(0);
    expect(steps).toBeLessThan(1_000);
  }
  expect(ranges.commits).toMatchObject([{ requestId: 'r' }]);
  expect(ranges.ranges.flatMap(({ prepared, records }) => [...prepared, ...records])).toEqual([]);
});

test('a transaction that changes nothing uses no revision up (AT1)', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const coordinator = new Coordinator({ ...ranges.calls(), newTxnId: () => `t${++attempts}` });
  let attempts = 0;
  const answered: (number | undefined)[] = [];
  const send = async (command: Parameters<Coordinator['command']>[0]): Promise<void> => {
    const before = answered.length;
    const identity = { requestId: `r${before}`, deadlineMs: 9_000, timeoutMs: 1_000, clearance: CLUSTER };
    coordinator.command(command, identity, (_error, reply) => answered.push(reply?.revision), undefined);
    for (let steps = 0; answered.length === before && steps < 1_000; steps++) {
      for (let turn = 0; turn < 25; turn++) await Promise.resolve();
      clock.fireNext();
    }
  };
  const remove = {
    type: 'kv',
    op: { type: 'delete', key: Buffer.from('a'), end: Buffer.from('zz'), prevKv: false },
  } as const;
  for (const command of [remove, BOTH, remove, remove]) await send(command);
  expect(answered).toEqual([100, 101, 102, 102]);
  expect([ranges.revision, ranges.pairs.size]).toEqual([102, 0]);
});

test('what it fails for says that it is not remembered (AT5)', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const code = 'LEASE_NOT_FOUND' as const;
  ranges.failures.push({ branch: 0, number: 0, code, message: 'there is no such lease' });
  const coordinator = new Coordinator({ ...ranges.calls(), newTxnId: () => 't1' });
  let failure: ServiceError | undefined;
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command(
    BOTH,
    identity,
    (error) => {
      failure = error;
    },
    undefined,
  );
  for (let steps = 0; failure === undefined && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  expect(failure).toMatchObject({ code, details: { unremembered: true } });
  expect(ranges.commits).toEqual([]);
});

test('a decision that was applied is not undone in other ranges when its answer is taken for a refusal (SE4)', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const calls = ranges.calls();
  const execute: typeof calls.execute = (build, span, options, done) => {
    let decides = false;
    const watched: typeof build = (...args) => {
      const command = build(...args);
      decides = command.type === 'txnDecide' && command.decision.type === 'commit';
      return command;
    };
    return calls.execute(watched, span, options, (error, reply) =>
      decides ? done(new ServiceError('RESOURCE_EXHAUSTED', 'too large'), undefined) : done(error, reply),
    );
  };
  const coordinator = new Coordinator({ ...calls, execute, newTxnId: () => 't1' });
  let code: string | undefined;
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command(
    BOTH,
    identity,
    (error) => {
      code = error?.code;
    },
    undefined,
  );
  for (let steps = 0; (code === undefined || coordinator.inFlight > 0) && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  expect(code).toBe('RESOURCE_EXHAUSTED');
  expect(ranges.pairs.size).toBe(2);
  expect(ranges.ranges.flatMap(({ prepared }) => [...prepared])).toEqual([]);
});

test('what a range tells nothing of is not told as nothing found', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const calls = ranges.calls();
  // As at a revision that a merge of the range has compacted since.
  const execute: typeof calls.execute = (build, span, options, done) =>
    calls.execute(build, span, options, (error, reply) =>
      reply?.result.type === 'txnResolve' && reply.result.results !== undefined
        ? done(undefined, { ...reply, result: { type: 'txnResolve', results: [] } })
        : done(error, reply),
    );
  const coordinator = new Coordinator({ ...calls, execute, newTxnId: () => 't1' });
  const read = rangeOp({ key: Buffer.from('z') }, { revision: 3 });
  const txn = { type: 'txn' as const, txn: { compare: [], success: [put('a'), read], failure: [] } };
  const told: unknown[] = [];
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command(txn, identity, (error, reply) => void told.push(error ?? reply), undefined);
  for (let steps = 0; told.length === 0 && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  expect(told).toMatchObject([{ code: 'RESULT_LOST' }]);
});

test.each([
  { name: 'whose answer is too large', error: new ServiceError('RESULT_LOST', 'the answer is too large') },
  { name: 'after which the other ranges are silent', error: undefined },
])('a decision $name is known: the client hears that the transaction was applied', async ({ error: ofDecision }) => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const calls = ranges.calls();
  const execute: typeof calls.execute = (build, span, options, done) =>
    calls.execute(build, span, options, (error, reply) => {
      if (reply?.result.type === 'txnDecide' && ofDecision !== undefined) return done(ofDecision, undefined);
      if (reply?.result.type === 'txnResolve' && ofDecision === undefined) return;
      done(error, reply);
    });
  const coordinator = new Coordinator({ ...calls, execute, newTxnId: () => 't1' });
  const txn = { compare: [], success: [put('a'), { ...put('z'), prevKv: true }], failure: [] };
  const told: unknown[] = [];
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command({ type: 'txn', txn }, identity, (error, reply) => void told.push(error ?? reply), undefined);
  for (let steps = 0; (told.length === 0 || coordinator.inFlight > 0) && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  const [{ revision } = { revision: 0 }] = ranges.commits;
  expect(told).toMatchObject([{ code: 'RESULT_LOST', details: { revision } }]);
  expect([ranges.pairs.size, ranges.ranges.flatMap(({ prepared }) => [...prepared])]).toEqual([2, []]);
});

test.each([
  { name: 'was never sent, as nobody leads its range', sent: false, code: 'DEADLINE_EXCEEDED' },
  { name: 'was sent, and its answer is lost', sent: true, code: 'UNKNOWN_OUTCOME' },
])('a decision that $name ends the request as $code (CT2)', async ({ sent, code }) => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), [kvRoutingKey(Buffer.from('m'))]);
  const calls = ranges.calls();
  let held = true;
  // As calls of the router do, it ends by its time-out, and says whether the command may have been applied.
  const execute: typeof calls.execute = (build, span, options, done) => {
    if (!held || build(0, 0).type !== 'txnDecide') return calls.execute(build, span, options, done);
    held = false;
    const answer = new ServiceError(code as 'UNKNOWN_OUTCOME', 'no answer');
    const giveUp = sent ? calls.execute(build, span, options, () => {}) : () => {};
    const timer = clock.setTimer(options.timeoutMs, () => done(answer, undefined));
    return () => {
      timer.cancel();
      giveUp();
    };
  };
  const coordinator = new Coordinator({ ...calls, execute, newTxnId: () => 't1' });
  const told: unknown[] = [];
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command(BOTH, identity, (error, reply) => void told.push(error ?? reply), undefined);
  for (let steps = 0; (told.length === 0 || coordinator.inFlight > 0) && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  expect(told).toMatchObject([{ code }]);
  expect(ranges.commits).toHaveLength(sent ? 1 : 0);
  if (!sent) expect(ranges.ranges.flatMap(({ prepared, records }) => [...prepared, ...records])).toEqual([]);
});

test('a request that one range has by now, and that was never sent there, is not unknown', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const ranges = new FakeRanges(clock, new SeededRandom(1), []);
  const execute: RangeCallsDeps['execute'] = (_build, _span, { timeoutMs }, done) => {
    const answer = new ServiceError('DEADLINE_EXCEEDED', 'no leader of the range answered in time');
    const timer = clock.setTimer(timeoutMs, () => done(answer, undefined));
    return () => timer.cancel();
  };
  const coordinator = new Coordinator({ ...ranges.calls(), execute, newTxnId: () => 't1' });
  const told: unknown[] = [];
  const identity = { requestId: 'r', deadlineMs: 5_000, timeoutMs: 1_000, clearance: CLUSTER };
  coordinator.command(BOTH, identity, (error, reply) => void told.push(error ?? reply), undefined);
  for (let steps = 0; told.length === 0 && steps < 1_000; steps++) {
    for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    clock.fireNext();
  }
  expect(told).toMatchObject([{ code: 'DEADLINE_EXCEEDED' }]);
});
