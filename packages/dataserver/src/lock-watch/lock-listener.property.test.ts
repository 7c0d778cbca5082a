import { binaryString, compareBytes, type Span, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type AcquireAs,
  type LockCommand,
  type LockNews,
  type LockState,
  lockSpan,
  namespaceSpan,
  ownerId,
  queryLocks,
  stateAfter,
} from '@remora/lock';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memoryEngine, StateBed } from '../../test/support/state-bed.ts';
import { lockReader } from '../state/locks/engine-lock-view.ts';
import type { Listened, LockListener } from './lock-listener.ts';
import { LockListeners } from './lock-listeners.ts';

/** More than one page of them, so that things happen while states are being told. */
const LOCKS = 230;
const LEASES = [7n, 8n];
const PREFIX = utf8('p/');
const lockId = (index: number) => ({ namespace: 'n', name: utf8(`p/${String(index).padStart(3, '0')}`) });
const SPAN: Span = { start: lockSpan(lockId(10)).start, end: lockSpan(lockId(LOCKS)).start };

type Step =
  | { readonly type: 'acquire' | 'release' | 'force'; readonly lock: number; readonly lease: bigint }
  | { readonly type: 'end'; readonly lease: bigint }
  /** The other side is behind from the next message on, or reads again. */
  | { readonly type: 'block' | 'drain' }
  /** What waits for the loop's next turn is done. */
  | { readonly type: 'turn' };

const lock = fc.oneof(fc.integer({ min: 0, max: LOCKS + 5 }), fc.constantFrom(11, 12, 150));
const lease = fc.constantFrom(...LEASES);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('acquire' as const), lock, lease }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('release' as const, 'force' as const), lock, lease }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('end' as const), lease }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('block' as const, 'drain' as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('turn' as const) }) },
);

/** Of the names that are listened to. */
function inSpan(name: Uint8Array): boolean {
  return compareBytes(name, lockId(10).name) >= 0 && compareBytes(name, lockId(LOCKS).name) < 0;
}

/** A range with locks, and one who listens to most of them. */
class ListenerBed {
  readonly clock = new ManualClock();
  readonly engine = memoryEngine(this.clock);
  readonly listeners: LockListeners = new LockListeners({
    ...{ engine: this.engine, clock: this.clock },
    revision: () => this.bed.state.revision,
  });
  readonly bed: StateBed = new StateBed({ engine: this.engine, listeners: this.listeners });
  readonly told = new Map<string, LockState>();
  readonly messages: LockNews[] = [];
  blocked = false;
  listener: LockListener | undefined;

  listen(listened: Listened = { namespace: 'n', name: PREFIX, single: false, span: SPAN }): void {
    this.listener = this.listeners.add(listened, {
      send: (news) => {
        this.messages.push(...news);
        for (const one of news) this.#learn(one);
        return !this.blocked;
      },
      end: (error) => expect.fail(`ended: ${error.code}`),
    });
  }

  #learn(news: LockNews): void {
    if (news.type === 'begin') return this.told.clear();
    if (news.type === 'live') return;
    const key = binaryString(news.lock.name);
    const after =
      news.type === 'state'
        ? news.state
        : news.events.reduce((state, event) => stateAfter(news.lock, state, event), this.told.get(key));
    if (after === undefined) this.told.delete(key);
    else this.told.set(key, after);
  }

  async run(command: LockCommand): Promise<void> {
    await this.bed.run({ type: 'lock', command });
    this.listeners.flush();
  }

  async take(each: Step, attempt: number): Promise<void> {
    const base = { deadlineMs: 0, attempt };
    switch (each.type) {
      case 'acquire':
      case 'release': {
        const owner = {
          session: { lease: each.lease, incarnation: this.incarnations.get(each.lease) ?? 0 },
          token: 't',
        };
        const about = { lock: lockId(each.lock), owner };
        if (each.type === 'release') return this.run({ type: 'release', ...about, ...base, all: true });
        return this.run({
          ...{ type: 'acquire', ...about, ...base, wait: true, waitUntilMs: 0 },
          ...{ depthMax: 3, data: utf8('d'), as: { type: 'shared' } },
        });
      }
      case 'force':
        return this.run({ type: 'forceRelease', lock: lockId(each.lock) });
      case 'end':
        await this.bed.run({
          type: 'leaseRevoke',
          id: each.lease,
          incarnation: this.incarnations.get(each.lease) ?? 0,
        });
        this.listeners.flush();
        return this.begin(each.lease);
      case 'block':
        this.blocked = true;
        return;
      case 'drain':
        return this.drain();
      case 'turn':
        this.clock.advance(0);
    }
  }

  readonly incarnations = new Map<bigint, number>();

  async begin(id: bigint): Promise<void> {
    const granted = await this.bed.ok({ type: 'leaseGrant', id, ttlMs: 1_000, attributes: {} });
    if (granted.type === 'leaseGrant') this.incarnations.set(id, granted.incarnation);
  }

  drain(): void {
    if (!this.blocked) return;
    this.blocked = false;
    this.listener?.drained();
  }

  /** All states of the span, as a question would find them. */
  states(): Map<string, LockState> {
    const reader = { ...lockReader(this.engine), timeMs: 0 };
    const listed = queryLocks(reader, {
      ...{ type: 'list', namespace: 'n', prefix: PREFIX, after: utf8(''), limit: 1_000, allKinds: true },
    });
    const all = listed.type === 'list' ? listed.locks : [];
    const within = all.filter(({ lock: { name } }) => inSpan(name));
    return new Map(within.map((state) => [binaryString(state.lock.name), state]));
  }
}

it('whoever listens knows in the end what is, however far behind it was', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), fc.nat({ max: LOCKS }), async (steps, held) => {
      const bed = new ListenerBed();
      for (const id of LEASES) await bed.begin(id);
      for (let i = 0; i < held; i++) await bed.take({ type: 'acquire', lock: i, lease: 7n }, 1);
      bed.listen();
      for (const [i, each] of steps.entries()) await bed.take(each, i + 2);
      bed.drain();
      for (let i = 0; i < 5; i++) bed.clock.advance(0);
      expect(bed.told).toEqual(bed.states());
    }),
    { numRuns: 40 },
  );
});

it('when those who were named have left, the next ones are named, holders as well as waiters (LL5)', async () => {
  const bed = new ListenerBed();
  await bed.begin(7n);
  const session = { lease: 7n, incarnation: bed.incarnations.get(7n) ?? 0 };
  const at = { lock: lockId(12), deadlineMs: 0 };
  const acquire = (token: string, as?: AcquireAs): Promise<void> =>
    bed.run({
      ...{ type: 'acquire', ...at, owner: { session, token }, wait: true, waitUntilMs: 0, depthMax: 1 },
      ...{ data: utf8(''), ...(as === undefined ? {} : { as }) },
    });
  const token = (kind: string, i: number) => `${kind}${String(i).padStart(2, '0')}`;
  for (let i = 0; i < 25; i++) await acquire(token('h', i), { type: 'shared' });
  for (let i = 0; i < 25; i++) await acquire(token('w', i));
  bed.listen();
  const told = () => bed.told.get(binaryString(at.lock.name));
  const names = () => [told()?.holders[0]?.owner.id, told()?.waiters[0]?.owner.id];
  expect([told()?.holders.length, told()?.waiters.length, names()]).toEqual([10, 10, [ownerId('h00'), ownerId('w00')]]);
  for (let i = 0; i < 10; i++) {
    await bed.run({ type: 'cancel', ...at, owner: { session, token: token('w', i) }, attempt: 0 });
  }
  expect([told()?.waiters.length, names()]).toEqual([15, [ownerId('h00'), ownerId('w10')]]);
  for (let i = 0; i < 25; i++) {
    expect(names()).toEqual([ownerId(token('h', i)), ownerId('w10')]);
    await bed.run({ type: 'release', ...at, owner: { session, token: token('h', i) }, all: true });
  }
  expect([told()?.waiterCount, names()]).toEqual([14, [ownerId('w10'), ownerId('w11')]]);
});

it('what happened while an entry is applied is told before a state that knows of it (LL1)', async () => {
  const bed = new ListenerBed();
  await bed.begin(7n);
  for (let i = 0; i < LOCKS; i++) await bed.take({ type: 'acquire', lock: i, lease: 7n }, 1);
  const session = { lease: 7n, incarnation: bed.incarnations.get(7n) ?? 0 };
  const at = { lock: lockId(12), deadlineMs: 0, attempt: 2 };
  const owner = (i: number) => ({ session, token: `t${String(i).padStart(2, '0')}` });
  for (let i = 0; i < 25; i++) {
    await bed.run({
      ...{ type: 'acquire', ...at, owner: owner(i), wait: false, waitUntilMs: 0, depthMax: 1 },
      ...{ data: utf8(''), as: { type: 'shared' } },
    });
  }
  bed.listen();
  await bed.take({ type: 'release', lock: 12, lease: 7n }, 2);
  for (let i = 0; i < 8; i++) await bed.run({ type: 'release', ...at, owner: owner(i), all: true });
  // The entry of this one is still being applied as the next page of states is told.
  await bed.bed.run({ type: 'lock', command: { type: 'release', ...at, owner: owner(8), all: true } });
  bed.clock.advance(0);
  bed.listeners.flush();
  const told = bed.told.get(binaryString(at.lock.name));
  expect([told?.holderCount, told?.holders[0]?.owner.id]).toEqual([16, ownerId('t09')]);
});

it('with more locks than are remembered for one who is behind, it begins anew', async () => {
  const bed = new ListenerBed();
  await bed.begin(7n);
  const name = utf8('q/');
  bed.listen({ namespace: 'n', name, single: false, span: namespaceSpan('n', name) });
  bed.blocked = true;
  const owner = { session: { lease: 7n, incarnation: bed.incarnations.get(7n) ?? 0 }, token: 't' };
  const acquire = {
    type: 'acquire',
    owner,
    wait: false,
    waitUntilMs: 0,
    deadlineMs: 0,
    depthMax: 1,
    data: utf8(''),
  } as const;
  // The first one tells it that it is behind.
  for (let i = 0; i < 1_002; i++) await bed.run({ ...acquire, lock: { namespace: 'n', name: utf8(`q/${i}`) } });
  expect(bed.messages.map(({ type }) => type)).toEqual(['begin', 'live', 'events']);
  bed.messages.length = 0;
  bed.drain();
  for (let i = 0; i < 12; i++) bed.clock.advance(0);
  const types = bed.messages.map(({ type }) => type);
  expect([types[0], types.filter((type) => type === 'state').length, types.at(-1)]).toEqual(['begin', 1_002, 'live']);
});

it('of one lock it is told how it is, also when it is free', () => {
  const bed = new ListenerBed();
  const lock = lockId(3);
  bed.listen({ ...lock, single: true, span: lockSpan(lock) });
  expect(bed.messages).toEqual([
    expect.objectContaining({ type: 'begin' }),
    { type: 'state', lock, revision: 1, state: undefined },
  ]);
});
