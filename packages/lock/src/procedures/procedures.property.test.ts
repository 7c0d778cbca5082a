import { isDeepStrictEqual } from 'node:util';
import { equalBytes, utf8 } from '@remora/base';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { gist, name, noticeGist, shownName } from '../../test/gist.ts';
import { MemoryView } from '../../test/memory-view.ts';
import { NaiveLock } from '../../test/naive-lock.ts';
import type { Now } from '../../test/naive-state.ts';
import {
  type AcquireAs,
  applyLockCommand,
  delayedHolds,
  isCurrent,
  type LockCommand,
  type LockId,
  type LockState,
  lockSpan,
  type Owner,
  ownerStatus,
  type PublicOwner,
  queryLocks,
  sessionEnded,
  stateAfter,
} from '../index.ts';

const LOCK: LockId = { namespace: 'n', name: Buffer.from([0, 1, 0, 255]) };
/** A neighbour whose records must stay as they are. */
const NEXT: LockId = { namespace: 'n', name: Buffer.from([0, 1, 0, 255, 0]) };
const LEASES = [1n, 2n, 3n];

type Step =
  | { readonly type: 'command'; readonly command: LockCommand; readonly afterMs: number }
  /** Ends the session; when unheard, the lock hears of it only later (or at the end). */
  | { readonly type: 'end'; readonly lease: bigint; readonly heard: boolean };

const owner: fc.Arbitrary<Owner> = fc.record({
  session: fc.constantFrom(...LEASES).map((lease) => ({ lease, incarnation: 1 })),
  token: fc.constantFrom('x', 'y'),
});
const attempt = fc.integer({ min: 0, max: 4 });
const deadlineMs = fc.constantFrom(0, 1_020, 1_040, 1_080, 2_000);
const lock = fc.constant(LOCK);
const data = fc.constantFrom('', 'd', 'e').map(utf8);
/** Kinds of rows (`keys.ts`). */
const OWNER_ROW = 2;
const PASSER_ROW = 9;
/** Stands for the version of the owner's hold, which is known only when the command is sent. */
const PRESENT_VERSION = 1;

/** What a run's commands are about: most are of one kind, so that they get somewhere. */
type About = 'lock' | 'semaphore' | 'barrier' | 'both';

const shared = fc.constant({ type: 'shared' } as const);
const upgrade = fc.constant({ type: 'upgrade' } as const);
const permits = fc.record({
  type: fc.constant('permits' as const),
  permits: fc.integer({ min: 1, max: 3 }),
  capacity: fc.constantFrom(2, 3),
});

const pass = fc.constant({ type: 'pass' } as const);
const enter = fc.record({ type: fc.constant('enter' as const), parties: fc.integer({ min: 1, max: 3 }) });

function as(about: About): fc.Arbitrary<AcquireAs | undefined> {
  const ofLock = [
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 5, arbitrary: shared },
    { weight: 3, arbitrary: upgrade },
  ];
  if (about === 'lock') return fc.oneof(...ofLock);
  if (about === 'barrier') {
    const rare = [fc.constant(undefined), upgrade].map((arbitrary) => ({ weight: 2, arbitrary }));
    // Shares that are asked for without entering make parties complete, too.
    const often = [pass, shared].map((arbitrary) => ({ weight: 3, arbitrary }));
    return fc.oneof(...often, { weight: 5, arbitrary: enter }, ...rare);
  }
  return about === 'semaphore'
    ? permits
    : fc.oneof(
        ...ofLock,
        { weight: 8, arbitrary: permits },
        ...[pass, enter].map((arbitrary) => ({ weight: 1, arbitrary })),
      );
}

function acquire(about: About): fc.Arbitrary<LockCommand> {
  const fields = fc.record({
    type: fc.constant('acquire' as const),
    lock,
    owner,
    wait: fc.boolean(),
    waitUntilMs: fc.constantFrom(0, 0, 1_020, 1_050),
    deadlineMs: deadlineMs.map((ms) => ms + 1_000),
    depthMax: fc.constantFrom(1, 3),
    data,
    keepData: fc.boolean(),
    delayMs: fc.constantFrom(0, 0, 7),
    attempt,
    as: as(about),
  });
  return fields.map(({ as: wanted, ...command }) => {
    if (wanted === undefined) return command;
    return ['upgrade', 'pass', 'enter'].includes(wanted.type) && command.attempt === 0
      ? { ...command, as: wanted, attempt: 1 }
      : { ...command, as: wanted };
  });
}

function commands(about: About): fc.Arbitrary<LockCommand> {
  return fc.oneof(
    { weight: 7, arbitrary: acquire(about) },
    {
      weight: 5,
      arbitrary: fc.record({
        type: fc.constant('release' as const),
        lock,
        owner,
        all: fc.boolean(),
        deadlineMs,
        attempt,
      }),
    },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('cancel' as const), lock, owner, deadlineMs, attempt }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('downgrade' as const), lock, owner, attempt }) },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('forceRelease' as const),
        lock,
        by: fc.constantFrom('', 'me'),
        reason: fc.constantFrom('', 'why'),
        upToVersion: fc.constantFrom(0, 0, 3, 8, 15),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        ...{ type: fc.constant('revoke' as const), lock, by: fc.constant('ops'), reason: fc.constant('späte Arbeit') },
        forMs: fc.constantFrom(10, 1_000),
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('forget' as const), lock }) },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constant('setData' as const),
        lock,
        owner,
        version: fc.constantFrom(PRESENT_VERSION, PRESENT_VERSION, PRESENT_VERSION, 3),
        data,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('setDepth' as const),
        lock,
        owner,
        version: fc.constantFrom(PRESENT_VERSION, PRESENT_VERSION, 3),
        depth: fc.constantFrom(1, 2, 4),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('endDelay' as const),
        lock,
        owner,
        version: fc.constantFrom(PRESENT_VERSION, PRESENT_VERSION, 3),
      }),
    },
    {
      weight: about === 'lock' ? 0 : 1,
      arbitrary: fc.record({
        type: fc.constant('setCapacity' as const),
        lock,
        capacity: fc.integer({ min: 0, max: 4 }),
      }),
    },
  );
}

function step(about: About): fc.Arbitrary<Step> {
  const command = commands(about);
  const afterMs = fc.integer({ min: 0, max: 8 });
  return fc.oneof(
    { weight: 15, arbitrary: fc.record({ type: fc.constant('command' as const), command, afterMs }) },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('end' as const),
        lease: fc.constantFrom(...LEASES),
        heard: fc.boolean(),
      }),
    },
  );
}

function sent(command: LockCommand, naive: NaiveLock): LockCommand {
  if (command.type !== 'setData' && command.type !== 'setDepth' && command.type !== 'endDelay') return command;
  if (command.version !== PRESENT_VERSION) return command;
  const hold = naive.holders.find((held) => name(held.owner) === name(command.owner));
  return hold === undefined ? command : { ...command, version: hold.version };
}

function stateOf(view: MemoryView): LockState | undefined {
  const shown = queryLocks(
    { get: (k) => view.get(k), scan: (s, e, l) => view.scan(s, e, l), timeMs: 0 },
    { type: 'show', lock: LOCK, allKinds: true },
  );
  return shown.type === 'show' ? shown.state : undefined;
}

function expectSame(view: MemoryView, naive: NaiveLock): void {
  const state = stateOf(view);
  const holder = (h: { owner: Owner | PublicOwner; version: number; depth: number; mode: string; permits: number }) =>
    `${shownName(h.owner)} ${h.version} ${h.depth} ${h.mode} ${h.permits}`;
  expect((state?.holders ?? []).map((h) => `${holder(h)} ${textOf(h.data)} ${h.keepsData} ${h.delayed}`)).toEqual(
    naive.holders.toSorted(byGrant).map((h) => `${holder(h)} ${h.data} ${h.keepData} ${h.delayed}`),
  );
  expect(textOf(state?.keptData ?? utf8(''))).toBe(naive.kept);
  expect(state?.passing ?? 0).toBe(naive.barrierWaiters.filter(({ passed }) => passed === 0).length);
  for (const { owner: who, passed, parties } of naive.barrierWaiters) {
    // What it holds or queues for comes first, unless it waits to enter.
    const isOf = ({ owner: other }: { readonly owner: Owner }) => name(other) === name(who);
    if (parties === 0 && [...naive.holders, ...naive.queue].some(isOf)) continue;
    const status = passed === 0 ? { type: 'queued' } : { type: 'granted', version: passed, depth: 0 };
    expect(ownerStatus(view, LOCK, who)).toMatchObject(status);
  }
  const { forced } = state ?? {};
  expect(forced === undefined ? '' : `${forced.by} ${forced.reason} ${forced.version}`).toBe(naive.forced);
  const queue = naive.queue.map((w) => `${shownName(w.owner)} ${w.mode} ${w.permits}`);
  if (naive.upgrader !== undefined) queue.unshift(`${shownName(naive.upgrader.owner)} upgrade 0`);
  expect((state?.waiters ?? []).map((w) => `${shownName(w.owner)} ${w.mode} ${w.permits}`)).toEqual(queue);
  expect([state?.waiterCount ?? 0, state?.holderCount ?? 0]).toEqual([queue.length, naive.holders.length]);
  expect(state?.revocation?.version).toBe(naive.asked?.version);
  expect([state?.permits ?? 0, state?.capacity ?? 0]).toEqual([naive.permits, naive.capacity]);
  for (const { owner: who, version, depth, delayed } of naive.holders) {
    const isHeldBy = (v: number) => naive.holders.some((h) => h.version === v && !h.delayed);
    expect(isCurrent(view, LOCK, version)).toBe(isHeldBy(version));
    expect(isCurrent(view, LOCK, version - 1)).toBe(isHeldBy(version - 1));
    const upgrades = naive.upgrader !== undefined && name(naive.upgrader.owner) === name(who);
    if (naive.barrierWaiters.some((p) => p.parties > 0 && name(p.owner) === name(who))) continue;
    if (delayed) {
      expect(ownerStatus(view, LOCK, who)).toMatchObject({ type: 'refused', code: 'SESSION_EXPIRED' });
      continue;
    }
    const status = upgrades ? { type: 'queued', position: 1 } : { type: 'granted', version, depth };
    expect(ownerStatus(view, LOCK, who)).toMatchObject(status);
  }
}

function byGrant(a: NaiveLock['holders'][number], b: NaiveLock['holders'][number]): number {
  return a.version - b.version || (shownName(a.owner) < shownName(b.owner) ? -1 : 1);
}

/** E1, E2. What a listener makes of the events is what the lock shows, and no event says nothing. */
function expectTold(view: MemoryView, before: LockState | undefined): LockState | undefined {
  const events = view.takeEvents();
  const told = events.reduce((state, event) => stateAfter(LOCK, state, event), before);
  const after = stateOf(view);
  expect(readable(told)).toEqual(readable(after));
  if (events.length === 1) expect(isDeepStrictEqual(readable(before), readable(after))).toBe(false);
  return after;
}

/** What is counted adds up to what is there; the neighbour has one holder. */
function expectCounted({ counted }: MemoryView, state: LockState | undefined): void {
  const { holderCount, waiterCount } = state ?? { holderCount: 0, waiterCount: 0 };
  expect(counted).toEqual({ holders: holderCount + 1, waiters: waiterCount });
}

/** With data as text, whatever class of bytes they have. */
function readable(state: LockState | undefined): unknown {
  if (state === undefined) return undefined;
  const holders = state.holders.map((holder) => ({ ...holder, data: textOf(holder.data) }));
  return { ...state, holders, keptData: textOf(state.keptData ?? utf8('')) };
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data).toString();
}

/**
 * W4, W7. A session is attached exactly while it holds the lock or has a row in it (a place in the queue, a mark, a
 * share); not one of which only delayed holds are left.
 */
function expectAttached(view: MemoryView, naive: NaiveLock): void {
  for (const lease of LEASES) {
    const rows = [OWNER_ROW, PASSER_ROW].some((kind) => {
      const prefix = Buffer.concat([lockSpan(LOCK).start, Buffer.alloc(9, kind)]);
      prefix.writeBigUInt64BE(lease, prefix.length - 8);
      return view.rows.some((row) => equalBytes(row.key.subarray(0, prefix.length), prefix));
    });
    const holds = naive.holders.filter(({ owner: who }) => who.session.lease === lease);
    const attached = holds.some(({ delayed }) => delayed) ? false : rows || holds.length > 0;
    expect(view.attachedLocks({ lease, incarnation: 1 }).length > 0).toBe(attached);
  }
}

/** Nobody shares a lock with one who has it alone, and permits stay within the capacity, unless that was lowered. */
function expectExclusion(naive: NaiveLock, before: { readonly permits: number }): void {
  const alone = naive.holders.filter(({ mode }) => mode === 'exclusive').length;
  expect(alone === 0 || naive.holders.length === 1).toBe(true);
  expect(naive.permits <= Math.max(naive.capacity, before.permits)).toBe(true);
}

it.each<About>(['lock', 'semaphore', 'barrier', 'both'])(
  '%s: what commands do is what the rules say, and nothing is left in the end',
  (about) => {
    fc.assert(
      fc.property(fc.array(step(about), { maxLength: 60 }), (steps) => {
        const view = new MemoryView();
        for (const lease of LEASES) view.begin({ lease, incarnation: 1 });
        const stranger: Owner = { session: { lease: 9n, incarnation: 1 }, token: 'z' };
        view.begin(stranger.session);
        const base = { wait: true, waitUntilMs: 0, deadlineMs: 9_000, depthMax: 1, data: utf8('') };
        applyLockCommand(view, { type: 'acquire', lock: NEXT, owner: stranger, ...base });
        const neighbour = [...view.rows];
        view.takeEvents();
        let told: LockState | undefined;

        const naive = new NaiveLock();
        const granted = new Set<string>();
        const now = (): Now => ({
          revision: view.revision,
          timeMs: view.timeMs,
          alive: (who) => view.sessionAlive(who.session),
        });
        const end = (lease: bigint) => {
          view.end({ lease, incarnation: 1 });
          const session = { lease, incarnation: 1 };
          view.revision += 1;
          for (const id of view.attachedLocks(session)) {
            const { notices, delayed } = sessionEnded(view, session, id);
            expect(notices.map(noticeGist)).toEqual(naive.sessionEnded(now(), lease));
            expect(delayed.every(({ version, delayMs }) => version > 0 && delayMs > 0)).toBe(true);
          }
          expect(view.attachedLocks(session)).toEqual([]);
        };

        for (const each of steps) {
          view.revision += 1;
          const before = { permits: naive.permits };
          if (each.type === 'end') {
            if (each.heard) end(each.lease);
            else view.end({ lease: each.lease, incarnation: 1 });
          } else {
            view.timeMs += each.afterMs;
            const command = sent(each.command, naive);
            const expected = naive.apply(now(), command);
            const outcome = applyLockCommand(view, command);
            expect({ result: gist(outcome.result), notices: outcome.notices.map(noticeGist) }).toEqual(expected);
            const passing = command.type === 'acquire' && ['pass', 'enter'].includes(command.as?.type ?? '');
            if (outcome.result.type === 'queued' && !passing) {
              const { owner: who } = each.command as Extract<LockCommand, { type: 'acquire' }>;
              const ahead = naive.upgrader === undefined ? 0 : 1;
              const rank = ahead + naive.queue.findIndex((w) => name(w.owner) === name(who)) + 1;
              expect(outcome.result.position).toBeGreaterThanOrEqual(rank);
              expect(outcome.result.position).toBeLessThanOrEqual(ahead + naive.queue.length);
            }
          }
          expectSame(view, naive);
          told = expectTold(view, told);
          expectCounted(view, told);
          expectAttached(view, naive);
          expectExclusion(naive, before);
          for (const { owner: who, version } of naive.holders) {
            const grant = `${name(who)} ${version}`;
            // L1. What is granted has the revision of its command.
            expect(granted.has(grant) || version === view.revision).toBe(true);
            granted.add(grant);
          }
        }

        for (const lease of LEASES) end(lease);
        view.revision += 1;
        expect(delayedHolds(view, lockSpan(LOCK)).length).toBe(naive.holders.length);
        for (const { owner: who, version } of naive.holders) {
          applyLockCommand(view, { type: 'endDelay', lock: LOCK, owner: who, version });
        }
        applyLockCommand(view, { type: 'setCapacity', lock: LOCK, capacity: 0 });
        applyLockCommand(view, { type: 'forget', lock: LOCK });
        expect(expectTold(view, told)).toBeUndefined();
        expect(view.rows).toEqual(neighbour);
        expect(view.attachments).toBe(1);
      }),
      { numRuns: 270 },
    );
  },
);
