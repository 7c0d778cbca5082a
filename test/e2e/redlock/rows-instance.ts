/** Rows of the instance: its settings, its events, its end. */
import { LONG_MS, type Row } from './row.ts';

export const INSTANCE_ROWS: readonly Row[] = [
  {
    name: 'the module has four exports',
    run: async ({ library }) =>
      ['default', 'Lock', 'ExecutionError', 'ResourceLockedError'].map((name) => typeof Reflect.get(library, name)),
    outcome: ['function', 'function', 'function', 'function'],
  },
  {
    name: 'the settings have defaults',
    run: async (on) => on.redlock().settings,
    outcome: {
      ...{ driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 100 },
      automaticExtensionThreshold: 500,
    },
  },
  {
    name: 'each setting replaces its default',
    run: async (on) => on.redlock({ retryCount: 3, driftFactor: 0.02, retryJitter: 0 }).settings,
    outcome: {
      ...{ driftFactor: 0.02, retryCount: 3, retryDelay: 200, retryJitter: 0 },
      automaticExtensionThreshold: 500,
    },
  },
  {
    name: 'the clients are a set',
    run: async (on) => {
      const { clients } = on.redlock();
      return [clients instanceof Set, clients.size === on.side.clients.length];
    },
    outcome: [true, true],
  },
  {
    name: 'an instance needs a client',
    run: async ({ library, side }) => {
      const made = async (clients: Iterable<unknown>) => {
        try {
          return new library.default(clients).clients.size === side.clients.length;
        } catch (error) {
          return error instanceof Error;
        }
      };
      return [await made([]), await made(new Set(side.clients))];
    },
    outcome: [true, true],
  },
  {
    name: 'several clients',
    run: async (on) => {
      const more = [...on.side.clients, ...(await on.side.ownClients())];
      return on.outcomeOf(() => new on.library.default(more));
    },
    outcome: 'fulfilled',
    differs: {
      outcome: 'an Error',
      redlock: 'Takes one client for each independent Redis server.',
      remora: 'Takes one client: a cluster takes the place of all servers. Several clients are refused.',
    },
  },
  {
    name: 'a setting of a wrong type, and an unknown one',
    run: async (on) => [
      await on.outcomeOf(() => on.redlock({ retryCount: 'many' })),
      await on.outcomeOf(() => on.redlock({ retrycount: 3 })),
      await on.outcomeOf(() => on.redlock().acquire([on.resource()], LONG_MS, { retrycount: 3 })),
    ],
    outcome: ['fulfilled', 'fulfilled', 'fulfilled'],
    differs: {
      outcome: ['an Error', 'an Error', 'an Error'],
      redlock: 'A setting of a wrong type, or with a wrong name, is ignored.',
      remora: 'It is refused with `INVALID_ARGUMENT`; the message names it.',
    },
  },
  {
    name: 'the scripts that run in Redis',
    run: async (on) => typeof Reflect.get(on.redlock(), 'scripts'),
    outcome: 'object',
    differs: {
      outcome: 'undefined',
      redlock: 'Runs scripts in Redis: `redlock.scripts`, and a third argument of the constructor that replaces them.',
      remora: 'Has no scripts.',
    },
  },
  {
    name: 'an instance is an emitter of events; an error needs no listener',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.once();
      const ended = await on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
      return [typeof redlock.on, typeof redlock.emit, ended];
    },
    outcome: ['function', 'function', { name: 'ExecutionError', attempts: ['locked'] }],
  },
  {
    name: 'each attempt that finds a resource locked emits a ResourceLockedError for each client of a quorum, at least',
    run: async (on) => {
      await on.redlock().acquire([on.resource()], LONG_MS);
      const redlock = on.redlock({ retryCount: 2, retryDelay: 10, retryJitter: 0 });
      const errors: Error[] = [];
      redlock.on('error', (error) => errors.push(error));
      const ended = await on.outcomeOf(() => redlock.acquire([on.resource()], LONG_MS));
      const kinds = errors.map((error) => error instanceof on.library.ResourceLockedError && error.name);
      return [ended, errors.length >= 3 * on.quorum, [...new Set(kinds)]];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['locked', 'locked', 'locked'] }, true, ['ResourceLockedError']],
  },
  {
    name: 'a release that fails emits its errors too',
    run: async (on) => {
      const redlock = on.once();
      const lock = await redlock.acquire([on.resource()], LONG_MS);
      await on.takeAway();
      let errors = 0;
      redlock.on('error', () => errors++);
      const ended = await on.outcomeOf(() => lock.release());
      return [ended, errors >= on.quorum];
    },
    outcome: [{ name: 'ExecutionError', attempts: ['locked'] }, true],
  },
  {
    name: 'the errors are Errors, made by hand too',
    run: async ({ library }) => {
      const attempts = [Promise.resolve({} as never)];
      const failed = new library.ExecutionError('why', attempts);
      const locked = new library.ResourceLockedError('who');
      return [
        [failed instanceof Error, failed.name, failed.message, failed.attempts === attempts],
        [locked instanceof Error, locked.name, locked.message],
      ];
    },
    outcome: [
      [true, 'ExecutionError', 'why', true],
      [true, 'ResourceLockedError', 'who'],
    ],
  },
  {
    name: 'after quit, nothing is acquired',
    run: async (on) => {
      const redlock = new on.library.default(await on.side.ownClients(), { retryCount: 0 });
      await redlock.acquire([on.resource('a')], LONG_MS);
      const quit = await redlock.quit();
      return [quit, await on.outcomeOf(() => redlock.acquire([on.resource('b')], LONG_MS))];
    },
    outcome: [undefined, { name: 'ExecutionError', attempts: ['failed'] }],
  },
  {
    name: 'quit, while something is held',
    run: async (on) => {
      const redlock = new on.library.default(await on.side.ownClients());
      await redlock.acquire([on.resource()], LONG_MS);
      await redlock.quit();
      return on.isLocked();
    },
    outcome: true,
    differs: {
      outcome: false,
      redlock: '`quit()` closes the connections. What was not released stays locked until it expires.',
      remora:
        '`quit()` closes the client, which releases all that it holds. So does the end of the process (`releaseOnExit` of `connect`).',
    },
  },
];
