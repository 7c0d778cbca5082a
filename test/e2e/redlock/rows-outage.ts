/** Rows that end servers: they run last, one after the other. */
import { LONG_MS, type Row } from './row.ts';

export const MINORITY_ROWS: readonly Row[] = [
  {
    name: 'the end of a minority of servers does not keep a resource from being acquired, extended and released',
    run: async (on) => {
      const redlock = new on.library.default(await on.side.ownClients(), { retryCount: 50, retryDelay: 100 });
      const before = await redlock.acquire([on.resource('a')], LONG_MS);
      await on.side.endMinority();
      const longer = await before.extend(LONG_MS);
      const lock = await redlock.acquire([on.resource('b')], LONG_MS);
      const refused = await on.outcomeOf(() => redlock.acquire([on.resource('a')], LONG_MS, { retryCount: 0 }));
      const votes = [longer, lock, await longer.release(), await lock.release()].map((each) => on.attemptsOf(each));
      return [(await Promise.all(votes)).map((each) => each.at(-1)), refused];
    },
    outcome: [['for', 'for', 'for', 'for'], { name: 'ExecutionError', attempts: ['locked'] }],
  },
  {
    name: 'errors of a minority of servers',
    run: async (on) => {
      const redlock = new on.library.default(await on.side.ownClients());
      let errors = 0;
      redlock.on('error', () => errors++);
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      await Promise.all(lock.attempts);
      const released = await lock.release();
      await Promise.all(released.attempts);
      return errors > 0;
    },
    outcome: true,
    differs: {
      outcome: false,
      redlock: 'A server of a minority that fails emits an `error` for each attempt.',
      remora:
        'The cluster hides the loss of a minority: there is no error to emit. `remora status` and the metrics show it.',
    },
  },
];

export const MAJORITY_ROWS: readonly Row[] = [
  {
    name: 'without a quorum nothing is acquired, after retryCount further attempts',
    run: async (on) => {
      const redlock = new on.library.default(await on.side.ownClients(), { retryCount: 1, retryDelay: 10 });
      await on.side.endMajority();
      let errors = 0;
      redlock.on('error', () => errors++);
      const ended = await on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
      return [ended, errors > 0];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['failed', 'failed'] }, true],
  },
];
