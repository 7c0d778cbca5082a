import { createHash } from 'node:crypto';
import { Packer, ServiceError, utf8 } from '@remora/base';
import { Packr } from 'msgpackr';
import { describe, expect, it } from 'vitest';
import {
  checkLockCommand,
  decodeLockCommand,
  decodeLockNews,
  decodeLockQuery,
  decodeLockQueryResult,
  decodeLockResult,
  encodeLockCommand,
  encodeLockNews,
  encodeLockQuery,
  encodeLockQueryResult,
  encodeLockResult,
  type LockCommand,
  type LockEvent,
  type LockNews,
  type LockQuery,
  type LockQueryResult,
  type LockResult,
  type LockState,
  lockSchema,
  validateLockCommand,
  validateLockQuery,
} from '../index.ts';
import { type CommandV1, layout, type ResultV1 } from './layout.ts';

const lock = { namespace: 'default', name: utf8('orders/42') };
const owner = { session: { lease: 2n ** 62n + 1n, incarnation: 2 ** 40 }, token: 'tökén' };
const acquire: CommandV1 = {
  type: 'acquire',
  lock,
  owner,
  wait: true,
  waitUntilMs: 1_234.5,
  deadlineMs: 2_000,
  depthMax: 3,
  data: utf8('data'),
  attempt: 4,
};
const shown = { session: owner.session, id: 'Zx9' };
const holder = { owner: shown, version: 9, depth: 1, lockTimeMs: 1e12, data: utf8('d') };
const alone = { mode: 'exclusive', permits: 0 } as const;
const forced = { atMs: 1e12, by: 'me', reason: 'its host is gone', version: 9 };
const plainHold = { keepsData: false, delayMs: 0, delayed: false };
const state: LockState = {
  lock,
  kind: 'exclusive',
  holders: [{ ...holder, ...alone, ...plainHold }],
  holderCount: 1,
  waiters: [{ owner: shown, position: 1, sinceMs: 5, ...alone }],
  waiterCount: 1,
  permits: 0,
  capacity: 0,
  keptData: undefined,
  forced: undefined,
  passing: 0,
};
const semaphore: LockState = {
  ...state,
  ...{ kind: 'semaphore', permits: 2, capacity: 3 },
  holders: [{ ...holder, mode: 'permits', permits: 2, keepsData: true, delayMs: 5, delayed: true }],
  holderCount: 7,
};
const kept: LockState = { ...state, holders: [], holderCount: 0, waiters: [], waiterCount: 0, keptData: utf8('k') };
const delaying: LockState = { ...state, holders: [{ ...holder, ...alone, ...plainHold, delayMs: 5 }] };
const upgrading: LockState = {
  ...state,
  waiters: [{ owner: shown, position: 1, sinceMs: 5, mode: 'upgrade', permits: 0 }],
};

const commands: CommandV1[] = [
  acquire,
  { type: 'release', lock, owner, all: true, deadlineMs: 1, attempt: 0 },
  { type: 'cancel', lock, owner, deadlineMs: 1, attempt: 7 },
  { type: 'forceRelease', lock },
];
const commandsOfKinds: LockCommand[] = [
  { ...acquire, as: { type: 'shared' }, keepData: false, delayMs: 0 },
  { ...acquire, as: { type: 'upgrade' }, keepData: false, delayMs: 0 },
  { ...acquire, as: { type: 'permits', permits: 2, capacity: 3 }, keepData: true, delayMs: 60_000 },
  { ...acquire, keepData: true, delayMs: 0 },
  { ...acquire, keepData: false, delayMs: 1 },
  { type: 'downgrade', lock, owner, attempt: 3 },
  { type: 'setCapacity', lock, capacity: 4 },
  { type: 'revoke', lock, by: 'ops', reason: 'é', forMs: 5 },
  { type: 'setData', lock, owner, version: 9, data: utf8('d') },
  { type: 'forget', lock },
  { type: 'endDelay', lock, owner, version: 9 },
  { type: 'forceRelease', lock, by: 'me', reason: '', upToVersion: 0 },
  { type: 'forceRelease', lock, by: '', reason: '', upToVersion: 7 },
  { ...acquire, as: { type: 'pass' }, keepData: false, delayMs: 0 },
  { ...acquire, as: { type: 'enter', parties: 3 }, keepData: false, delayMs: 0 },
  { type: 'setDepth', lock, owner, version: 9, depth: 2 },
];
const queries: LockQuery[] = [
  { type: 'show', lock },
  { type: 'list', namespace: 'n', prefix: utf8('p'), after: utf8(''), limit: 3 },
  { type: 'check', checks: [{ lock, version: 3 }] },
];
const queriesOfKinds: LockQuery[] = [
  { type: 'show', lock, allKinds: true },
  { type: 'list', namespace: 'n', prefix: utf8('p'), after: utf8(''), limit: 3, allKinds: true },
  {
    type: 'search',
    namespace: 'n',
    prefix: utf8('p'),
    after: utf8(''),
    limit: 3,
    contains: utf8('x'),
    kind: 'barrier',
  },
  { type: 'namespaces', after: 'n', limit: 3 },
];
const results: ResultV1[] = [
  { type: 'granted', version: 9, depth: 2, lockTimeMs: 3 },
  { type: 'queued', position: 3 },
  { type: 'busy', holder },
  { type: 'released', depth: 0, version: 4 },
  { type: 'canceled', released: false },
  { type: 'refused', code: 'RESOURCE_EXHAUSTED', message: 'm' },
];
const resultsOfKinds: LockResult[] = [
  { type: 'refused', code: 'LOCK_KIND_MISMATCH', message: 'm' },
  { type: 'capacity', permits: 2, capacity: 3 },
  { type: 'revoking', version: 7 },
  { type: 'granted', version: 9, depth: 2, lockTimeMs: 3, keptData: utf8('k') },
  { type: 'forgotten', any: true },
];
const queryResultsOfKinds: LockQueryResult[] = [
  { type: 'show', state: semaphore },
  { type: 'list', locks: [state, upgrading], more: true },
  { type: 'show', state: kept },
  { type: 'show', state: delaying },
  { type: 'show', state: { ...state, forced } },
  { type: 'search', locks: [state, upgrading], next: utf8('n') },
  { type: 'search', locks: [], next: undefined },
  { type: 'namespaces', namespaces: ['a', 'b'], more: true },
];
const queryResults: LockQueryResult[] = [
  { type: 'show', state },
  { type: 'show', state: undefined },
  { type: 'list', locks: [state], more: true },
  { type: 'check', current: [true, false] },
];

const revocation = { revision: 7, version: 9, by: 'ops', reason: 'r', untilMs: 5.5, sinceMs: 4 };
const held = { ...holder, ...plainHold, mode: 'shared', permits: 0 } as const;
const end = { owner: shown, version: 9, permits: 2 };
const events: LockEvent[] = [
  { type: 'acquired', holder: held, waited: true },
  { type: 'upgraded', holder: held, waited: false },
  { type: 'downgraded', holder: held },
  { type: 'changed', holder: held },
  { type: 'released', ...end },
  { type: 'expired', ...end },
  { type: 'forced', ...end },
  { type: 'queued', waiter: { owner: shown, position: 2, sinceMs: 5, mode: 'upgrade', permits: 0 } },
  { type: 'left', owner: shown, code: 'LOCK_PERMITS_EXCEEDED' },
  { type: 'capacity', capacity: 3 },
  { type: 'revoking', revocation },
  { type: 'revoking', revocation: undefined },
  { type: 'kept', data: utf8('k') },
  { type: 'kept', data: undefined },
  { type: 'recorded', forced },
  { type: 'recorded', forced: undefined },
  { type: 'passing', count: 3 },
];
const news: LockNews[] = [
  { type: 'begin', from: utf8('a'), to: utf8('') },
  { type: 'state', lock, revision: 8, state: { ...semaphore, revocation } },
  { type: 'state', lock, revision: 8, state: undefined },
  { type: 'live' },
  { type: 'events', lock, revision: 9, events },
];

function hashOf(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
}

const packr = new Packr({ useRecords: false });
function overTheWire(raw: unknown): unknown {
  const packer = new Packer();
  packer.value(raw);
  return packr.unpack(packer.view());
}

describe('codecs', () => {
  it('the layouts of versions 1 and 2 are those that logs hold', () => {
    const lines = lockSchema.split('\n').filter((line) => !line.startsWith('news '));
    const hash = (version: string) => hashOf(lines.filter((line) => line.split(' ')[1] === version));
    expect([hash('v1'), hash('v2')]).toEqual(['334572b52a57ecfe', 'b75fc93e3a5d4c8b']);
  });

  it('the layout of news is the one that gateways and clients know', () => {
    expect(hashOf(lockSchema.split('\n').filter((line) => line.startsWith('news ')))).toBe('b26f138f067c9652');
  });

  it('every message comes back as it was, through msgpackr', () => {
    expect(decodeLockNews(overTheWire(encodeLockNews(news)))).toEqual(news);
    for (const x of [...commands, ...commandsOfKinds]) {
      expect(decodeLockCommand(overTheWire(encodeLockCommand(x)))).toEqual(x);
    }
    for (const x of [...queries, ...queriesOfKinds]) {
      expect(decodeLockQuery(overTheWire(encodeLockQuery(x)))).toEqual(x);
    }
    for (const x of [...results, ...resultsOfKinds]) {
      expect(decodeLockResult(overTheWire(encodeLockResult(x)))).toEqual(x);
    }
    for (const x of [...queryResults, ...queryResultsOfKinds]) {
      expect(decodeLockQueryResult(overTheWire(encodeLockQueryResult(x)))).toEqual(x);
    }
  });

  it('what version 1 can say is said in it', () => {
    const versionsOf = <T>(messages: readonly T[], encode: (message: T) => unknown) =>
      new Set(messages.map((message) => (overTheWire(encode(message)) as unknown[])[0]));
    expect(versionsOf(commands, encodeLockCommand)).toEqual(new Set([1]));
    expect(versionsOf(commandsOfKinds, encodeLockCommand)).toEqual(new Set([2]));
    expect(versionsOf(queries, encodeLockQuery)).toEqual(new Set([1]));
    expect(versionsOf(queriesOfKinds, encodeLockQuery)).toEqual(new Set([2]));
    expect(versionsOf(results, encodeLockResult)).toEqual(new Set([1]));
    expect(versionsOf(resultsOfKinds, encodeLockResult)).toEqual(new Set([2]));
    expect(versionsOf(queryResults, encodeLockQueryResult)).toEqual(new Set([1]));
    expect(versionsOf(queryResultsOfKinds, encodeLockQueryResult)).toEqual(new Set([2]));
  });

  it('what is coded by hand follows the layout', () => {
    for (const x of commands) {
      expect(overTheWire(encodeLockCommand(x))).toEqual(overTheWire(layout.command.encode(x)));
      expect(decodeLockCommand(overTheWire(layout.command.encode(x)))).toEqual(x);
    }
    for (const x of results) {
      expect(overTheWire(encodeLockResult(x))).toEqual(overTheWire(layout.result.encode(x)));
      expect(decodeLockResult(overTheWire(layout.result.encode(x)))).toEqual(x);
    }
  });

  it('fields that version 2 has gained are absent in what was written before', () => {
    const [version, [variant, fields]] = encodeLockCommand({ ...acquire, as: { type: 'shared' } }) as [
      number,
      [number, unknown[]],
    ];
    const before = [version, [variant, fields.slice(0, 9)]];
    expect(decodeLockCommand(overTheWire(before))).toEqual({
      ...{ ...acquire, as: { type: 'shared' }, keepData: false, delayMs: 0 },
    });
    expect(() => decodeLockCommand([version, [variant, fields.slice(0, 8)]])).toThrow(ServiceError);
    const [, [, [written]]] = encodeLockQueryResult({ type: 'show', state: semaphore }) as [
      number,
      [number, [unknown[]]],
    ];
    const holders = (written[2] as unknown[][]).map((each) => each.slice(0, 7));
    const shown = decodeLockQueryResult([2, [0, [written.slice(0, 8).with(2, holders)]]]);
    const expected = { ...semaphore, holders: [{ ...holder, mode: 'permits', permits: 2, ...plainHold }] };
    expect(shown).toEqual({ type: 'show', state: expected });
  });

  it('damage anywhere is refused, by hand as by the layout', () => {
    const bad = [undefined, null, Number.NaN, -1, 1.5, -0.5, 2n ** 63n, -1n, 'x', true, {}, [], [1, 2, 3], utf8('b')];
    const outcome = (decode: (raw: unknown) => unknown, raw: unknown) => {
      try {
        return decode(raw);
      } catch (error) {
        return error instanceof ServiceError ? error.code : error;
      }
    };
    let refused = 0;
    const compare = (
      messages: readonly unknown[],
      byHand: (raw: unknown) => unknown,
      by: (raw: unknown) => unknown,
    ) => {
      for (const raw of messages.flatMap((message) => [...damaged(message, bad)])) {
        const expected = outcome(by, raw);
        expect(outcome(byHand, raw)).toEqual(expected);
        if (expected === 'INVALID_ARGUMENT') refused++;
      }
    };
    compare(commands.map(layout.command.encode), decodeLockCommand, layout.command.decode);
    compare(results.map(layout.result.encode), decodeLockResult, layout.result.decode);
    expect(refused).toBeGreaterThan(500);
  });

  it('a command that was never coded passes if it would be decoded again, whatever its numbers are', () => {
    const numbers = [0, -0, 1, 1.5, -1, 2 ** 53, Number.MAX_SAFE_INTEGER, Number.NaN, Number.POSITIVE_INFINITY];
    const leases = [0n, 1n, 2n ** 63n - 1n, -1n];
    const given: LockCommand[] = [
      ...commands,
      ...commandsOfKinds,
      ...commands.flatMap((command) => [...altered(command, { numbers, leases })]),
      { ...acquire, as: { type: 'enter', parties: -1 } },
      { type: 'setCapacity', lock, capacity: 1.5 },
    ];
    const passes = (attempt: () => void) => {
      try {
        attempt();
        return true;
      } catch (error) {
        return !(error instanceof ServiceError);
      }
    };
    const passed = given.filter((command) => passes(() => checkLockCommand(command)));
    expect(passed).toEqual(
      given.filter((command) => passes(() => decodeLockCommand(overTheWire(encodeLockCommand(command))))),
    );
    expect(passed.length).toBeGreaterThan(40);
    expect(given.length - passed.length).toBeGreaterThan(40);
  });

  it('an absent number of an acquire is 0', () => {
    const { attempt: _, ...unnumbered } = acquire;
    expect(decodeLockCommand(overTheWire(encodeLockCommand(unnumbered)))).toEqual({ ...acquire, attempt: 0 });
  });

  it('anything else is refused when it is decoded', () => {
    const damaged: unknown[] = [
      undefined,
      1,
      {},
      [],
      [2, [0, []]],
      [2, [1, []]],
      [3, [0, []]],
      [1, [99, []]],
      [1, [-1, []]],
      [1, [0, []]],
      [1, ['acquire', []]],
    ];
    for (const raw of damaged) expect(() => decodeLockCommand(raw), JSON.stringify(raw)).toThrow(ServiceError);
    // Each field in turn replaced by something of no type.
    const [version, content] = layout.command.encode(acquire) as [number, [number, unknown[]]];
    for (let i = 0; i < content[1].length; i++) {
      const fields = content[1].with(i, Number.NaN);
      expect(() => decodeLockCommand([version, [content[0], fields]]), `field ${i}`).toThrow(ServiceError);
    }
  });
});

/** Copies of a command with one of its numbers, at any depth, replaced. */
function* altered<T>(part: T, by: { numbers: readonly number[]; leases: readonly bigint[] }): Generator<T> {
  if (typeof part === 'number') yield* by.numbers as readonly T[];
  if (typeof part === 'bigint') yield* by.leases as readonly T[];
  if (typeof part !== 'object' || part === null || part instanceof Uint8Array) return;
  for (const [name, field] of Object.entries(part)) {
    for (const other of altered<unknown>(field, by)) yield { ...part, [name]: other };
  }
}

/** Copies of a message with one part of it, at any depth, replaced. */
function* damaged(raw: unknown, bad: readonly unknown[]): Generator<unknown> {
  yield* bad;
  if (!Array.isArray(raw)) return;
  for (let i = 0; i < raw.length; i++) for (const part of damaged(raw[i], bad)) yield raw.with(i, part);
}

describe('bounds', () => {
  const long = (length: number) => 'x'.repeat(length);
  const bad: { name: string; command: LockCommand; says: string }[] = [
    { name: 'an empty name', command: { ...acquire, lock: { ...lock, name: utf8('') } }, says: '1 to 1024 bytes' },
    {
      name: 'a long name',
      command: { ...acquire, lock: { ...lock, name: utf8(long(1_025)) } },
      says: '1 to 1024 bytes',
    },
    { name: 'no namespace', command: { ...acquire, lock: { ...lock, namespace: '' } }, says: '1 to 255 bytes' },
    {
      name: 'a long namespace',
      command: { ...acquire, lock: { ...lock, namespace: 'ä'.repeat(128) } },
      says: 'not 256',
    },
    { name: 'no token', command: { ...acquire, owner: { ...owner, token: '' } }, says: '1 to 128 bytes' },
    { name: 'a long token', command: { ...acquire, owner: { ...owner, token: long(129) } }, says: '1 to 128 bytes' },
    { name: 'half a character', command: { ...acquire, owner: { ...owner, token: '\ud800' } }, says: 'surrogate' },
    { name: 'much data', command: { ...acquire, data: utf8(long(4_097)) }, says: '0 to 4096 bytes' },
    { name: 'depth 0', command: { ...acquire, depthMax: 0 }, says: 'from 1 to' },
    { name: 'a fractional attempt', command: { ...acquire, attempt: 0.5 }, says: 'attempt is an integer' },
    { name: 'no number', command: { ...acquire, deadlineMs: Number.NaN }, says: 'deadlineMs is a time' },
    { name: 'an endless wait', command: { ...acquire, waitUntilMs: Number.POSITIVE_INFINITY }, says: 'waitUntilMs' },
    {
      name: 'an upgrade without a number',
      command: { ...acquire, attempt: 0, as: { type: 'upgrade' } },
      says: 'an upgrade needs a number',
    },
    {
      name: 'no permits',
      command: { ...acquire, as: { type: 'permits', permits: 0, capacity: 3 } },
      says: '1 to 1000000',
    },
    {
      name: 'less than no permits',
      command: { ...acquire, as: { type: 'permits', permits: -1, capacity: 3 } },
      says: 'the number of permits',
    },
    {
      name: 'a semaphore without permits',
      command: { ...acquire, as: { type: 'permits', permits: 1, capacity: 0 } },
      says: 'the capacity of a semaphore',
    },
    {
      name: 'much data for a hold',
      command: { type: 'setData', lock, owner, version: 1, data: utf8(long(4_097)) },
      says: '0 to 4096 bytes',
    },
    {
      name: 'a long delay',
      command: { ...acquire, delayMs: 60_001 },
      says: 'the lock-delay in ms is an integer from 0',
    },
    { name: 'a delay below 0', command: { ...acquire, delayMs: -1 }, says: 'the lock-delay in ms' },
    {
      name: 'a long reason',
      command: { type: 'forceRelease', lock, reason: long(1_025) },
      says: '`reason` of a forced release has 1 to 1024 bytes',
    },
    {
      name: 'much of who it is',
      command: { type: 'forceRelease', lock, by: long(129) },
      says: '`by` of a forced release has 1 to 128',
    },
    {
      name: 'a barrier without a number',
      command: { ...acquire, attempt: 0, as: { type: 'pass' } },
      says: 'a wait at a barrier needs a number',
    },
    {
      name: 'a barrier of nobody',
      command: { ...acquire, as: { type: 'enter', parties: 0 } },
      says: 'the number of parties is an integer from 1',
    },
    {
      name: 'a depth of nothing',
      command: { type: 'setDepth', lock, owner, version: 1, depth: 0 },
      says: 'depth is an integer from 1',
    },
    {
      name: 'data for no grant',
      command: { type: 'setData', lock, owner, version: 0, data: utf8('') },
      says: 'version is an integer from 1',
    },
    {
      name: 'a long reason',
      command: { type: 'revoke', lock, by: '', reason: 'x'.repeat(257), forMs: 1 },
      says: '1 to 256 bytes',
    },
    {
      name: 'to ask for no time',
      command: { type: 'revoke', lock, by: '', reason: '', forMs: 0 },
      says: '1 to 86400000',
    },
    { name: 'a capacity below 0', command: { type: 'setCapacity', lock, capacity: -1 }, says: '0 to 1000000' },
    {
      name: 'lease 0',
      command: { type: 'cancel', lock, owner: { ...owner, session: { lease: 0n, incarnation: 1 } }, deadlineMs: 0 },
      says: 'lease',
    },
  ];

  it.each(bad)('$name is refused with what is right', ({ command, says }) => {
    const message: unknown = expect.stringContaining(says);
    expect(validateLockCommand(command)).toEqual({ type: 'refused', code: 'INVALID_ARGUMENT', message });
  });

  it('what is within bounds passes', () => {
    for (const command of [...commands, ...commandsOfKinds]) expect(validateLockCommand(command)).toBeUndefined();
    for (const query of queries) expect(validateLockQuery(query)).toBeUndefined();
  });

  it('queries have bounds too', () => {
    const list = { type: 'list' as const, namespace: 'n', prefix: utf8(''), after: utf8('') };
    for (const limit of [0, 1.5, 1_001]) expect(validateLockQuery({ ...list, limit })?.message).toContain('limit');
    expect(validateLockQuery({ type: 'check', checks: [] })?.message).toContain('1 to 1000');
    expect(validateLockQuery({ type: 'show', lock: { ...lock, name: utf8('') } })?.message).toContain('name');
  });
});
