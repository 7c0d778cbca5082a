import { LONG_MS, type Row, SHORT_MS } from './row.ts';
import type { SignalLike } from './side.ts';

/** Resolves when the signal aborts. */
function aborted(signal: SignalLike): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A lock that is extended every 200 ms. */
const DURATION_MS = 3_000;
const EXTENDING = { retryCount: 0, automaticExtensionThreshold: 2_800 };
const LOST = { name: 'ExecutionError', attempts: ['locked'] };

export const USING_ROWS: readonly Row[] = [
  {
    name: 'using holds the resources while the routine runs, and returns its value',
    run: async (on) => {
      const value = await on.redlock().using([on.resource('a'), on.resource('b')], LONG_MS, async (signal) => {
        return [signal.aborted, signal.error, await on.isLocked('a'), await on.isLocked('b')];
      });
      return [value, await on.untilFree('a'), await on.untilFree('b')];
    },
    outcome: [[false, undefined, true, true], true, true],
  },
  {
    name: 'the routine is called with an AbortSignal',
    run: async (on) =>
      on.redlock().using([on.resource()], LONG_MS, async (signal) => {
        return [typeof signal.addEventListener, signal.constructor.name];
      }),
    outcome: ['function', 'AbortSignal'],
  },
  {
    name: 'using rejects with the error of its routine, and releases',
    run: async (on) => {
      const failure = new TypeError('of the routine');
      const routine = async (): Promise<never> => {
        throw failure;
      };
      const error = await on
        .redlock()
        .using([on.resource()], LONG_MS, routine)
        .catch((caught: unknown) => caught);
      return [error === failure, await on.untilFree()];
    },
    outcome: [true, true],
  },
  {
    name: 'using extends its lock as long as the routine runs',
    run: async (on) => {
      const value = await on.redlock(EXTENDING).using([on.resource()], DURATION_MS, async (signal) => {
        await pause(1.2 * DURATION_MS);
        return [signal.aborted, await on.isLocked()];
      });
      return [value, await on.untilFree()];
    },
    outcome: [[false, true], true],
  },
  {
    name: 'using takes settings of its own',
    run: async (on) => {
      const value = await on
        .redlock({ retryCount: 0 })
        .using([on.resource()], DURATION_MS, EXTENDING, async (signal) => {
          await pause(1.2 * DURATION_MS);
          return [signal.aborted, await on.isLocked()];
        });
      return [value, await on.untilFree()];
    },
    outcome: [[false, true], true],
  },
  {
    name: 'an extension that fails aborts the signal, which has the error; using then rejects',
    run: async (on) => {
      let seen: unknown;
      const ended = await on.outcomeOf(() =>
        on.redlock(EXTENDING).using([on.resource()], DURATION_MS, async (signal) => {
          await on.takeAway();
          await aborted(signal);
          seen = [signal.aborted, signal.error instanceof Error];
        }),
      );
      return [seen, ended];
    },
    outcome: [[true, true], LOST],
  },
  {
    name: 'an error that the routine throws because of the signal, after the lock was lost',
    run: async (on) => {
      let thrown: unknown;
      const error = await on
        .redlock(EXTENDING)
        .using([on.resource()], DURATION_MS, async (signal) => {
          await on.takeAway();
          await aborted(signal);
          thrown = signal.error;
          throw signal.error;
        })
        .catch((caught: unknown) => caught);
      return [error === thrown, await on.errorOf(error)];
    },
    outcome: [false, LOST],
    differs: {
      outcome: [true, 'an Error'],
      redlock:
        'If the routine of `using` throws and the release fails too, `using` rejects with the error of the release.',
      remora: 'It rejects with the error of the routine, which says more.',
    },
  },
  {
    name: 'a duration too short for the threshold is refused, and the routine is not run',
    run: async (on) => {
      const ran: number[] = [];
      const redlock = on.redlock({ automaticExtensionThreshold: 500 });
      const using = (duration: number) =>
        on.outcomeOf(() => redlock.using([on.resource(String(duration))], duration, async () => ran.push(duration)));
      return [await using(500), await using(599), await using(600), ran];
    },
    outcome: ['an Error', 'an Error', 'fulfilled', [600]],
  },
  {
    name: 'using without a routine is refused',
    run: async (on) => {
      const redlock = on.once();
      const ended = await on.outcomeOf(() => redlock.using([on.resource()], LONG_MS, {}));
      return [ended, await on.isLocked()];
    },
    outcome: ['an Error', false],
  },
  {
    name: 'a resource that is locked: the routine is not run',
    run: async (on) => {
      let ran = false;
      await on.redlock().acquire([on.resource()], LONG_MS);
      const ended = await on.outcomeOf(() =>
        on.once().using([on.resource()], LONG_MS, async () => {
          ran = true;
        }),
      );
      return [ended, ran];
    },
    outcome: [LOST, false],
  },
  {
    name: 'using with a duration with a fraction is refused',
    run: async (on) => on.outcomeOf(() => on.once().using([on.resource()], 5000.5, async () => {})),
    outcome: 'an Error',
  },
  {
    name: 'using waits for its turn',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], SHORT_MS);
      const redlock = on.redlock({ retryCount: -1, retryDelay: 10, retryJitter: 0 });
      return redlock.using([on.resource()], LONG_MS, async () => on.isLocked());
    },
    outcome: true,
  },
];
