/** Rows of `extend` and `release`. */
import { LONG_MS, type Row, SHORT_MS, untilPast } from './row.ts';

const LOST = { name: 'ExecutionError', attempts: ['locked'] };

export const HOLD_ROWS: readonly Row[] = [
  {
    name: 'extend returns another lock with the same value and resources',
    run: async (on) => {
      const lock = await on.redlock().acquire([on.resource('a'), on.resource('b')], LONG_MS);
      const before = Date.now();
      const longer = await lock.extend(2 * LONG_MS);
      const start = longer.expiration - 2 * LONG_MS + 0.02 * LONG_MS + 2;
      return {
        isLock: longer instanceof on.library.Lock,
        same: [longer.value === lock.value, longer.resources.join() === lock.resources.join()],
        another: longer !== lock,
        old: lock.expiration,
        expiration: before <= start && start <= Date.now(),
        attempts: await on.attemptsOf(longer),
      };
    },
    outcome: { isLock: true, same: [true, true], another: true, old: 0, expiration: true, attempts: ['for'] },
  },
  {
    name: 'extend of the instance does the same',
    run: async (on) => {
      const redlock = on.redlock();
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      const longer = await redlock.extend(lock, LONG_MS);
      return [longer.value === lock.value, lock.expiration, await on.attemptsOf(longer)];
    },
    outcome: [true, 0, ['for']],
  },
  {
    name: 'a lock that was extended is held beyond its first expiration',
    run: async (on) => {
      const lock = await on.redlock().acquire([on.resource()], SHORT_MS);
      const { expiration } = lock;
      const longer = await lock.extend(LONG_MS);
      await untilPast(expiration + 500);
      return [await on.isLocked(), await on.attemptsOf(await longer.release())];
    },
    outcome: [true, ['for']],
  },
  {
    name: 'a lock may be extended several times, and for less time than before',
    run: async (on) => {
      let lock = await on.redlock().acquire([on.resource()], LONG_MS);
      lock = await lock.extend(LONG_MS);
      lock = await lock.extend(SHORT_MS);
      return on.untilFree();
    },
    outcome: true,
  },
  {
    name: 'a lock that has expired cannot be extended',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], SHORT_MS);
      await untilPast(lock.expiration);
      return on.outcomeOf(() => lock.extend(LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: [] },
  },
  {
    name: 'a lock that was released cannot be extended',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await lock.release();
      return on.outcomeOf(() => lock.extend(LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: [] },
  },
  {
    name: 'a lock that was extended cannot be extended again, only its successor',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      const longer = await lock.extend(LONG_MS);
      const again = await on.outcomeOf(() => lock.extend(LONG_MS));
      return [again, await on.outcomeOf(() => longer.extend(LONG_MS))];
    },
    outcome: [{ name: 'ExecutionError', attempts: [] }, 'fulfilled'],
  },
  {
    name: 'a lock that was taken away cannot be extended',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await on.takeAway();
      return on.outcomeOf(() => lock.extend(LONG_MS));
    },
    outcome: LOST,
  },
  {
    name: 'a lock that somebody else has by now cannot be extended',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await on.takeAway();
      const other = await on.once().acquire([on.resource()], LONG_MS);
      const ended = await on.outcomeOf(() => lock.extend(LONG_MS));
      return [ended, await on.outcomeOf(() => other.release())];
    },
    outcome: [LOST, 'fulfilled'],
  },
  {
    name: 'a lock of which one resource was taken away cannot be extended',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource('a'), on.resource('b')], LONG_MS);
      await on.takeAway('b');
      return on.outcomeOf(() => lock.extend(LONG_MS));
    },
    outcome: LOST,
  },
  {
    name: 'an extension that is refused is repeated retryCount times',
    run: async (on) => {
      const lock = await on.redlock({ retryCount: 2, retryDelay: 5, retryJitter: 0 }).acquire([on.resource()], LONG_MS);
      await on.takeAway();
      return on.outcomeOf(() => lock.extend(LONG_MS));
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked', 'locked'] },
    differs: {
      outcome: LOST,
      redlock: 'An extension of a lock that is lost is repeated `retryCount` times.',
      remora: 'It is not repeated: a lock that is lost stays lost. Only a cluster that does not answer is asked again.',
    },
  },
  {
    name: 'an extension by a duration with a fraction is refused',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      const ended = await on.outcomeOf(() => lock.extend(0.5));
      return [ended, await on.outcomeOf(() => lock.release())];
    },
    outcome: ['an Error', 'fulfilled'],
  },
  {
    name: 'an extension has settings of its own',
    run: async (on) => {
      const redlock = on.redlock({ retryCount: 100 });
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      const before = Date.now();
      const longer = await redlock.extend(lock, LONG_MS, { driftFactor: 0.5 });
      const start = longer.expiration - LONG_MS / 2 + 2;
      await on.takeAway();
      const ended = await on.outcomeOf(() => redlock.extend(longer, LONG_MS, { retryCount: 0 }));
      return [before <= start && start <= Date.now(), ended];
    },
    outcome: [true, LOST],
  },
  {
    name: 'a release frees the resources, and says how its attempts went',
    run: async (on) => {
      const lock = await on.redlock().acquire([on.resource('a'), on.resource('b')], LONG_MS);
      const votes = await on.attemptsOf(await lock.release());
      return [votes, lock.expiration, await on.untilFree('a'), await on.untilFree('b')];
    },
    outcome: [['for'], 0, true, true],
  },
  {
    name: 'a release of the instance does the same',
    run: async (on) => {
      const redlock = on.redlock();
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      return [await on.attemptsOf(await redlock.release(lock)), lock.expiration, await on.untilFree()];
    },
    outcome: [['for'], 0, true],
  },
  {
    name: 'a second release fails',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await lock.release();
      return on.outcomeOf(() => lock.release());
    },
    outcome: LOST,
  },
  {
    name: 'a release of a lock that has expired fails',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], SHORT_MS);
      await on.untilFree();
      return on.outcomeOf(() => lock.release());
    },
    outcome: LOST,
  },
  {
    name: 'a release that is refused is repeated retryCount times',
    run: async (on) => {
      const redlock = on.redlock({ retryCount: 2, retryDelay: 5, retryJitter: 0 });
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      await on.takeAway();
      return on.outcomeOf(() => lock.release());
    },
    outcome: { name: 'ExecutionError', attempts: ['locked', 'locked', 'locked'] },
    differs: {
      outcome: LOST,
      redlock: 'A release of a lock that is lost is repeated `retryCount` times: more than 2 s by default.',
      remora: 'It is not repeated.',
    },
  },
  {
    name: 'a release has settings of its own',
    run: async (on) => {
      const redlock = on.redlock({ retryCount: 100 });
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      await on.takeAway();
      return on.outcomeOf(() => redlock.release(lock, { retryCount: 0 }));
    },
    outcome: LOST,
  },
  {
    name: 'a release does not touch what somebody else has by now',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await on.takeAway();
      const other = await on.once().acquire([on.resource()], LONG_MS);
      const ended = await on.outcomeOf(() => lock.release());
      return [ended, await on.isLocked(), await on.outcomeOf(() => other.release())];
    },
    outcome: [LOST, true, 'fulfilled'],
  },
  {
    name: 'a release of which one resource was taken away fails, and frees the others',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource('a'), on.resource('b')], LONG_MS);
      await on.takeAway('b');
      const ended = await on.outcomeOf(() => lock.release());
      return [ended, await on.untilFree('a')];
    },
    outcome: [LOST, true],
  },
  {
    name: 'a release that failed can be repeated, and the lock expires in any case',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource('a'), on.resource('b')], SHORT_MS);
      await on.takeAway('b');
      const ended = [await on.outcomeOf(() => lock.release()), await on.outcomeOf(() => lock.release())];
      return [ended, await on.untilFree('a'), await on.isLocked('b')];
    },
    outcome: [[LOST, LOST], true, false],
  },
  {
    name: 'the lock that was extended can still be released in place of its successor',
    run: async (on) => {
      const lock = await on.once().acquire([on.resource()], LONG_MS);
      await lock.extend(LONG_MS);
      return [await on.outcomeOf(() => lock.release()), await on.untilFree()];
    },
    outcome: ['fulfilled', true],
  },
  {
    name: 'a lock that was made by hand, of value and resources, is released and extended by any instance',
    run: async (on) => {
      const names = [on.resource('a'), on.resource('b')];
      const { value, expiration } = await on.redlock().acquire(names, LONG_MS);
      const redlock = new on.library.default(await on.side.ownClients(), { retryCount: 0 });
      const copy = new on.library.Lock(redlock, names, value, [], expiration);
      const longer = await copy.extend(LONG_MS);
      const votes = await on.attemptsOf(longer);
      const released = await on.outcomeOf(() => longer.release());
      return [votes, released, await on.untilFree('a'), await on.untilFree('b')];
    },
    outcome: [['for'], 'fulfilled', true, true],
  },
  {
    name: 'a lock that was made by hand with another value, or other resources, holds nothing',
    run: async (on) => {
      const redlock = on.once();
      const lock = await redlock.acquire([on.resource('a')], LONG_MS);
      const wrong = [
        new on.library.Lock(redlock, [on.resource('a')], '0123456789abcdef', [], lock.expiration),
        new on.library.Lock(redlock, [on.resource('a')], 'no value', [], lock.expiration),
        new on.library.Lock(redlock, [on.resource('b')], lock.value, [], lock.expiration),
      ];
      const extended = await Promise.all(wrong.map((each) => on.outcomeOf(() => each.extend(LONG_MS))));
      const released = await Promise.all(wrong.map((each) => on.outcomeOf(() => each.release())));
      return [extended, released, await on.isLocked('a')];
    },
    outcome: [[LOST, LOST, LOST], [LOST, LOST, LOST], true],
  },
];
