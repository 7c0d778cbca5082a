import { EMPTY_BYTES } from '@remora/base';
import { type Command, kvRoutingKey, type RangeDescriptor, type SealedRange } from '@remora/protocol';
import { confOf, forcedChange } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, type del, put, range, StateBed, show } from '../../../test/support/state-bed.ts';
import { commitAt, prepare, prepared, resolve } from '../../../test/support/txn-bed.ts';
import { attachableSpan, rangeSpans, spansOverlap } from '../bounds.ts';
import { leaseKey, localSpan } from '../keys.ts';
import { decodeRangeMeta, encodeRangeMeta } from '../meta-codec.ts';
import type { Outcome } from '../outcomes/outcome-codec.ts';
import { encodeKnownEpoch } from './membership.ts';
import { unionOf, withoutKeys } from './merge.ts';
import { verdictOn } from './merging.ts';

const kv = (op: ReturnType<typeof put> | ReturnType<typeof del> | ReturnType<typeof range>) => {
  if (op.type === 'txn') throw new Error('not here');
  return { type: 'kv' as const, op };
};
const atKey = (key: string): Buffer => kvRoutingKey(Buffer.from(key));
const M = atKey('m');

function code(outcome: Outcome): string {
  return outcome.ok ? 'ok' : outcome.code;
}

/** Two neighbours over one engine, both of which the master numbers: `left` has id 2 and the keys before `at`. */
async function neighbours(at: Buffer = M): Promise<{ left: StateBed; right: StateBed }> {
  const left = new StateBed();
  return { left, right: await splitOff(left, at) };
}

async function splitOff(left: StateBed, at: Buffer): Promise<StateBed> {
  const ids = [{ nodeId: 1, replicaId: 31 }];
  await left.ok({ type: 'split', at, epoch: DESCRIPTOR.epoch, childId: 3, replicas: ids, keys: 0, bytes: 0 });
  const [start] = left.children;
  if (start === undefined) throw new Error('a split makes a child');
  const right = new StateBed({ engine: left.engine, start });
  left.block = { first: 100, count: 100 };
  right.block = { first: 200, count: 100 };
  left.neighbours = [right];
  right.neighbours = [left];
  return right;
}

async function seal(source: StateBed, target: StateBed): Promise<SealedRange> {
  const into = { targetId: target.state.rangeId, round: target.state.merging.round };
  const result = await source.ok({ type: 'seal', epoch: source.state.descriptor.epoch, into });
  if (result.type !== 'seal') throw new Error('a seal is answered so');
  return result.sealed;
}

function mergeOf(target: StateBed, source: SealedRange, more: { round?: number } = {}): Command {
  const { descriptor, merging } = target.state;
  return { type: 'merge', epoch: descriptor.epoch, round: merging.round, source, ...more };
}

function goOnAlone({ state }: StateBed): void {
  const { applied } = state;
  const alone = forcedChange(31, encodeKnownEpoch({ confVersion: 8, version: 3 }));
  state.reconfigure({ index: applied.index + 1, term: applied.term + 1 }, confOf([31]), alone);
}

describe('a sealed range', () => {
  test('refuses every command, remembers nothing of that, and its time stands still, whatever its log has', async () => {
    const { left, right } = await neighbours();
    await right.ok(kv(put('z', '1')));
    await right.ok({ type: 'leaseGrant', id: 7n, ttlMs: 1_000, attributes: {} }).catch(() => {});
    await seal(right, left);
    const before = [right.state.revision, right.state.rangeTimeMs, right.state.outcomes.count];
    right.timeMs = 90_000;
    const { epoch } = right.state.descriptor;
    const commands: Command[] = [
      kv(put('z', '2')),
      kv(range('z')),
      { type: 'noop' },
      { type: 'compact', revision: 1 },
      { type: 'split', at: atKey('x'), epoch, childId: 9, replicas: [{ nodeId: 1, replicaId: 91 }], keys: 0, bytes: 0 },
      mergeOf(right, await seal(right, left)),
    ];
    for (const command of commands) {
      expect(code(await right.run(command, { requestId: command.type, deadlineMs: 99_000 }))).toBe('UNAVAILABLE');
    }
    expect([right.state.revision, right.state.rangeTimeMs, right.state.outcomes.count]).toEqual(before);
  });

  test('is sealed once: for the same round again it says the same, for another it refuses', async () => {
    const { left, right } = await neighbours();
    const first = await seal(right, left);
    await right.run({ type: 'noop' });
    expect(await seal(right, left)).toEqual(first);
    const other = { targetId: 2, round: 1 };
    expect(code(await right.run({ type: 'seal', epoch: first.descriptor.epoch, into: other }))).toBe('UNAVAILABLE');
  });

  test('serves again once it is unsealed, for the round that it was sealed for and no other', async () => {
    const { left, right } = await neighbours();
    await seal(right, left);
    expect(code(await right.run({ type: 'unseal', from: { targetId: 2, round: 1 } }))).toBe('INVALID_ARGUMENT');
    expect(code(await right.run(kv(put('z', '1'))))).toBe('UNAVAILABLE');
    await right.ok({ type: 'unseal', from: { targetId: 2, round: 0 } });
    await right.ok(kv(put('z', '1')));
    expect(code(await right.run({ type: 'unseal', from: { targetId: 2, round: 0 } }))).toBe('INVALID_ARGUMENT');
  });

  test('stays sealed over a crash once that was in a checkpoint', async () => {
    const { left, right } = await neighbours();
    const sealed = await seal(right, left);
    await left.checkpoint();
    await right.checkpoint();
    const again = new StateBed({ engine: right.engine, descriptor: right.state.descriptor });
    expect(again.state.merging.seal).toEqual({ targetId: 2, round: 0, index: sealed.index });
    expect(code(await again.run(kv(put('z', '1'))))).toBe('UNAVAILABLE');
  });

  test('has the time of its seal for all of the entry that unseals it, also where a crash falls into that', async () => {
    const results = [];
    for (const crashes of [false, true]) {
      const { left, right } = await neighbours();
      await right.ok(kv(put('z', '1')));
      await seal(right, left);
      right.timeMs = 90_000;
      const unseal: Command = { type: 'unseal', from: { targetId: 2, round: 0 } };
      const late = { command: kv(range('x', '~')), requestId: 'r', deadlineMs: 50_000 };
      const entry = right.batch([{ command: unseal }, late]);
      if (crashes) {
        expect(right.state.appliedAhead).toBe(1);
        await right.checkpoint();
        right.crash();
        results.push((await right.batch([{ command: unseal }, late])).slice(1));
      } else results.push((await entry).slice(1));
      expect(right.state.rangeTimeMs).toBeLessThan(90_000);
    }
    expect(results[1]).toEqual(results[0]);
  });

  test('may still refuse a merge into itself: two that are sealed for each other come apart', async () => {
    const { left, right } = await neighbours();
    await seal(right, left);
    await seal(left, right);
    await left.ok({ type: 'refuseMerge', round: 0 });
    await right.ok({ type: 'unseal', from: { targetId: 2, round: 0 } });
    await right.ok(kv(put('z', '1')));
  });

  test.each([
    { name: 'an earlier epoch', more: { epoch: { confVersion: 1, version: 1 } }, expected: 'STALE_EPOCH' },
    { name: 'another membership', more: { epoch: { confVersion: 2, version: 2 } }, expected: 'STALE_EPOCH' },
    { name: 'itself', more: { into: { targetId: 3, round: 0 } }, expected: 'INVALID_ARGUMENT' },
  ])('is not made for $name', async ({ more, expected }) => {
    const { right } = await neighbours();
    const { epoch } = right.state.descriptor;
    expect(code(await right.run({ type: 'seal', epoch, into: { targetId: 2, round: 0 }, ...more }))).toBe(expected);
    expect(right.state.merging.seal).toBeUndefined();
  });

  test('is not made of one whose membership is joint, nor of one that counts by itself', async () => {
    const { right } = await neighbours();
    right.state.conf = { ...right.state.conf, votersOutgoing: [31, 32] };
    const into = { targetId: 2, round: 0 };
    expect(code(await right.run({ type: 'seal', epoch: right.state.descriptor.epoch, into }))).toBe('UNAVAILABLE');
    const whole = new StateBed();
    const alone = { type: 'seal', epoch: DESCRIPTOR.epoch, into: { targetId: 9, round: 0 } } as const;
    expect(code(await whole.run(alone))).toBe('INVALID_ARGUMENT');
  });
});

describe('a merge', () => {
  test('gives the target the keys of both, with all their rows, and goes on with them', async () => {
    const { left: target, right: source } = await neighbours();
    for (const value of ['1', '2']) {
      await target.ok(kv(put('a', value)));
      await source.ok(kv(put('z', value)));
    }
    await target.ok(mergeOf(target, await seal(source, target)));
    expect(target.absorbed).toEqual([source.state.rangeId]);
    const { descriptor } = target.state;
    expect([descriptor.start, descriptor.end, descriptor.epoch.version]).toEqual([EMPTY_BYTES, EMPTY_BYTES, 3]);
    expect(target.state).toMatchObject({ revision: 201, keys: 2, bytes: 4 });
    expect(show(await target.ok(kv(range('a', '~'))))).toBe('a=2@101/100/2 z=2@201/200/2');
    expect(show(await target.ok(kv(range('z', undefined, { revision: 200 }))))).toBe('z=1@200/200/1');
    target.block = { first: 300, count: 100 };
    await target.ok({ type: 'txn', txn: { compare: [], success: [put('a', '3'), put('z', '3')], failure: [] } });
    expect(show(await target.ok(kv(range('a', '~'))))).toBe('a=3@300/100/3 z=3@300/200/3');
  });

  test('unites what both remember: whoever asks again is answered, and what both knew is kept once', async () => {
    const whole = new StateBed();
    const both = { requestId: 'both', deadlineMs: 50_000 };
    const first = await whole.run(kv(put('a', '0')), both);
    const replicas = [{ nodeId: 1, replicaId: 31 }];
    await whole.ok({ type: 'split', at: M, epoch: DESCRIPTOR.epoch, childId: 3, replicas, keys: 0, bytes: 0 });
    const [start] = whole.children;
    if (start === undefined) throw new Error('a split makes a child');
    const right = new StateBed({ engine: whole.engine, start });
    whole.neighbours = [right];
    [whole.block, right.block] = [
      { first: 100, count: 9 },
      { first: 200, count: 9 },
    ];
    const late = { requestId: 'late', deadlineMs: 50_000 };
    const answered = await right.run(kv(put('z', '1')), late);
    await whole.ok(mergeOf(whole, await seal(right, whole)));
    expect(await whole.run(kv(put('z', '1')), late)).toEqual(answered);
    expect(await whole.run(kv(put('a', '0')), both)).toEqual(first);
    expect(whole.state.outcomes.count).toBe(2);
    expect([...whole.state.outcomes.askable(0)].map(({ requestId }) => requestId)).toEqual(['both', 'late']);
    await whole.checkpoint();
    whole.crash();
    expect(await whole.run(kv(put('z', '1')), late)).toEqual(answered);
  });

  test('takes the later time of both: a command that either has forgotten is past its deadline', async () => {
    const { left, right } = await neighbours();
    await right.run(kv(put('z', '1')), { requestId: 'once', deadlineMs: 2_000 });
    right.timeMs = 60_000;
    await right.ok({ type: 'noop' });
    expect(right.state.outcomes.count).toBe(0);
    await left.ok(mergeOf(left, await seal(right, left)));
    expect(left.state.rangeTimeMs).toBe(60_000);
    expect(code(await left.run(kv(put('z', '2')), { requestId: 'once', deadlineMs: 2_000 }))).toBe('DEADLINE_EXCEEDED');
    expect(show(await left.ok(kv(range('z'))))).toBe('z=1@200/200/1');
  });

  test('keeps what a range whose time lags remembers for as long as that would have', async () => {
    const { left, right } = await neighbours();
    await right.run(kv(put('z', '1')), { requestId: 'r', deadlineMs: 11_000 }); // 10 s ahead of its time
    left.timeMs = 500_000;
    await left.ok(mergeOf(left, await seal(right, left)));
    left.timeMs = 509_000;
    await left.ok({ type: 'noop' });
    expect(left.state.outcomes.recall('r')).toMatchObject({ ok: true });
    left.timeMs = 511_000;
    await left.ok({ type: 'noop' });
    expect(left.state.outcomes.recall('r')).toBeUndefined();
  });

  test('takes the leases along, with what belongs to them', async () => {
    const { left, right } = await neighbours(leaseKey(5n));
    await left.ok({ type: 'leaseGrant', id: 4n, ttlMs: 5_000, attributes: {} });
    await right.ok({ type: 'leaseGrant', id: 6n, ttlMs: 5_000, attributes: {} });
    await right.ok(kv(put('a', '1', { lease: 6n })));
    await left.ok(mergeOf(left, await seal(right, left)));
    expect([...left.state.leases.all()].map(({ id }) => id)).toEqual([4n, 6n]);
    left.block = { first: 400, count: 9 };
    await left.ok({ type: 'leaseRevoke', id: 6n, incarnation: 0 });
    expect(show(await left.ok(kv(range('a'))))).toBe('');
  });

  test('executes writes that were prepared with a lease which the target has ended by then, and takes them away with it', async () => {
    const left = new StateBed();
    await left.ok({ type: 'leaseGrant', id: 6n, ttlMs: 5_000, attributes: {} });
    await left.ok(kv(put('n', '1', { lease: 6n })));
    await left.ok(kv(put('z', '1')));
    const right = await splitOff(left, M);
    const { incarnation = 0, spans: [span] = [] } = left.state.leases.get(6n) ?? {};
    if (span === undefined) throw new Error('the lease has something in both');
    const ops = [put('n', '2', { ignoreLease: true }), put('y', '2', { lease: 6n }), put('z', '2', { lease: 6n })];
    await prepared(right, prepare('t', 1, ops));
    await left.ok({ type: 'leaseRevoke', id: 6n, incarnation });
    await left.ok(mergeOf(left, await seal(right, left)));
    const end = { type: 'leaseEnd', id: 6n, incarnation, span } as const;
    left.block = { first: 400, count: 9 };
    expect(await left.run(end)).toMatchObject({ ok: false, details: { heldBy: 't' } });
    await left.ok(resolve('t', commitAt(300), left));
    expect(show(await left.ok(kv(range('n', '~'))))).toBe('n=2@300/3/2 y=2@300/300/1 z=2@300/4/2');
    expect(await left.ok(end)).toMatchObject({ more: true }); // First what is of the home, then what is behind the reference.
    expect(await left.ok(end)).toMatchObject({ more: false });
    await left.ok({ type: 'leaseSettle', id: 6n, incarnation, span });
    expect([show(await left.ok(kv(range('n', '~')))), left.state.leases.has(6n)]).toEqual(['', false]);
    expect(left.state.references.size).toBe(0);
  });

  test('compacts to where either was compacted', async () => {
    const { left, right } = await neighbours();
    for (const value of ['1', '2', '3']) await right.ok(kv(put('z', value)));
    await right.ok({ type: 'compact', revision: 201 });
    await left.ok(mergeOf(left, await seal(right, left)));
    expect(left.state.compactRevision).toBe(201);
    expect(code(await left.run(kv(range('z', undefined, { revision: 200 }))))).toBe('COMPACTED');
  });

  test('PE3: executes a part whose read at an earlier revision it has compacted, without a result of that read', async () => {
    const { left, right } = await neighbours();
    for (const value of ['1', '2', '3']) await right.ok(kv(put('z', value)));
    await prepared(right, prepare('t', 1, [range('z', undefined, { revision: 201 }), put('y', '2', { prevKv: true })]));
    left.block = { first: 300, count: 9 };
    await left.ok(kv(put('a', '1')));
    await left.ok({ type: 'compact', revision: 300 });
    await left.ok(mergeOf(left, await seal(right, left)));
    expect(await left.ok(resolve('t', commitAt(400), left))).toEqual({
      type: 'txnResolve',
      results: [{ number: 11, key: Buffer.from('y'), result: { type: 'put', prev: undefined } }],
    });
    expect(show(await left.ok(kv(range('y'))))).toBe('y=2@400/400/1');
  });

  test('takes over a source that went on alone since it was sealed, and goes on above what that skipped', async () => {
    const { left, right } = await neighbours();
    await right.ok(kv(put('z', '1')));
    const merge = mergeOf(left, await seal(right, left));
    goOnAlone(right);
    const { revision, descriptor } = right.state;
    await left.ok(merge);
    expect([left.state.revision, left.state.compactRevision]).toEqual([revision, revision]);
    expect(left.state.descriptor.epoch.version).toBeGreaterThan(descriptor.epoch.version);
  });

  test('is known for good: over a crash, and by whoever takes the target over', async () => {
    const { left, right } = await neighbours();
    await left.ok(mergeOf(left, await seal(right, left)));
    await left.checkpoint();
    left.crash();
    expect(left.state.merging).toEqual({ seal: undefined, round: 1, absorbed: [3] });
    const of3 = { targetId: 2, round: 0 };
    expect(verdictOn(of3, 3, left.state)).toBe('merged');
    expect(verdictOn({ targetId: 2, round: 0 }, 4, left.state)).toBe('refused');
    expect(verdictOn({ targetId: 2, round: 1 }, 4, left.state)).toBe('open');
    const successor = { rangeId: 8, merging: { seal: undefined, round: 5, absorbed: [2, 3] } };
    expect([verdictOn(of3, 3, successor), verdictOn(of3, 4, successor)]).toEqual(['merged', 'refused']);
    expect(verdictOn({ targetId: 9, round: 0 }, 3, successor)).toBeUndefined();
  });
});

describe('a merge is refused, and changes nothing', () => {
  const changed = (descriptor: RangeDescriptor, more: Partial<RangeDescriptor>) => ({ ...descriptor, ...more });
  const other = { replicas: [{ replicaId: 31, nodeId: 2, type: 'voter' as const }] };
  test.each<{ name: string; change: (sealed: SealedRange) => SealedRange; expected: string; says: string }>([
    {
      name: 'of ranges that are no neighbours',
      change: (sealed) => ({ ...sealed, descriptor: changed(sealed.descriptor, { start: atKey('n') }) }),
      ...{ expected: 'INVALID_ARGUMENT', says: 'does not begin where it ends' },
    },
    {
      name: 'of replicas on other nodes',
      change: (sealed) => ({ ...sealed, descriptor: changed(sealed.descriptor, other) }),
      ...{ expected: 'INVALID_ARGUMENT', says: 'nodes 2' },
    },
    {
      name: 'of one that counts by itself',
      change: (sealed) => ({ ...sealed, descriptor: changed(sealed.descriptor, { revisionSource: 'range' }) }),
      ...{ expected: 'INVALID_ARGUMENT', says: 'counts' },
    },
  ])('$name', async ({ change, expected, says }) => {
    const { left, right } = await neighbours();
    const sealed = await seal(right, left);
    const outcome = await left.run(mergeOf(left, change(sealed)));
    expect(code(outcome)).toBe(expected);
    expect(outcome.ok ? '' : outcome.message).toContain(says);
    expect([left.state.merging.round, left.absorbed, left.state.descriptor.end]).toEqual([0, [], M]);
    await left.ok(mergeOf(left, sealed)); // none of this has decided anything
  });

  test('by a round that is decided: a merge that comes late in the log does nothing', async () => {
    const { left, right } = await neighbours();
    const sealed = await seal(right, left);
    const late = mergeOf(left, sealed);
    await left.ok({ type: 'refuseMerge', round: 0 });
    expect(code(await left.run(late))).toBe('INVALID_ARGUMENT');
    expect(code(await left.run({ type: 'refuseMerge', round: 0 }))).toBe('INVALID_ARGUMENT');
    await right.ok({ type: 'unseal', from: { targetId: 2, round: 0 } });
    // The next round is another one.
    await left.ok(mergeOf(left, await seal(right, left)));
    expect(left.state.merging).toMatchObject({ round: 2, absorbed: [3] });
  });

  test('after a split of the target, or a change of its members: they were compared before', async () => {
    const { left, right } = await neighbours();
    const command = mergeOf(left, await seal(right, left));
    const replicas = [{ nodeId: 1, replicaId: 41 }];
    const { epoch } = left.state.descriptor;
    await left.ok({ type: 'split', at: atKey('c'), epoch, childId: 4, replicas, keys: 0, bytes: 0 });
    expect(code(await left.run(command))).toBe('STALE_EPOCH');
    expect(left.state.merging.round).toBe(0);
  });

  const hereIn = ({ state }: StateBed) => {
    const span = attachableSpan(state.bounds);
    if (span === undefined) throw new Error('keys may belong to leases there');
    return span;
  };
  const refer = async (bed: StateBed, incarnation: number): Promise<unknown> =>
    bed.ok({ type: 'leaseRefer', id: 6n, incarnation, span: hereIn(bed) });
  const grant = async (bed: StateBed): Promise<unknown> =>
    bed.ok({ type: 'leaseGrant', id: 6n, ttlMs: 5_000, attributes: {} });
  test.each([
    { name: 'both refer to it', at: M, later: (left: StateBed) => refer(left, 8) },
    { name: 'the target is the home of the later one', at: leaseKey(9n), later: grant },
  ])('while they know two incarnations of a lease, where $name, until the earlier has ended', async ({ at, later }) => {
    const { left, right } = await neighbours(at);
    await later(left);
    await refer(right, 7);
    const command = mergeOf(left, await seal(right, left));
    expect(await left.run(command)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    expect([left.state.merging.round, left.absorbed]).toEqual([0, []]);
    await left.ok({ type: 'refuseMerge', round: 0 });
    await right.ok({ type: 'unseal', from: { targetId: 2, round: 0 } });
    await right.ok({ type: 'leaseEnd', id: 6n, incarnation: 7, span: hereIn(right) });
    await left.ok(mergeOf(left, await seal(right, left)));
  });

  test('but for a source that went on alone: a reference beside the earlier one is refused then, and stops nobody', async () => {
    const { left, right } = await neighbours(leaseKey(9n));
    await grant(left);
    await refer(right, 7);
    const merge = mergeOf(left, await seal(right, left));
    goOnAlone(right);
    await left.ok(merge);
    left.block = { first: left.state.revision + 1, count: 9 };
    const incarnation = left.state.leaseOwnership.incarnationOf(6n);
    const again = { type: 'leaseRefer', id: 6n, incarnation, span: hereIn(left) } as const;
    expect(await left.run(again)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    await left.ok({ type: 'leaseEnd', id: 6n, incarnation: 7, span: hereIn(left) });
    expect(await left.run(again)).toMatchObject({ ok: true });
  });

  test('while the membership of the target is joint', async () => {
    const { left, right } = await neighbours();
    const command = mergeOf(left, await seal(right, left));
    left.state.conf = { ...left.state.conf, votersOutgoing: [1, 9] };
    expect(code(await left.run(command))).toBe('UNAVAILABLE');
  });
});

describe('what is written down of merges', () => {
  test('is nothing in a range that has had no part in one: its state is what earlier programs wrote', async () => {
    const { left, right } = await neighbours();
    for (const { state } of [left, right]) state.estimatedSince = 0; // as if counted since the split
    expect(encodeRangeMeta(left.state)[1]).toBe(1);
    await seal(right, left);
    expect(encodeRangeMeta(right.state)[1]).toBe(2);
    expect(decodeRangeMeta(encodeRangeMeta(right.state)).merging).toEqual(right.state.merging);
  });

  test('of a source that has ended is a range without keys, which overlaps with none', () => {
    const [start, end] = [atKey('c'), atKey('m')];
    for (const each of [
      { start, end },
      { start, end: EMPTY_BYTES },
    ]) {
      const left = withoutKeys({ ...DESCRIPTOR, ...each });
      for (const span of [DESCRIPTOR, each, { start: EMPTY_BYTES, end: start }, left]) {
        expect([spansOverlap(left, span), spansOverlap(span, left)]).toEqual([false, false]);
      }
      expect(rangeSpans(3, left)).toEqual([localSpan(3)]);
    }
  });
});

test('the first range is behind none, and a target is never behind its source', () => {
  const first = { ...DESCRIPTOR, end: atKey('c') };
  const last = { ...DESCRIPTOR, rangeId: 9, start: atKey('m') };
  const behind = { ...DESCRIPTOR, rangeId: 5, start: atKey('c'), end: atKey('m') };
  expect([unionOf(last, first), unionOf(first, last), unionOf(behind, first)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(unionOf(first, behind)).toMatchObject({ rangeId: 2, start: first.start, end: behind.end });
});
