import { errorsOf, LONG_MS, type Row, SHORT_MS } from './row.ts';
import type { LockLike } from './side.ts';

const MULTI = 'all resources of a call are acquired, or none';

export const ACQUIRE_ROWS: readonly Row[] = [
  {
    name: 'a lock has the fields that the types declare',
    run: async (on) => {
      const redlock = on.redlock();
      const [a, b] = [on.resource('a'), on.resource('b')];
      const lock = await redlock.acquire([a, b], LONG_MS);
      const stats = await lock.attempts[0];
      const members = on.side.clients.length;
      return {
        isLock: lock instanceof on.library.Lock,
        ofRedlock: lock.redlock === redlock,
        resources: lock.resources.map((name) => name === a || name === b),
        order: lock.resources[0] === a,
        valueIsText: typeof lock.value === 'string' && lock.value.length > 0,
        expiration: typeof lock.expiration,
        attempts: lock.attempts.length,
        membership: stats?.membershipSize === members,
        quorum: stats?.quorumSize === Math.floor(members / 2) + 1,
        votesFor: stats?.votesFor.size === members,
        votesOfClients: [...(stats?.votesFor ?? [])].every((client) => on.side.clients.includes(client)),
        votesAgainst: stats?.votesAgainst.size,
      };
    },
    outcome: {
      ...{ isLock: true, ofRedlock: true, resources: [true, true], order: true, valueIsText: true },
      ...{ expiration: 'number', attempts: 1, membership: true, quorum: true, votesFor: true, votesOfClients: true },
      votesAgainst: 0,
    },
  },
  {
    name: 'each lock has a value of its own',
    run: async (on) => {
      const redlock = on.redlock();
      const locks = await Promise.all(['a', 'b', 'c'].map((name) => redlock.acquire([on.resource(name)], LONG_MS)));
      return new Set(locks.map(({ value }) => value)).size;
    },
    outcome: 3,
  },
  {
    name: 'the expiration is the moment of the call, and the duration, less the drift',
    run: async (on) => {
      const shares: boolean[] = [];
      for (const driftFactor of [undefined, 0, 0.1]) {
        const settings = driftFactor === undefined ? {} : { driftFactor };
        const before = Date.now();
        const lock = await on.redlock(settings).acquire([on.resource(String(driftFactor))], LONG_MS);
        const start = lock.expiration - LONG_MS + Math.round((driftFactor ?? 0.01) * LONG_MS) + 2;
        shares.push(before <= start && start <= Date.now());
      }
      return shares;
    },
    outcome: [true, true, true],
  },
  {
    name: 'a call may have a drift factor of its own',
    run: async (on) => {
      const before = Date.now();
      const lock = await on.redlock({ driftFactor: 0.5 }).acquire([on.resource()], LONG_MS, { driftFactor: 0 });
      const start = lock.expiration - LONG_MS + 2;
      return before <= start && start <= Date.now();
    },
    outcome: true,
  },
  {
    name: 'a resource that is locked is refused',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      return on.outcomeOf(() => on.once().acquire([on.resource()], LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked'] },
  },
  {
    name: 'the call makes retryCount further attempts',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: 3, retryDelay: 10, retryJitter: 5 });
      return on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked', 'locked', 'locked'] },
  },
  {
    name: 'the call makes retryCount further attempts for several resources',
    run: async (on) => {
      await on.redlock().acquire([on.resource('b')], LONG_MS);
      const redlock = on.redlock({ retryCount: 2, retryDelay: 10, retryJitter: 5 });
      return on.outcomeOf(() => redlock.acquire([on.resource('a'), on.resource('b')], LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked', 'locked'] },
  },
  {
    name: 'settings of a call replace those of the instance, each by itself',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: 3, retryDelay: 5, retryJitter: 0 });
      return on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS, { retryCount: 1 }));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked'] },
  },
  {
    name: 'a retryDelay and a retryJitter of 0 are allowed',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: 2, retryDelay: 0, retryJitter: 0 });
      return on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked', 'locked'] },
  },
  {
    name: 'an attempt succeeds once the resource was released',
    run: async (on) => {
      const first = await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: 5_000, retryDelay: 20, retryJitter: 5 });
      const failed = errorsOf(redlock, 2);
      const waiting = redlock.acquire([on.resource()], LONG_MS);
      await failed;
      await first.release();
      const votes = await on.attemptsOf(await waiting);
      return [votes.at(-1), votes.length > 2, votes.slice(0, -1).every((vote) => vote === 'locked')];
    },
    outcome: ['for', true, true],
  },
  {
    name: 'an attempt for several resources succeeds once they were released',
    run: async (on) => {
      const names = [on.resource('a'), on.resource('b')];
      const first = await on.redlock().acquire(names, LONG_MS);
      const redlock = on.redlock({ retryCount: 5_000, retryDelay: 20, retryJitter: 5 });
      const failed = errorsOf(redlock, 2);
      const waiting = redlock.acquire(names, LONG_MS);
      await failed;
      await first.release();
      return (await on.attemptsOf(await waiting)).at(-1);
    },
    outcome: 'for',
  },
  {
    name: 'an attempt succeeds once the lock has expired',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], SHORT_MS);
      const lock = await on
        .redlock({ retryCount: 5_000, retryDelay: 10, retryJitter: 5 })
        .acquire([on.resource()], LONG_MS);
      return (await on.attemptsOf(lock)).at(-1);
    },
    outcome: 'for',
  },
  {
    name: 'with a retryCount of -1 the attempts have no limit',
    run: async (on) => {
      const first = await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: -1, retryDelay: 10, retryJitter: 0 });
      const failed = errorsOf(redlock, 12);
      const waiting = redlock.acquire([on.resource()], LONG_MS);
      await failed;
      await first.release();
      return (await on.attemptsOf(await waiting)).at(-1);
    },
    outcome: 'for',
  },
  {
    name: 'a lock that was not released expires',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], SHORT_MS);
      return on.untilFree();
    },
    outcome: true,
  },
  {
    name: 'an instance does not get a resource that it holds itself',
    run: async (on) => {
      const redlock = on.once();
      await redlock.acquire([on.resource()], LONG_MS);
      return on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked'] },
  },
  {
    name: `${MULTI}: each is locked`,
    run: async (on) => {
      await on.redlock().acquire([on.resource('a'), on.resource('b')], LONG_MS);
      return Promise.all(['a', 'b'].map((name) => on.isLocked(name)));
    },
    outcome: [true, true],
  },
  {
    name: `${MULTI}: one that is taken leaves the others free`,
    run: async (on) => {
      await on.redlock().acquire([on.resource('b')], LONG_MS);
      const names = ['a', 'b', 'c'].map((name) => on.resource(name));
      const ended = await on.outcomeOf(() => on.once().acquire(names, LONG_MS));
      return [ended, await on.untilFree('a'), await on.isLocked('b'), await on.untilFree('c')];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['locked'] }, true, true, true],
  },
  {
    name: 'calls that name the same resources in different orders all succeed in the end',
    run: async (on) => {
      const settings = { retryCount: -1, retryDelay: 20, retryJitter: 20 };
      const orders = [
        ['a', 'b', 'c'],
        ['c', 'b', 'a'],
        ['b', 'c', 'a'],
      ];
      let inside = 0;
      const most = await Promise.all(
        orders.map(async (names) => {
          const lock = await on.redlock(settings).acquire(
            names.map((name) => on.resource(name)),
            LONG_MS,
          );
          const seen = ++inside;
          await on.isLocked();
          inside--;
          await lock.release();
          return seen;
        }),
      );
      return most;
    },
    outcome: [1, 1, 1],
  },
  {
    name: 'a resource that is named twice',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource(), on.resource()], LONG_MS);
      const released = await on.outcomeOf(() => lock.release());
      return [released, await on.untilFree()];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['locked'] }, true],
    differs: {
      outcome: ['fulfilled', true],
      redlock: 'A resource that is named twice is locked; its release then rejects with `ExecutionError`.',
      remora: 'The second name counts as the first one.',
    },
  },
  {
    name: 'an empty list of resources holds nothing',
    run: async (on) => {
      const lock = await on.once().acquire([], LONG_MS);
      const extended = await lock.extend(LONG_MS);
      return [lock.resources, extended.resources, await on.attemptsOf(await extended.release())];
    },
    outcome: [[], [], ['for']],
  },
  {
    name: 'a duration with a fraction is refused',
    run: async (on) => {
      const redlock = on.once();
      const half = await on.outcomeOf(() => redlock.acquire([on.resource()], 1000.5));
      const none = await on.outcomeOf(() => redlock.acquire([on.resource()], Number.NaN));
      return [half, none, await on.isLocked()];
    },
    outcome: ['an Error', 'an Error', false],
  },
  {
    name: 'a duration of 0, or below',
    run: async (on) => {
      const redlock = on.once();
      const none = await on.outcomeOf(() => redlock.acquire([on.resource()], 0));
      const less = await on.outcomeOf(() => redlock.acquire([on.resource()], -1));
      return [none, less, await on.isLocked()];
    },
    outcome: [
      { name: 'ExecutionError', attempts: ['failed'] },
      { name: 'ExecutionError', attempts: ['failed'] },
      false,
    ],
    differs: {
      outcome: ['an Error', 'an Error', false],
      redlock: 'A duration of 0 or below rejects with `ExecutionError`, after all attempts.',
      remora: 'It rejects at once with a `RemoraError`, `INVALID_ARGUMENT`.',
    },
  },
  {
    name: 'the locks of a call are those of any other instance',
    run: async (on) => {
      const lock: LockLike = await on.redlock({ driftFactor: 0.1 }).acquire([on.resource()], LONG_MS);
      const other = on.redlock({ retryCount: 0, driftFactor: 0 });
      const refused = await on.outcomeOf(() => other.acquire([on.resource()], LONG_MS));
      return [refused, await on.outcomeOf(() => other.release(lock)), await on.untilFree()];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['locked'] }, 'fulfilled', true],
  },
];
