import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Barrier,
  BarrierStay,
  ClientSession,
  connect,
  DoubleBarrier,
  Election,
  Fence,
  FenceGuard,
  HeldLock,
  HeldLocks,
  Kv,
  Leadership,
  Leases,
  Lock,
  LockSet,
  LockStates,
  Locks,
  RemoraClient,
  RwLock,
  Semaphore,
  ServiceError,
  Sessions,
} from 'remora';
import { AdminClient } from 'remora/admin';
import {
  BothLocks,
  etcdLocks,
  HeldBoth,
  type OtherLocks,
  recipeLocks,
  redisLocks,
  zooKeeperLocks,
} from 'remora/migrate';
import { Redlock, Lock as RedlockLock } from 'remora/redlock';
import { beforeAll, describe, expect, test } from 'vitest';
import type { OptionSet } from '../../packages/client/src/options/options.ts';
import { MemoryEtcd } from '../support/memory-etcd.ts';
import { World } from '../support/sdk-world.ts';

/** What programs without types hand in. */
const ANYTHING: readonly unknown[] = [
  ...[null, {}, [], '', 'x', Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, 2 ** 53, 5, -5n, 2n ** 63n, 2n ** 64n],
  ...[true, () => {}, Symbol('s'), Object.create(null)],
];

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isDuration = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value < 2 ** 53;
/** Of 64 bits, with a sign. */
const isLease = (value: unknown): boolean => typeof value === 'bigint' && BigInt.asIntN(64, value) === value;
const isSession = (value: unknown): boolean =>
  isLease(value) || (typeof value === 'string' && /^[0-9a-f]+$/.test(value));
const isList = (value: unknown): boolean => Array.isArray(value);
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !isList(value);
const isNothingIn = (value: unknown): boolean => isObject(value) && Object.keys(value as object).length === 0;
const never = (): boolean => false;

/** Which of all that may be right, by the kind of an argument: all else is refused. */
const RIGHT = {
  text: isText,
  name: isText,
  data: isText,
  selector: isText,
  expected: isText,
  count: isCount,
  retries: (value) => isCount(value) || value === -1,
  wholeNumber: Number.isSafeInteger,
  lease: isLease,
  session: isSession,
  duration: isDuration,
  ttl: never,
  ttlOrNever: never,
  flag: (value) => value === true,
  signal: never,
  function: (value) => typeof value === 'function',
  secret: (value) => isText(value) || typeof value === 'function',
  attributes: isNothingIn,
  options: isNothingIn,
  list: isList,
  choice: never,
  fence: never,
  handle: never,
  state: never,
  one: never,
} as const satisfies Record<string, (value: unknown) => boolean>;
type Kind = keyof typeof RIGHT;

function wrongOf(kind: Kind): readonly unknown[] {
  return ANYTHING.filter((value) => !RIGHT[kind](value));
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

// biome-ignore lint/suspicious/noExplicitAny: what is handed in has the wrong types on purpose.
type Any = any;

interface Row {
  /** What each argument is. */
  readonly args: readonly Kind[];
  readonly call: (...args: Any[]) => unknown;
  /** It throws, rather than returning a promise that is rejected. */
  readonly throws?: true;
  /** Right arguments, of which one is made wrong. */
  readonly right: readonly unknown[];
}

let world: World;
let client: RemoraClient;
let held: HeldLock;
let leadership: Leadership;
let stay: BarrierStay;
let session: ClientSession;
let redlock: Redlock;
let both: BothLocks;
let redlockLock: RedlockLock;
/** Stands for `redlockLock`, which is not there yet when the table is written. */
const THE_LOCK = {};
const lockOf = (lock: unknown): unknown => (lock === THE_LOCK ? redlockLock : lock);

beforeAll(async () => {
  world = new World();
  client = await world.client();
  held = await world.until(client.lock('held').acquire({ ttl: '1h' }));
  leadership = await world.until(client.election('led').campaign());
  stay = await world.until(client.doubleBarrier('met', { parties: 1 }).enter());
  session = await world.until(client.session({ ttl: '1h' }));
  redlock = new Redlock([client]);
  both = new BothLocks(client, OTHER);
  redlockLock = await world.until(redlock.acquire(['redlock'], 3_600_000));
});

/** Another system whose locks are free. */
const OTHER: OtherLocks = { tryAcquire: async () => ({ renew: async () => true, release: async () => {} }) };

const row = (args: readonly Kind[], right: readonly unknown[], call: Row['call']): Row => ({ args, right, call });
const sync = (args: readonly Kind[], right: readonly unknown[], call: Row['call']): Row => ({
  ...row(args, right, call),
  throws: true,
});
/** It takes nothing. */
const NOTHING: Row = row([], [], () => {});
const named = (call: Row['call']): Row => sync(['name', 'options'], ['n', {}], call);
const locks = (of: () => Any): Record<string, Row> => ({
  lock: named((...a) => of().lock(...a)),
  rwLock: named((...a) => of().rwLock(...a)),
  election: named((...a) => of().election(...a)),
  semaphore: sync(['name', 'fence'], ['n', { permits: 1 }], (...a) => of().semaphore(...a)),
  lockAll: sync(['choice'], [['n']], (...a) => of().lockAll(...a)),
});
const acquiring = (of: () => Any, ...methods: readonly string[]): Record<string, Row> =>
  Object.fromEntries(methods.map((method) => [method, row(['options'], [{}], (...a) => of()[method](...a))]));
const running = (of: () => Any, ...methods: readonly string[]): Record<string, Row> =>
  Object.fromEntries(
    methods.map((method) => [method, row(['options', 'function'], [{}, () => {}], (...a) => of()[method](...a))]),
  );
const adminClient = new AdminClient({ endpoints: ['127.0.0.1:1'], timeoutMs: 1_000, connectTimeoutMs: 1 });

/** Each public method of each class: a test fails for one that is missing. */
const METHODS: readonly (readonly [Any, Record<string, Row>])[] = [
  [
    RemoraClient,
    {
      ...locks(() => client),
      barrier: named((...a) => (client as Any).barrier(...a)),
      doubleBarrier: sync(['name', 'fence'], ['n', { parties: 1 }], (...a) => (client as Any).doubleBarrier(...a)),
      session: row(['options'], [{}], (...a) => (client as Any).session(...a)),
      nameCommand: row(['state'], [{}], (...a) => (client as Any).nameCommand(...a)),
      every: sync(['ttl', 'text', 'function', 'options'], ['1h', 'n', () => {}, {}], (...a) =>
        (client as Any).every(...a),
      ),
      on: sync(['one', 'function'], ['lost', () => {}], (...a) => (client as Any).on(...a)),
      status: NOTHING,
      ready: NOTHING,
      close: NOTHING,
    },
  ],
  [ClientSession, { ...locks(() => session), orphan: NOTHING, close: NOTHING, toJSON: NOTHING }],
  [
    Lock,
    {
      ...acquiring(() => client.lock('l'), 'acquire', 'tryAcquire', 'revoke'),
      ...running(() => client.lock('l'), 'run'),
      events: sync(['options'], [{}], (...a) => (client.lock('l') as Any).events(...a)),
    },
  ],
  [
    RwLock,
    {
      ...acquiring(() => client.rwLock('l'), 'read', 'write', 'tryRead', 'tryWrite'),
      ...running(() => client.rwLock('l'), 'runRead', 'runWrite'),
      events: sync(['options'], [{}], (...a) => (client.rwLock('l') as Any).events(...a)),
    },
  ],
  [
    Semaphore,
    {
      ...acquiring(() => client.semaphore('s', { permits: 2 }), 'acquire', 'tryAcquire'),
      ...running(() => client.semaphore('s', { permits: 2 }), 'run'),
      setPermits: row(['count'], [2], (...a) => (client.semaphore('s', { permits: 2 }) as Any).setPermits(...a)),
      resetPermits: NOTHING,
      events: sync(['options'], [{}], (...a) => (client.semaphore('s', { permits: 2 }) as Any).events(...a)),
    },
  ],
  [
    LockSet,
    {
      ...acquiring(() => client.lockAll(['a', 'b']), 'acquire', 'tryAcquire'),
      ...running(() => client.lockAll(['a', 'b']), 'run'),
    },
  ],
  [
    Barrier,
    {
      ...acquiring(() => client.barrier('b'), 'hold', 'wait', 'lift'),
    },
  ],
  [DoubleBarrier, acquiring(() => client.doubleBarrier('d', { parties: 1 }), 'enter')],
  [BarrierStay, { ...acquiring(() => stay, 'leave'), release: NOTHING, toJSON: NOTHING }],
  [
    Election,
    {
      ...acquiring(() => client.election('e'), 'campaign'),
      resume: row(['handle', 'options'], [{ lease: '5', incarnation: 1, token: 't', attempt: 1 }, {}], (...a) =>
        (client.election('e') as Any).resume(...a),
      ),
      leader: NOTHING,
      observe: sync(['options'], [{}], (...a) => (client.election('e') as Any).observe(...a)),
    },
  ],
  [
    Leadership,
    {
      proclaim: row(['data'], ['v'], (...a) => (leadership as Any).proclaim(...a)),
      ...{ check: NOTHING, release: NOTHING, toJSON: NOTHING },
    },
  ],
  [
    HeldLock,
    {
      ...acquiring(() => held, 'acquire', 'upgrade'),
      onRevoke: sync(['function'], [() => {}], (...a) => (held as Any).onRevoke(...a)),
      extend: row(['ttl'], ['1h'], (...a) => (held as Any).extend(...a)),
      setCondition: row(['fence'], [{ heartbeat: '1s', serverMisses: 9 }], (...a) => (held as Any).setCondition(...a)),
      setData: row(['data'], ['v'], (...a) => (held as Any).setData(...a)),
      ...{
        throwIfLost: NOTHING,
        check: NOTHING,
        orphan: NOTHING,
        downgrade: NOTHING,
        release: NOTHING,
        toJSON: NOTHING,
      },
    },
  ],
  [HeldLocks, { throwIfLost: NOTHING, check: NOTHING, release: NOTHING, toJSON: NOTHING }],
  [
    Kv,
    {
      get: row(['name', 'options'], ['k', {}], (...a) => (client.kv as Any).get(...a)),
      range: row(['selector', 'options'], ['k', {}], (...a) => (client.kv as Any).range(...a)),
      put: row(['name', 'data', 'options'], ['k', 'v', {}], (...a) => (client.kv as Any).put(...a)),
      delete: row(['selector', 'options'], ['k', {}], (...a) => (client.kv as Any).delete(...a)),
      txn: row(['options', 'options'], [{}, {}], (...a) => (client.kv as Any).txn(...a)),
      list: sync(['selector', 'options'], ['k', {}], (...a) => (client.kv as Any).list(...a)),
      transaction: NOTHING,
      increment: row(['name', 'options'], ['n', {}], (...a) => (client.kv as Any).increment(...a)),
      putIfAbsent: row(['name', 'data', 'options'], ['k', 'v', {}], (...a) => (client.kv as Any).putIfAbsent(...a)),
      compareAndSet: row(['name', 'expected', 'data', 'options'], ['k', 'v', 'w', {}], (...a) =>
        (client.kv as Any).compareAndSet(...a),
      ),
      stm: row(['function', 'options'], [() => {}, {}], (...a) => (client.kv as Any).stm(...a)),
      mirror: sync(['selector', 'options'], ['k', {}], (...a) => (client.kv as Any).mirror(...a)),
      watch: sync(['selector', 'options'], ['k', {}], (...a) => (client.kv as Any).watch(...a)),
      compact: row(['count', 'options'], [1, {}], (...a) => (client.kv as Any).compact(...a)),
    },
  ],
  [
    Leases,
    {
      grant: row(['ttl', 'options'], ['1h', {}], (...a) => (client.lease as Any).grant(...a)),
      keepAlive: row(['lease'], [5n], (...a) => (client.lease as Any).keepAlive(...a)),
      revoke: row(['lease'], [5n], (...a) => (client.lease as Any).revoke(...a)),
      timeToLive: row(['lease', 'options'], [5n, {}], (...a) => (client.lease as Any).timeToLive(...a)),
      list: NOTHING,
    },
  ],
  [
    Locks,
    {
      show: row(['name', 'options'], ['n', {}], (...a) => (client.locks as Any).show(...a)),
      details: row(['name', 'options'], ['n', {}], (...a) => (client.locks as Any).details(...a)),
      list: sync(['options'], [{}], (...a) => (client.locks as Any).list(...a)),
      check: row(['list'], [[]], (...a) => (client.locks as Any).check(...a)),
      events: sync(['options'], [{}], (...a) => (client.locks as Any).events(...a)),
      revoke: row(['name', 'options'], ['n', {}], (...a) => (client.locks as Any).revoke(...a)),
      forceRelease: row(['name', 'options'], ['n', {}], (...a) => (client.locks as Any).forceRelease(...a)),
      forget: row(['name', 'options'], ['n', {}], (...a) => (client.locks as Any).forget(...a)),
    },
  ],
  [
    Sessions,
    {
      list: sync(['options'], [{}], (...a) => (client.sessions as Any).list(...a)),
      show: row(['session'], [5n], (...a) => (client.sessions as Any).show(...a)),
      close: row(['session', 'options'], [5n, {}], (...a) => (client.sessions as Any).close(...a)),
    },
  ],
  [
    Fence,
    {
      check: row(['name', 'count', 'options'], ['n', 1, {}], (...a) => (client.fence as Any).check(...a)),
      guard: sync(['options'], [{}], (...a) => (client.fence as Any).guard(...a)),
    },
  ],
  [
    FenceGuard,
    {
      run: row(['name', 'count', 'function'], ['n', 1, () => {}], (...a) => (client.fence.guard() as Any).run(...a)),
      highest: sync(['name'], ['n'], (...a) => (client.fence.guard() as Any).highest(...a)),
    },
  ],
  [
    LockStates,
    {
      get: sync(['state'], [{ namespace: 'n', name: Buffer.of(1) }], (...a) => (new LockStates() as Any).get(...a)),
      apply: sync(['state'], [{ type: 'live' }], (...a) => (new LockStates() as Any).apply(...a)),
      values: NOTHING,
    },
  ],
  [
    Redlock,
    {
      ...{ quit: NOTHING },
      acquire: row(['list', 'count', 'options'], [['r'], 1_000, {}], (...a) => (redlock as Any).acquire(...a)),
      extend: row(['state', 'count', 'options'], [THE_LOCK, 1_000, {}], (lock, ...a) =>
        (redlock as Any).extend(lockOf(lock), ...a),
      ),
      release: row(['state', 'options'], [THE_LOCK, {}], (lock, ...a) => (redlock as Any).release(lockOf(lock), ...a)),
      using: row(['list', 'count', 'function'], [['r'], 1_000, () => {}], (resources, duration, work) =>
        (redlock as Any).using(resources, duration, {}, work),
      ),
    },
  ],
  [
    BothLocks,
    {
      acquire: row(['name', 'options'], ['n', {}], (...a) => (both as Any).acquire(...a)),
      run: row(['name', 'options', 'function'], ['n', {}, () => {}], (...a) => (both as Any).run(...a)),
    },
  ],
  [HeldBoth, { throwIfLost: NOTHING, release: NOTHING }],
  [
    RedlockLock,
    {
      ...{ release: NOTHING },
      extend: row(['count'], [1_000], (...a) => (redlockLock as Any).extend(...a)),
    },
  ],
  [
    AdminClient,
    {
      ...{
        nodes: NOTHING,
        check: NOTHING,
        settings: NOTHING,
        upgradeStatus: NOTHING,
        schedulers: NOTHING,
        exportUsers: NOTHING,
        endRestore: NOTHING,
        close: NOTHING,
      },
      ranges: sync(['options'], [{}], (...a) => (adminClient as Any).ranges(...a)),
      range: row(['count'], [1], (...a) => (adminClient as Any).range(...a)),
      hotRanges: row(['text', 'count'], ['reads', 1], (...a) => (adminClient as Any).hotRanges(...a)),
      setSetting: row(['text', 'text'], ['n', 'v'], (...a) => (adminClient as Any).setSetting(...a)),
      setLogLevel: row(['count', 'text'], [1, 'info'], (...a) => (adminClient as Any).setLogLevel(...a)),
      finalizeUpgrade: row(['text'], ['0.2'], (...a) => (adminClient as Any).finalizeUpgrade(...a)),
      transferLeader: row(['count', 'count'], [1, 1], (...a) => (adminClient as Any).transferLeader(...a)),
      compact: row(['count'], [1], (...a) => (adminClient as Any).compact(...a)),
      beginRestore: row(['count'], [1], (...a) => (adminClient as Any).beginRestore(...a)),
      importUsers: row(['state'], [{ enabled: false, users: [], roles: [] }], (...a) =>
        (adminClient as Any).importUsers(...a),
      ),
      changeRange: row(['state'], [{ id: 1, confVersion: 1, version: 1 }], (...a) =>
        (adminClient as Any).changeRange(...a),
      ),
      scatter: row(['state'], [{ start: Buffer.of(1), end: Buffer.of(2) }], (...a) =>
        (adminClient as Any).scatter(...a),
      ),
      rebalance: row(['state'], [{ dryRun: true }], (...a) => (adminClient as Any).rebalance(...a)),
      operators: row(['state'], [{ ended: true, limit: 1 }], (...a) => (adminClient as Any).operators(...a)),
      cancelOperator: row(['count'], [1], (...a) => (adminClient as Any).cancelOperator(...a)),
      pauseScheduler: row(['text', 'count'], ['n', 1], (...a) => (adminClient as Any).pauseScheduler(...a)),
      setNodeDuty: row(['count', 'text', 'count'], [1, 'up', 1], (...a) => (adminClient as Any).setNodeDuty(...a)),
      why: row(['state'], [{ rangeId: 1 }], (...a) => (adminClient as Any).why(...a)),
      recoverMajority: row(['state'], [{}], (...a) => (adminClient as Any).recoverMajority(...a)),
    },
  ],
];

/** How a call ended, and whether it did so by throwing. */
async function outcome(call: () => unknown): Promise<{ readonly said: string; readonly threw: boolean }> {
  let answer: unknown;
  try {
    answer = call();
  } catch (error) {
    return { said: codeOf(error), threw: true };
  }
  const isPromise = typeof (answer as Any)?.then === 'function';
  if (!isPromise) {
    (answer as Any)?.close?.();
    return { said: 'accepted', threw: false };
  }
  try {
    await world.until(answer as Promise<unknown>, 30_000);
    return { said: 'accepted', threw: false };
  } catch (error) {
    return { said: codeOf(error), threw: false };
  }
}

function codeOf(error: unknown): string {
  return error instanceof ServiceError ? error.code : `a raw ${String(error)}`;
}

const REFUSED = /^(INVALID_ARGUMENT|EMPTY_KEY)$/;

describe.each(METHODS.map(([type, methods]) => ({ name: type.name as string, type, methods })))(
  '$name refuses wrong arguments by INVALID_ARGUMENT, and never throws anything else',
  ({ type, methods }) => {
    test('each of its methods is looked at', () => {
      const all = Object.getOwnPropertyNames(type.prototype).filter((name) => {
        const { value } = Object.getOwnPropertyDescriptor(type.prototype, name) ?? {};
        return typeof value === 'function' && name !== 'constructor';
      });
      expect(all.filter((name) => !(name in methods))).toEqual([]);
    });

    const cases = Object.entries<Row>(methods).flatMap(([method, { args }]) =>
      args.map((kind, at) => ({ method, kind, at, place: at + 1 })),
    );
    test.each(cases)('$method: argument $place, $kind', async ({ method, kind, at }) => {
      const { call, right, throws } = methods[method] as Row;
      const found: string[] = [];
      for (const value of wrongOf(kind)) {
        const args = right.map((one, i) => (i === at ? value : one));
        const { said, threw } = await outcome(() => call(...args));
        if (!REFUSED.test(said) || threw !== (throws === true)) {
          found.push(`${shown(value)}: ${said}${threw ? ', thrown' : ''}`);
        }
      }
      expect(found).toEqual([]);
    });
  },
);

test.each([
  { name: 'BothLocks, of its client', call: (value: Any) => new BothLocks(value, OTHER) },
  { name: 'BothLocks, of its other system', call: (value: Any) => new BothLocks(client, value) },
  { name: 'etcdLocks', call: (value: Any) => etcdLocks(value) },
  { name: 'recipeLocks', call: (value: Any) => recipeLocks(value) },
  { name: 'redisLocks', call: (value: Any) => redisLocks(value) },
  { name: 'zooKeeperLocks', call: (value: Any) => zooKeeperLocks(value) },
  { name: 'what a function returns to zooKeeperLocks', call: (value: Any) => firstOf(zooKeeperLocks(() => value)) },
])('anything but a client is refused by INVALID_ARGUMENT: $name', async ({ name, call }) => {
  const wrong = ANYTHING.filter((value) => name !== 'zooKeeperLocks' || typeof value !== 'function');
  const found = await Promise.all(wrong.map(async (value) => (await outcome(() => call(value))).said));
  expect(new Set(found)).toEqual(new Set(['INVALID_ARGUMENT']));
});

const firstOf = (locks: OtherLocks) => locks.tryAcquire('/l', { ttlMs: 1_000, owner: 'o' });

/** What options are, by their names. */
const KIND_OF_OPTION: Record<string, Kind> = {
  ...{ wait: 'duration', signal: 'signal', ttl: 'ttlOrNever', renew: 'flag', maxHold: 'duration', condition: 'fence' },
  ...{ data: 'data', keepData: 'flag', lockDelay: 'duration', token: 'text', depthMax: 'count', onRevoke: 'function' },
  ...{ permits: 'count', heartbeat: 'duration', serverMisses: 'count', holderMisses: 'count', by: 'text' },
  ...{ reason: 'text', value: 'data', namespace: 'text', parties: 'count', lock: 'name', shared: 'flag' },
  ...{ semaphore: 'name', capacity: 'count', attributes: 'attributes', health: 'fence', check: 'function' },
  ...{ interval: 'duration', timeout: 'duration', failures: 'count', initial: 'duration', max: 'duration' },
  ...{ attempts: 'count', prefix: 'name', pageSize: 'count', limit: 'count', incarnation: 'count', id: 'lease' },
  ...{ keys: 'flag', namesMax: 'count', name: 'name', version: 'count', revision: 'count', serializable: 'flag' },
  upToVersion: 'count',
  ...{ keysOnly: 'flag', countOnly: 'flag', sort: 'fence', order: 'one', fence: 'fence', lease: 'lease' },
  ...{ prevKv: 'flag', compare: 'list', success: 'list', failure: 'list', key: 'selector', target: 'one', is: 'one' },
  ...{
    keysMax: 'count',
    onError: 'function',
    once: 'name',
    onceLease: 'lease',
    than: 'count',
    held: 'fence',
    put: 'name',
    delete: 'selector',
    get: 'selector',
    pageBytes: 'count',
  },
  ...{ startRevision: 'count', noPut: 'flag', noDelete: 'flag', start: 'name', end: 'name' },
  ...{
    endpoints: 'text',
    discover: 'flag',
    lazy: 'flag',
    reentrant: 'flag',
    trackTasks: 'flag',
    releaseOnCrash: 'flag',
    requestTimeout: 'duration',
    retry: 'options',
    connectTimeout: 'duration',
  },
  ...{ sessionTtl: 'ttl', requestBytesMax: 'count', releaseOnExit: 'flag', tracer: 'options', tls: 'options' },
  ...{
    traceContext: 'function',
    metrics: 'options',
    logger: 'options',
    journal: 'text',
    renewInWorker: 'flag',
    maxMainThreadBlock: 'duration',
  },
  ...{ driftFactor: 'duration', retryCount: 'retries', retryDelay: 'duration', retryJitter: 'duration' },
  ...{ automaticExtensionThreshold: 'duration', poll: 'duration', otherName: 'function' },
  as: 'one',
  ...{ user: 'text', password: 'text', allowPlainText: 'flag', owner: 'text' },
};
/** Where a name means something else. */
const KIND_OF: Record<string, Kind> = {
  'a put of a transaction.value': 'data',
  'forceRelease.reason': 'text',
  'forceRelease.upToVersion': 'count',
  'sort.by': 'one',
  'connect.token': 'secret',
  'locks in both systems.ttl': 'ttl',
  'increment.by': 'wholeNumber',
  'every.key': 'name',
  'list of ranges.from': 'name',
};

type Options = Record<string, unknown>;
/** A call that takes the options of that name: a test fails for a set that is missing. */
const CALLS: Record<string, (options: Options) => unknown> = {
  connect: (o) => connect({ endpoints: '127.0.0.1:1', ...o }),
  'keys with a prefix': (o) => client.kv.range({ prefix: 'o', ...o }),
  'a range of keys': (o) => client.kv.range({ start: 'o', ...o }),
  acquire: (o) => client.lock('o').acquire(o),
  'acquire of a set': (o) => client.lockAll(['o']).acquire(o),
  'acquire of permits': (o) => client.semaphore('o', { permits: 2 }).acquire(o),
  're-entry': (o) => held.acquire(o),
  upgrade: (o) => held.upgrade(o),
  condition: (o) => client.lock('o').acquire({ condition: { heartbeat: '1s', serverMisses: 9, ...o } as Any }),
  'waiting at a barrier': (o) => client.barrier('o').wait(o),
  'entering a double barrier': (o) => client.doubleBarrier('o', { parties: 1 }).enter(o),
  'lifting a barrier': (o) => client.barrier('o').lift(o),
  campaign: (o) => client.election('o').campaign(o),
  resume: (o) => client.election('o').resume({ lease: '5', incarnation: 1, token: 't', attempt: 1 }, o),
  lock: (o) => client.lock('o', o),
  namespace: (o) => client.locks.show('o', o),
  semaphore: (o) => client.semaphore('o', { permits: 1, ...o }),
  doubleBarrier: (o) => client.doubleBarrier('o', { parties: 1, ...o }),
  'a lock of a set': (o) => client.lockAll([{ lock: 'o', ...o }]),
  'a semaphore of a set': (o) => client.lockAll([{ semaphore: 'o', capacity: 2, ...o }]).acquire(),
  session: (o) => client.session(o),
  health: (o) => client.session({ health: { check: () => true, ...o } }),
  retry: (o) => connect({ endpoints: '127.0.0.1:1', retry: o }),
  revoke: (o) => client.locks.revoke('o', o),
  forceRelease: (o) => client.locks.forceRelease('o', o),
  'list of locks': (o) => client.locks.list(o).page(),
  'events of a lock': (o) => client.lock('o').events(o),
  'events of locks': (o) => client.locks.events(o),
  'list of sessions': (o) => client.sessions.list(o).page(),
  'close of a session': (o) => client.sessions.close(5n, o),
  'grant of a lease': (o) => client.lease.grant('1h', o),
  timeToLive: (o) => client.lease.timeToLive(5n, o),
  guard: (o) => client.fence.guard(o),
  'a check of a lock': (o) => client.locks.check([{ name: 'o', version: 1, ...o }]),
  fence: (o) => client.kv.put('o', 'v', { fence: { name: 'o', version: 1, ...o } }),
  get: (o) => client.kv.get('o', o),
  range: (o) => client.kv.range('o', o),
  sort: (o) => client.kv.range('o', { sort: { by: 'key', order: 'ascend', ...o } }),
  put: (o) => client.kv.put('o', 'v', o),
  putIfAbsent: (o) => client.kv.putIfAbsent('o', 'v', o),
  compareAndSet: (o) => client.kv.compareAndSet('o', 'v', 'w', o),
  increment: (o) => client.kv.increment('count', o),
  stm: (o) => client.kv.stm(() => {}, o),
  'a put of an stm': (o) => client.kv.stm((t) => t.put('o', 'v', o)),
  delete: (o) => client.kv.delete('o', o),
  'a transaction': (o) => client.kv.txn(o),
  txn: (o) => client.kv.txn({}, o),
  'a comparison': (o) => client.kv.txn({ compare: [{ key: 'o', target: 'modRevision', is: '=', than: 1, ...o }] }),
  'a comparison of a grant': (o) => client.kv.txn({ compare: [o as Any] }),
  'a put of a transaction': (o) => client.kv.txn({ success: [{ put: 'o', value: 'v', ...o }] }),
  'a delete of a transaction': (o) => client.kv.txn({ success: [{ delete: 'o', ...o }] }),
  'a read of a transaction': (o) => client.kv.txn({ success: [{ get: 'o', ...o }] }),
  'list of keys': (o) => client.kv.list('o', o).page(),
  watch: (o) => client.kv.watch('o', o),
  compact: (o) => client.kv.compact(1, o),
  redlock: (o) => redlock.acquire(['o'], 1_000, o),
  'locks in both systems': (o) => new BothLocks(client, OTHER, o),
  'locks of etcd': (o) => etcdLocks(new MemoryEtcd(), o),
  'acquire in both systems': (o) => both.acquire('o', o),
  mirror: (o) => client.kv.mirror('o', o),
  every: (o) => client.every('1h', 'o', () => {}, o),
  'list of ranges': (o) => adminClient.ranges(o).page(),
};

const SOURCES = join(import.meta.dirname, '../../packages/client/src');

/** Every set of options that a module of the SDK exports. */
async function optionSets(): Promise<readonly OptionSet[]> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /(?<!\.test)\.ts$/.test(file) && readFileSync(join(SOURCES, file), 'utf8').includes('= optionSet<'),
  );
  const modules = await Promise.all(files.map((file) => import(join(SOURCES, file)) as Promise<object>));
  return modules.flatMap(Object.values).filter((value) => value?.checks instanceof Map);
}

/** What each set is called where it is made, exported or not. */
function optionSetNames(): readonly string[] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...readFileSync(join(SOURCES, file), 'utf8').matchAll(/= optionSet<.*>\(\s*'([^']+)'/g)])
    .map(([, call]) => call ?? '');
}

const SETS = await optionSets();

test('each set of options is exported, and there is a call that takes it', () => {
  expect(SETS.map(({ call }) => call).sort()).toEqual(Object.keys(CALLS).sort());
  expect([...optionSetNames()].sort()).toEqual(Object.keys(CALLS).sort());
});

describe.each(SETS.map(({ call, checks }) => ({ call, names: [...checks.keys()] })))(
  'the options of $call',
  ({ call, names }) => {
    test.each(names)('%s of another kind is refused by INVALID_ARGUMENT', async (option) => {
      const kind = KIND_OF[`${call}.${option}`] ?? KIND_OF_OPTION[option];
      if (kind === undefined) throw new Error(`say what kind of argument ${option} is`);
      const found: string[] = [];
      for (const value of wrongOf(kind)) {
        const { said } = await outcome(() => CALLS[call]?.({ [option]: value }));
        if (!REFUSED.test(said)) found.push(`${shown(value)}: ${said}`);
      }
      expect(found).toEqual([]);
    });
  },
);
