import { AUTH_TRUST_MS, type Audit, type AuditEvent, KnownAuth, type PlainNeed } from '@remora/auth';
import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AuthImage, Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import type {
  BackendDone,
  BackendReply,
  LockWatchOptions,
  RequestOptions,
  RequestTerms,
  WatchListener,
  WatchOptions,
} from '../backend.ts';
import { AuthorisedBackend } from './authorised-backend.ts';
import type { Clearance } from './clearance.ts';
import type { ClearedBackend } from './cleared-backend.ts';

const b = (text: string): Buffer => Buffer.from(text);
const ADA = { name: 'ada', method: 'token' } as const;
const ROOT = { name: 'root', method: 'token' } as const;

/** Ada may write below `a`, read below `a` and `r`, and acquire locks of `shop`. */
function image(revision: number, more: Partial<AuthImage> = {}): AuthImage {
  return {
    ...{ enabled: true, revision, tokenKey: b('key') },
    users: [
      { name: 'ada', passwordHash: '', roles: ['writer'], version: 1 },
      { name: 'root', passwordHash: '', roles: ['root'], version: 1 },
    ],
    roles: [
      {
        name: 'writer',
        keys: [
          { access: 'readWrite', key: b('a'), end: b('b') },
          { access: 'read', key: b('r'), end: b('s') },
        ],
        locks: [{ namespace: 'shop', name: b(''), isPrefix: true, verb: 'acquire' }],
      },
    ],
    ...more,
  };
}
const NOBODY_MAY: Partial<AuthImage> = { roles: [{ name: 'writer', keys: [], locks: [] }] };

const put = (key: string, lease = 0n): Command => ({
  ...{ type: 'kv' },
  op: { type: 'put', key: b(key), value: b('v'), lease, prevKv: false, ignoreValue: false, ignoreLease: false },
});
const KEEP_ALIVE: Query = { type: 'leaseKeepAlive', id: 7n, incarnation: 1 };

/** What reaches the ranges. */
class Ranges implements ClearedBackend {
  readonly nodeId = 1;
  readonly commands: {
    readonly command: Command;
    readonly clearance: Clearance;
    readonly requestId: string | undefined;
    readonly done: BackendDone<CommandResult>;
  }[] = [];
  readonly queries: { readonly query: Query; readonly clearance: Clearance }[] = [];
  readonly recalled: string[] = [];
  leaseQuestions = 0;
  leaseKeys: readonly string[] = [];
  /** Of every lease. */
  owner: string | undefined;
  incarnation = 1;
  /** Called before a question about a lease is answered. */
  meanwhile = (): void => {};
  watching: WatchListener | undefined;
  cancelled = 0;

  query(query: Query, _options: object, done: BackendDone<QueryResult>): () => void {
    if (query.type !== 'leaseTimeToLive') throw new Error(`${query.type} is asked for by the cluster`);
    this.leaseQuestions++;
    this.meanwhile();
    const keys = this.leaseKeys.map(b);
    const whose = this.owner === undefined ? {} : { owner: this.owner };
    const lease = { id: query.id, incarnation: this.incarnation, remainingMs: 9, grantedTtlMs: 9, keys, ...whose };
    const result = { type: 'leaseTimeToLive', lease } as unknown as QueryResult;
    done(undefined, { result, revision: 1, raftTerm: 1 });
    return () => {};
  }
  /** The answer to all commands; undefined: none. */
  outcome: ServiceError | 'done' | undefined;

  commandFor(
    clearance: Clearance,
    command: Command,
    { requestId }: RequestTerms,
    done: BackendDone<CommandResult>,
  ): () => void {
    this.commands.push({ command, clearance, requestId, done });
    if (this.outcome instanceof ServiceError) done(this.outcome, undefined);
    else if (this.outcome === 'done') done(undefined, {} as BackendReply<CommandResult>);
    return () => {};
  }
  /** The answer to all queries; undefined: none. */
  answer: QueryResult | undefined;

  queryFor(clearance: Clearance, query: Query, _terms: object, done: BackendDone<QueryResult>): () => void {
    this.queries.push({ query, clearance });
    if (this.answer !== undefined) done(undefined, { result: this.answer, revision: 1, raftTerm: 1 });
    return () => {};
  }
  recall({ requestId }: { readonly requestId: string }): () => void {
    this.recalled.push(requestId);
    return () => {};
  }
  watch(_options: WatchOptions, listener: WatchListener) {
    this.watching = listener;
    return { cancel: () => void this.cancelled++, progress() {}, pause() {}, resume() {} };
  }
  watchLocks(_options: LockWatchOptions) {
    return { cancel: () => void this.cancelled++, pause() {}, resume() {} };
  }
  view = () => ({ clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 });
  rangeTimeMs = () => 0;
}

function bed(first: AuthImage | 'unknown' = image(5), writes = false, isOn = true) {
  const clock = new ManualClock();
  const known = new KnownAuth({ clock, hurry: () => {} });
  const learn = (one: AuthImage): void => known.learn(one, clock.monotonicMs());
  if (first !== 'unknown') learn(first);
  const ranges = new Ranges();
  const recorded: AuditEvent[] = [];
  const audit: Audit = { isOn, writes, record: (event) => void recorded.push(event) };
  const backend = new AuthorisedBackend({ ranges, known, clock, audit });
  const errors: string[] = [];
  const done: BackendDone<unknown> = (error) => void errors.push(error?.code ?? 'done');
  const send = (command: Command, options: Partial<RequestOptions> = { principal: ADA }) =>
    backend.command(command, { timeoutMs: 1_000, principal: undefined, ...options }, done);
  const ask = (query: Query, options: Partial<RequestOptions> = { principal: ADA }) =>
    backend.query(query, { timeoutMs: 1_000, principal: undefined, ...options }, done);
  return { clock, known, learn, ranges, backend, errors, send, ask, recorded };
}
const turns = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

describe('a request', () => {
  test('of a user who may send it goes to the ranges with the revision of the decision (AB1)', () => {
    const { ranges, send, errors } = bed();
    send(put('a1'));
    expect(errors).toEqual([]);
    expect(ranges.commands.map(({ clearance }) => clearance.revision)).toEqual([5]);
  });

  test('that is not allowed, or whose caller is nobody, never reaches a range', () => {
    const { ranges, send, ask, errors } = bed();
    send(put('r1'));
    send(put('a1'), { principal: undefined });
    send(put('a1'), { principal: { name: 'gone', method: 'certificate' } });
    ask({ type: 'scan', key: b('a'), end: b('c'), revision: 0, bytes: 1 });
    expect(errors).toEqual(['PERMISSION_DENIED', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'PERMISSION_DENIED']);
    expect([ranges.commands, ranges.queries]).toEqual([[], []]);
  });

  test('goes on as before while authentication is off, and carries that revision (AB2)', () => {
    const { ranges, send } = bed(image(4, { enabled: false }));
    send(put('z'), { principal: undefined });
    expect(ranges.commands.map(({ clearance }) => clearance.revision)).toEqual([4]);
  });

  test('waits while nothing is known of users and roles', () => {
    const { ranges, send, learn, errors, clock } = bed('unknown');
    const { clock: late, send: sendLate, errors: lateErrors } = bed('unknown');
    send(put('a1'));
    expect(ranges.commands).toEqual([]);
    learn(image(5));
    expect([ranges.commands.length, errors]).toEqual([1, []]);
    sendLate(put('a1'));
    late.advance(1_500);
    expect(lateErrors).toEqual(['UNAVAILABLE']);
    clock.advance(5_000);
    expect(errors).toEqual([]);
  });

  test('is refused when users and roles have not been heard of for too long', () => {
    const { send, clock, errors } = bed();
    clock.advance(AUTH_TRUST_MS + 1);
    send(put('a1'), { principal: ROOT });
    expect(errors).toEqual(['UNAVAILABLE']);
  });

  test('that ranges send back is decided about again by the newer revision, and waits for it (AB1)', () => {
    const { ranges, send, learn } = bed(image(4, { enabled: false }));
    send(put('a1'), { principal: ADA });
    send(put('z'), { principal: ADA });
    const answers: string[] = [];
    for (const { clearance } of ranges.commands) {
      clearance.again(6, 1_000, (refusal) => answers.push(`${refusal?.code ?? 'allowed'} by ${clearance.revision}`));
    }
    expect(answers).toEqual([]);
    learn(image(5));
    expect(answers).toEqual([]);
    learn(image(6));
    expect(answers).toEqual(['allowed by 6', 'PERMISSION_DENIED by 6']);
  });

  test('that ranges send back is not sent again if the newer revision does not come', () => {
    const { ranges, send, clock } = bed();
    send(put('a1'));
    const codes: (string | undefined)[] = [];
    ranges.commands[0]?.clearance.again(9, 500, (refusal) => codes.push(refusal?.code));
    clock.advance(600);
    expect(codes).toEqual(['UNAVAILABLE']);
  });

  test('that is refused, and may have been sent before, is asked after at the ranges (AB3)', () => {
    const { ranges, send, errors } = bed();
    send(put('z'), { principal: ADA, requestId: 'mine' });
    expect([ranges.recalled, ranges.commands, errors]).toEqual([['mine'], [], []]);
  });

  test('whose id its client has chosen shares it with no other user, nor with ids that others send (AB6)', () => {
    const { ranges, send } = bed();
    const idsOf = (options: Partial<RequestOptions>): readonly (string | undefined)[] => {
      send(put('a1'), options);
      send(put('z'), options);
      return [ranges.commands.at(-1)?.requestId, ranges.recalled.at(-1)];
    };
    const chosen = { requestId: 'job-7', isChosenId: true } as const;
    const [adas, recalled] = idsOf({ principal: ADA, ...chosen });
    expect(adas).toMatch(/^u\.[\w-]{43}$/);
    expect(recalled).toBe(adas);
    expect(idsOf({ principal: ADA, ...chosen })[0]).toBe(adas);
    expect(idsOf({ principal: { ...ADA, method: 'certificate' }, ...chosen })[0]).toBe(adas);
    expect(idsOf({ principal: ROOT, ...chosen })[0]).not.toBe(adas);
    expect(idsOf({ principal: ADA, ...chosen, requestId: 'job-8' })[0]).not.toBe(adas);
    expect(idsOf({ principal: ADA, requestId: 'random' })).toEqual(['random', 'random']);
    const other = bed(image(5, { tokenKey: b('of another cluster') }));
    other.send(put('a1'), { principal: ADA, ...chosen });
    expect(other.ranges.commands[0]?.requestId).not.toBe(adas);
  });

  test('can be given up while its lease is asked about', async () => {
    const { ranges, send, errors } = bed();
    send(put('a1', 7n))();
    await turns();
    expect([ranges.commands, errors]).toEqual([[], []]);
  });
});

describe('what an answer shows of a lease', () => {
  const shownTo = (
    principal: RequestOptions['principal'],
    lease: { readonly owner?: string; readonly keys: string[] },
  ) => {
    const { backend, ranges } = bed(WITH_STEERER);
    const attributes = { host: 'h1' };
    const info = {
      ...{ id: 7n, incarnation: 1, grantedTtlMs: 9, remainingMs: 9, endsEmpty: false, attributes },
      ...lease,
    };
    ranges.answer = { type: 'leaseTimeToLive', lease: { ...info, keys: lease.keys.map(b) } };
    let shown: unknown;
    const query = { type: 'leaseTimeToLive', id: 7n, keys: false } as const;
    backend.query(query, { principal, timeoutMs: 1_000 }, (error, reply) => {
      const { owner, attributes: told } = reply?.result.type === 'leaseTimeToLive' ? reply.result.lease : info;
      shown = error?.code ?? { owner, ...told };
    });
    return shown;
  };
  const WITH_STEERER = image(5, {
    users: [
      { name: 'ada', passwordHash: '', roles: ['writer'], version: 1 },
      { name: 'gil', passwordHash: '', roles: ['steerer'], version: 1 },
      { name: 'root', passwordHash: '', roles: ['root'], version: 1 },
    ],
    roles: [
      { name: 'writer', keys: [{ access: 'read', key: b('a') }], locks: [] },
      { name: 'steerer', keys: [], locks: [{ namespace: '', name: b(''), isPrefix: true, verb: 'steer' }] },
    ],
  });
  const GIL = { name: 'gil', method: 'token' } as const;

  test('is what a client says of its session only for who may see the session (AB7)', () => {
    const ofAda = { owner: 'ada', keys: [] };
    for (const who of [ADA, GIL, ROOT]) expect(shownTo(who, ofAda)).toEqual({ owner: 'ada', host: 'h1' });
    expect(shownTo(ADA, { owner: 'gil', keys: [] })).toEqual({ owner: undefined });
    expect(shownTo(ADA, { owner: '', keys: [] })).toEqual({ owner: undefined });
  });

  test('is refused if a key was attached meanwhile that its caller may not read (AB7)', () => {
    expect(shownTo(ADA, { owner: 'ada', keys: ['a'] })).toEqual({ owner: 'ada', host: 'h1' });
    expect(shownTo(ADA, { owner: 'ada', keys: ['a', 'z'] })).toBe('PERMISSION_DENIED');
    expect(shownTo(ROOT, { owner: 'ada', keys: ['a', 'z'] })).toEqual({ owner: 'ada', host: 'h1' });
  });
});

describe('what a request needs of a lease', () => {
  test('is decided by the keys that the lease has', async () => {
    const { ranges, send, errors } = bed();
    ranges.leaseKeys = ['a1', 'a2'];
    send(put('a3', 7n));
    await turns();
    expect([ranges.commands.length, errors]).toEqual([1, []]);
    ranges.leaseKeys = ['a1', 'r1'];
    send(put('a3', 7n));
    send({ type: 'leaseRevoke', id: 7n, incarnation: 0 });
    await turns();
    expect([ranges.commands.length, errors]).toEqual([1, ['PERMISSION_DENIED', 'PERMISSION_DENIED']]);
  });

  test('is not asked for a caller who is refused anyway, or who is root (DE3)', async () => {
    const { ranges, send, errors } = bed();
    send(put('z', 7n));
    send(put('z', 7n), { principal: ROOT });
    await turns();
    expect([ranges.leaseQuestions, errors, ranges.commands.length]).toEqual([0, ['PERMISSION_DENIED'], 1]);
  });

  test('is decided again when users and roles change while it is asked for (DE1)', async () => {
    const { ranges, send, learn, errors } = bed();
    ranges.leaseKeys = ['a1'];
    let revision = 5;
    ranges.meanwhile = () => {
      if (revision === 5) learn(image(++revision));
    };
    send(put('a3', 7n));
    await turns();
    expect(ranges.commands.map(({ clearance }) => clearance.revision)).toEqual([6]);
    ranges.meanwhile = () => learn(image(++revision, NOBODY_MAY));
    send(put('a3', 7n));
    await turns();
    expect([ranges.commands.length, errors]).toEqual([1, ['PERMISSION_DENIED']]);
  });

  test('is remembered for renewals, for ten seconds and one revision (DE4)', async () => {
    const { ranges, ask, learn, clock, errors } = bed();
    ranges.leaseKeys = ['a1'];
    for (let beat = 0; beat < 3; beat++) {
      ask(KEEP_ALIVE);
      await turns();
    }
    expect([ranges.leaseQuestions, ranges.queries.length]).toEqual([1, 3]);
    ask({ ...KEEP_ALIVE, id: 8n });
    await turns();
    expect(ranges.leaseQuestions).toBe(2);
    clock.advance(10_000);
    ask(KEEP_ALIVE);
    await turns();
    expect(ranges.leaseQuestions).toBe(3);
    learn(image(6, NOBODY_MAY));
    ask(KEEP_ALIVE);
    await turns();
    expect(errors).toEqual(['PERMISSION_DENIED']);
  });
});

describe('a watch', () => {
  const WATCH = { key: b('a'), end: b('b'), startRevision: 0, noPut: false, noDelete: false, prevKv: false };
  const listener = (ends: string[]): WatchListener => ({
    onCreated() {},
    onEvents() {},
    onProgress() {},
    onEnd: (error) => void ends.push(error.code),
  });

  test('that is not allowed is never begun, and its client hears that in a later turn', () => {
    const { ranges, backend, clock } = bed();
    const ends: string[] = [];
    backend.watch({ ...WATCH, end: b('c'), principal: ADA }, listener(ends));
    backend.watchLocks(
      { namespace: 'bank', name: b(''), single: false, principal: ADA },
      () => {},
      (error) => ends.push(error.code),
    );
    expect([ends, ranges.watching]).toEqual([[], undefined]);
    clock.advance(0);
    expect(ends).toEqual(['PERMISSION_DENIED', 'PERMISSION_DENIED']);
  });

  test('ends once when its user may not watch any more, also one that began while authentication was off (AB4)', () => {
    const { ranges, backend, learn } = bed(image(4, { enabled: false }));
    const ends: string[] = [];
    backend.watch({ ...WATCH, principal: ADA }, listener(ends));
    backend.watch({ ...WATCH, principal: undefined }, listener(ends));
    const locks = { namespace: 'shop', name: b('l'), single: true, principal: ADA };
    backend.watchLocks(
      locks,
      () => {},
      (error) => ends.push(error.code),
    );
    learn(image(5));
    expect([ends, ranges.cancelled]).toEqual([['UNAUTHENTICATED'], 1]);
    learn(image(6, NOBODY_MAY));
    expect(ends).toEqual(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'PERMISSION_DENIED']);
    learn(image(7, NOBODY_MAY));
    expect(ends).toHaveLength(3);
  });

  test('ends when users and roles are not known for sure any more (AB4)', () => {
    const { backend, clock } = bed();
    const ends: string[] = [];
    backend.watch({ ...WATCH, principal: ADA }, listener(ends));
    clock.advance(AUTH_TRUST_MS - 1_500);
    expect(ends).toEqual([]);
    clock.advance(3_000);
    expect(ends).toEqual(['UNAVAILABLE']);
  });

  test('that its client or the ranges have ended is not ended again', () => {
    const { ranges, backend, learn } = bed();
    const ends: string[] = [];
    backend.watch({ ...WATCH, principal: ADA }, listener(ends)).cancel();
    backend.watch({ ...WATCH, principal: ADA }, listener(ends));
    ranges.watching?.onEnd(new ServiceError('COMPACTED', 'gone'), 5);
    learn(image(6, NOBODY_MAY));
    expect(ends).toEqual(['COMPACTED']);
  });
});

describe('a session', () => {
  const BOB = { name: 'bob', method: 'token', version: 1 } as const;
  const GIL = { name: 'gil', method: 'token', version: 1 } as const;
  const may = (name: string, roles: readonly string[]) => ({ name, passwordHash: '', roles, version: 1 });
  /** Bob may acquire the same locks as Ada, and write below `a`; Gil may steer all locks. */
  const WITH_BOB = image(5, {
    users: [...image(5).users, may('bob', ['writer']), may('gil', ['guard'])],
    roles: [
      ...image(5).roles,
      { name: 'guard', keys: [], locks: [{ namespace: '', name: b(''), isPrefix: true, verb: 'steer' as const }] },
    ],
  });
  const SESSION = { lease: 7n, incarnation: 1 };
  const lock = { namespace: 'shop', name: b('l') };
  const owner = { session: SESSION, token: 't' };
  const withLock = (type: string): Command => ({ type: 'lock', command: { type, lock, owner } }) as unknown as Command;
  const uses: readonly Command[] = [
    ...['acquire', 'release', 'cancel', 'downgrade', 'setData', 'setDepth'].map(withLock),
    { type: 'leaseChange', id: 7n, incarnation: 1, number: 1, ttlMs: 5_000 },
    put('a1', 7n),
  ];
  const end: Command = { type: 'leaseRevoke', id: 7n, incarnation: 1 };
  const show: Query = { type: 'session', id: 7n, incarnation: 0 };
  const await_: Query = { type: 'lockAwait', lock, owner };
  const codes = async (test: ReturnType<typeof bed>, principal: RequestOptions['principal']) => {
    const before = test.errors.length;
    for (const command of [...uses, end]) test.send(command, { principal });
    for (const query of [KEEP_ALIVE, await_, show]) test.ask(query, { principal });
    await turns();
    return test.errors.slice(before);
  };

  test('that begins belongs to its caller, whatever its request says; a lease of plain keys to nobody (AB5)', () => {
    const { ranges, send } = bed(image(4, { enabled: false }));
    const grant = { type: 'leaseGrant', id: 7n, ttlMs: 1_000, attributes: {} } as const;
    send({ ...grant, owner: '' });
    send({ ...grant, owner: 'root' });
    send({ ...grant, owner: 'root' }, { principal: undefined });
    send(grant);
    const owners = ranges.commands.map(({ command }) => command.type === 'leaseGrant' && command.owner);
    expect(owners).toEqual(['ada', 'ada', '', undefined]);
  });

  test('is used, changed, renewed and ended by its owner, and by no other user who may acquire locks (OW2)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'ada';
    expect(await codes(one, BOB)).toEqual(Array.from({ length: 12 }, () => 'PERMISSION_DENIED'));
    expect([one.ranges.commands, one.ranges.queries]).toEqual([[], []]);
    expect(await codes(one, ADA)).toEqual([]);
    expect([one.ranges.commands.length, one.ranges.queries.length]).toEqual([9, 3]);
  });

  test('is ended and shown by who may steer all locks, and nothing else; its keys must be his to write (OW2)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'ada';
    await codes(one, GIL);
    expect(one.ranges.commands.map(({ command }) => command.type)).toEqual(['leaseRevoke']);
    expect(one.ranges.queries.map(({ query }) => query.type)).toEqual(['session']);
    one.ranges.leaseKeys = ['a1'];
    one.send(end, { principal: GIL });
    await turns();
    expect(one.ranges.commands).toHaveLength(1);
  });

  test('that was begun without a user is renewed by nobody, and used by nobody but root', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = '';
    expect(await codes(one, ADA)).toEqual(Array.from({ length: 12 }, () => 'PERMISSION_DENIED'));
    expect(await codes(one, ROOT)).toEqual([]);
  });

  test('is none if it is a lease of plain keys: its keys decide, and locks are not taken with it (OW5)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.leaseKeys = ['a1'];
    await codes(one, BOB);
    expect(one.ranges.commands.map(({ command }) => command.type)).toEqual(['kv', 'leaseRevoke']);
    expect(one.ranges.queries.map(({ query }) => query.type)).toEqual(['leaseKeepAlive']);
  });

  test('of nobody is not renewed or ended by callers who have not logged in, not even a lease without keys', async () => {
    const one = bed(WITH_BOB);
    expect(await codes(one, undefined)).toEqual(Array.from({ length: 12 }, () => 'UNAUTHENTICATED'));
    expect(await codes(one, { name: 'gone', method: 'certificate' })).toEqual(
      Array.from({ length: 12 }, () => 'PERMISSION_DENIED'),
    );
    expect(one.ranges.leaseQuestions).toBe(0);
  });

  test('is asked about once: its owner never changes (OW1)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'ada';
    for (let i = 0; i < 3; i++) {
      one.send(withLock('acquire'));
      one.ask(KEEP_ALIVE);
      await turns();
    }
    expect(one.ranges.commands).toHaveLength(3);
    const asked = one.ranges.leaseQuestions;
    for (const command of [withLock('release'), end]) one.send(command);
    one.send(withLock('release'), { principal: BOB });
    expect([one.ranges.leaseQuestions, one.ranges.commands.length]).toEqual([asked, 5]);
    expect(one.errors).toEqual(['PERMISSION_DENIED']);
    one.ranges.incarnation = 2;
    one.send({ ...end, incarnation: 2 }, { principal: ADA });
    await turns();
    expect(one.ranges.leaseQuestions).toBe(asked + 1);
  });

  test('that its home does not know is not used (OW3)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'ada';
    one.ranges.incarnation = 2;
    for (const type of ['acquire', 'release']) one.send(withLock(type), { principal: ADA });
    await turns();
    expect([one.errors, one.ranges.commands]).toEqual([['SESSION_EXPIRED', 'SESSION_EXPIRED'], []]);
    one.send(withLock('release'), { principal: ADA, requestId: 'mine', again: true });
    await turns();
    expect(one.ranges.recalled).toEqual(['mine']);
  });

  test('is ended in the incarnation that was decided about, if the request names none (OW4)', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'ada';
    one.ranges.incarnation = 9;
    one.send({ ...end, incarnation: 0 });
    await turns();
    expect(one.ranges.commands.map(({ command }) => command)).toEqual([{ ...end, incarnation: 9 }]);
    one.ranges.incarnation = 0;
    for (const command of [{ ...end, incarnation: 0 }, put('a1', 7n)]) one.send(command);
    await turns();
    expect(one.errors).toEqual(['LEASE_NOT_FOUND', 'LEASE_NOT_FOUND']);
  });

  test('is no longer renewed or used once the password of its user has changed, also by its open streams', async () => {
    const one = bed(WITH_BOB);
    one.ranges.owner = 'bob';
    expect(await codes(one, BOB)).toEqual([]);
    one.ask(await_, { principal: BOB });
    const users = WITH_BOB.users.map((user) => (user.name === 'bob' ? { ...user, version: 6 } : user));
    one.learn({ ...WITH_BOB, revision: 6, users });
    expect(one.errors).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
    expect(await codes(one, BOB)).toEqual(Array.from({ length: 12 }, () => 'UNAUTHENTICATED'));
    expect(await codes(one, { ...BOB, version: 6 })).toEqual([]);
    one.learn({ ...WITH_BOB, revision: 7, users: [] });
    expect(await codes(one, { ...BOB, version: 6 })).toContain('UNAUTHENTICATED');
  });

  test('is listed for its owner, and all are for who may steer all locks', async () => {
    const one = bed(WITH_BOB);
    const list = (whose: { readonly owner?: string }): Query => ({
      ...{ type: 'sessions', after: 0n, limit: 9, attributes: {} },
      ...whose,
    });
    for (const principal of [ADA, GIL, ROOT]) {
      for (const whose of [{ owner: 'ada' }, { owner: 'bob' }, {}]) one.ask(list(whose), { principal });
    }
    await turns();
    expect([one.ranges.queries.length, one.errors]).toEqual([7, ['PERMISSION_DENIED', 'PERMISSION_DENIED']]);
  });
});

describe('a wait for a lock', () => {
  const owner = { session: { lease: 7n, incarnation: 1 }, token: 't' };
  const lock = { namespace: 'shop', name: b('l') };
  const acquire = { ...{ type: 'acquire', lock, owner, wait: true }, waitUntilMs: 0, deadlineMs: 0 };
  const command = { type: 'lock', command: acquire } as unknown as Command;
  const refusals = ({ commands }: Ranges): readonly string[] => {
    const refused: string[] = [];
    const [sent] = commands;
    if (sent !== undefined) sent.clearance.onRefused = (refusal) => void refused.push(refusal.code);
    return refused;
  };

  test('hears that its client may not acquire the lock any more (AB4)', async () => {
    const { ranges, send, learn } = bed();
    ranges.owner = 'ada';
    send(command, { principal: ADA, waitMs: 60_000 });
    await turns();
    const refused = refusals(ranges);
    learn(image(6));
    expect(refused).toEqual([]);
    learn(image(7, NOBODY_MAY));
    expect(refused).toEqual(['PERMISSION_DENIED']);
  });

  test('that began while authentication was off hears that its client is nobody now (AB4)', () => {
    const { ranges, send, learn } = bed(image(4, { enabled: false }));
    send(command, { principal: undefined, waitMs: 60_000 });
    const refused = refusals(ranges);
    learn(image(5));
    expect(refused).toEqual(['UNAUTHENTICATED']);
  });

  test('that was given up hears nothing', () => {
    const { ranges, send, learn } = bed();
    send(command, { principal: ADA, waitMs: 60_000 })();
    const refused = refusals(ranges);
    learn(image(7, NOBODY_MAY));
    expect(refused).toEqual([]);
  });

  test('that is refused, and may have been granted before, is asked after at the ranges (AB3)', () => {
    const { ranges, send, errors } = bed(image(7, NOBODY_MAY));
    send(command, { principal: ADA, waitMs: 60_000, requestId: 'mine', again: true });
    expect([ranges.recalled, ranges.commands, errors]).toEqual([['mine'], [], []]);
  });
});

test('what is needed without masters is decided by what the node knew last; all else waits for them (KA5)', () => {
  const { clock, backend } = bed();
  clock.advance(2 * AUTH_TRUST_MS);
  const codeOf = (principal: typeof ROOT | typeof ADA | undefined, needs: readonly PlainNeed[]): string => {
    try {
      backend.check(principal, needs);
      return 'allowed';
    } catch (error) {
      return (error as ServiceError).code;
    }
  };
  const rescue = { type: 'root', what: 'administer the cluster', withoutMasters: true } as const;
  const administer = { type: 'root', what: 'administer the cluster' } as const;
  expect(codeOf(ROOT, [rescue])).toBe('allowed');
  expect(codeOf(ADA, [rescue])).toBe('PERMISSION_DENIED');
  expect(codeOf(undefined, [rescue])).toBe('UNAUTHENTICATED');
  expect(codeOf(ROOT, [administer])).toBe('UNAVAILABLE');
  expect(codeOf(ROOT, [rescue, administer])).toBe('UNAVAILABLE');
  expect(codeOf(ROOT, [])).toBe('UNAVAILABLE');
});

describe('the audit log', () => {
  const FROM = { door: 'pipe', address: '10.0.0.9' } as const;
  const ada = { ...ADA, ...FROM };
  const force: Command = {
    type: 'lock',
    command: { type: 'forceRelease', lock: { namespace: 'shop', name: b('x') } },
  } as unknown as Command;
  const shown = ({ action, decision, targets, reason }: AuditEvent) => [action, decision, targets, reason];

  test('has every refusal, with its caller, and of which need (AC1)', () => {
    const { send, ask, backend, learn, recorded, clock } = bed();
    send(put('z\n'), { principal: ada });
    ask({ type: 'scan', key: b('a'), end: b('c'), revision: 0, bytes: 1 }, { principal: undefined });
    const looks: readonly PlainNeed[] = [{ type: 'root', what: 'look at the cluster', looks: true }];
    expect(() => backend.check(ada, looks, 'listNodes')).toThrow();
    const watch = { key: b('z'), startRevision: 0, noPut: false, noDelete: false, prevKv: false, principal: ada };
    const listener = { onCreated() {}, onEvents() {}, onProgress() {}, onEnd() {} };
    backend.watch(watch, listener);
    backend.watch({ ...watch, key: b('a') }, listener);
    learn(image(6, NOBODY_MAY));
    clock.advance(1);
    expect(recorded[0]).toEqual({
      ...{ action: 'put', decision: 'denied', principal: ada, targets: ['write the key 0x7a0a'] },
      ...{ reason: 'the user "ada" may not write the key 0x7a0a', requestId: undefined },
    });
    expect(recorded.slice(1).map(({ action, decision }) => `${action} ${decision}`)).toEqual([
      'scan denied',
      'listNodes denied',
      'watch denied',
      'watch denied',
    ]);
    expect(JSON.stringify(recorded)).not.toContain('"v"');
  });

  test('shows the request ids that clients choose, and no others (AC5)', () => {
    const { send, ranges, recorded } = bed(image(5), true);
    ranges.outcome = 'done';
    for (const door of ['pipe', 'grpc', 'http'] as const) {
      send(put('a1'), { principal: { ...ADA, door }, requestId: 'job-7', isChosenId: door !== 'pipe' });
    }
    expect(recorded.map(({ requestId }) => requestId)).toEqual([undefined, 'job-7', 'job-7']);
  });

  test('has refusals by the leader of a range, and by a newer revision (AC1)', () => {
    const { send, ranges, recorded } = bed();
    ranges.outcome = new ServiceError('PERMISSION_DENIED', 'the session belongs to another user');
    send(put('a1'), { principal: ada });
    expect(recorded.map(shown)).toEqual([
      ['put', 'denied', ['write the key "a1"'], 'the session belongs to another user'],
    ]);
  });

  test('has what steers locks or administers, with its outcome, also while authentication is off (AC1)', () => {
    for (const enabled of [true, false]) {
      const { send, backend, ranges, recorded } = bed(image(5, { enabled }));
      const principal = enabled ? { ...ROOT, ...FROM } : ({ name: undefined, method: 'none', ...FROM } as const);
      ranges.outcome = 'done';
      send(force, { principal, requestId: 'r7' });
      ranges.outcome = new ServiceError('LOCK_NOT_HELD', 'the lock is free');
      send(force, { principal });
      backend.check(principal, [{ type: 'root', what: 'administer the cluster' }], 'setSetting');
      backend.check(principal, [{ type: 'root', what: 'look at the cluster', looks: true }], 'listNodes');
      const lock = ['steer the lock "x" of the namespace "shop"'];
      expect(recorded.map(shown)).toEqual([
        ['lock.forceRelease', 'allowed', lock, undefined],
        ['lock.forceRelease', 'failed', lock, 'LOCK_NOT_HELD'],
        ['setSetting', 'allowed', [], undefined],
      ]);
      expect(recorded[0]).toMatchObject({ principal });
    }
  });

  const BOSS = { name: 'boss', method: 'token', ...FROM } as const;
  const close: Command = { type: 'leaseRevoke', id: 7n, incarnation: 1 };
  const change: Command = { type: 'leaseChange', id: 7n, incarnation: 1, number: 1, ttlMs: 9_000 };
  /** Ada's, Boss's and root's rights, and Boss steers all locks. */
  const withBoss = (revision: number): AuthImage => {
    const { users, roles } = image(revision);
    const locks = [{ namespace: '', name: b(''), isPrefix: true, verb: 'steer' }] as const;
    return image(revision, {
      users: [...users, { name: 'boss', passwordHash: '', roles: ['boss'], version: 1 }],
      roles: [...roles, { name: 'boss', keys: [], locks }],
    });
  };

  test.each([
    ['boss', BOSS],
    ['root', { ...ROOT, ...FROM }],
  ] as const)(
    'has the end of a session of another user, by %s, with its owner (AC1, AC4)',
    async (_name, principal) => {
      const { send, ranges, recorded } = bed(withBoss(5));
      Object.assign(ranges, { owner: 'ada', outcome: 'done' });
      send(close, { principal, requestId: 'r7' });
      await turns();
      ranges.outcome = new ServiceError('LEASE_NOT_FOUND', 'it has ended');
      send({ ...close, incarnation: 0 }, { principal });
      await turns();
      Object.assign(ranges, { owner: '', outcome: 'done' });
      send({ ...close, incarnation: 0 }, { principal });
      await turns();
      const ends = ['end the session 7 of the user "ada"'];
      expect(recorded.map(shown)).toEqual([
        ['leaseRevoke', 'allowed', ends, undefined],
        ['leaseRevoke', 'failed', ends, 'LEASE_NOT_FOUND'],
        ['leaseRevoke', 'allowed', ['end the session 7 of no user'], undefined],
      ]);
      expect(recorded[0]).toMatchObject({ principal });
    },
  );

  test('has the end of a session of another user that is decided about only when a range knows a newer revision (AC4)', async () => {
    const { send, ranges, recorded, learn } = bed(image(5, { enabled: false }));
    ranges.owner = 'ada';
    send(close, { principal: { ...ROOT, ...FROM } });
    const [sent] = ranges.commands;
    learn(image(6));
    let refusal: ServiceError | undefined;
    sent?.clearance.again(6, 1_000, (error) => {
      refusal = error;
      sent.done(undefined, {} as BackendReply<CommandResult>);
    });
    await turns();
    expect(refusal).toBeUndefined();
    expect(recorded.map(shown)).toEqual([
      ['leaseRevoke', 'allowed', ['end the session 7 of the user "ada"'], undefined],
    ]);
  });

  test('has a change of a session of another user, which only root makes (AC1, AC4)', async () => {
    const { send, ranges, recorded } = bed();
    Object.assign(ranges, { owner: 'ada', outcome: 'done' });
    send(change, { principal: { ...ROOT, ...FROM } });
    await turns();
    const changes = ['change the session 7 of the user "ada"'];
    expect(recorded.map(shown)).toEqual([['leaseChange', 'allowed', changes, undefined]]);
  });

  test("has neither the end of one's own session nor of a lease of plain keys, which are writes (AC2, AC4)", async () => {
    for (const [owner, principal] of [
      ['ada', ada],
      ['root', { ...ROOT, ...FROM }],
      [undefined, { ...ROOT, ...FROM }],
      [undefined, ada],
    ] as const) {
      const { send, ranges, recorded } = bed();
      Object.assign(ranges, { owner, outcome: 'done' });
      for (const command of [close, { ...close, incarnation: 0 }, change]) {
        if (owner !== undefined || command.type === 'leaseRevoke') send(command, { principal });
        await turns();
      }
      expect([owner, principal.name, recorded]).toEqual([owner, principal.name, []]);
    }
  });

  test('costs no question about a lease without an audit log (AC3)', async () => {
    const { send, ranges } = bed(image(5), false, false);
    Object.assign(ranges, { owner: 'ada', outcome: 'done' });
    send(close, { principal: ROOT });
    await turns();
    expect([ranges.commands.length, ranges.leaseQuestions]).toEqual([1, 0]);
  });

  test('has writes that succeed only if they are asked for, and never reads that are allowed (AC2)', () => {
    for (const writes of [false, true]) {
      const { send, ask, ranges, recorded } = bed(image(5), writes);
      ranges.outcome = 'done';
      send(put('a1'), { principal: ada });
      ask({ type: 'scan', key: b('a'), end: b('b'), revision: 0, bytes: 1 }, { principal: ada });
      ranges.outcome = new ServiceError('UNAVAILABLE', 'later');
      send(put('a1'), { principal: ada });
      expect(recorded.map(({ action, decision }) => `${action} ${decision}`)).toEqual(writes ? ['put allowed'] : []);
    }
  });
});
