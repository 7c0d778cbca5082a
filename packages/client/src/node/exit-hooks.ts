import type { ExitHooks } from '../ports.ts';

/** Signals that end the process by default and can be handled. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** What exit hooks need of the process. */
export type HookedProcess = Pick<NodeJS.Process, 'prependListener' | 'off' | 'listenerCount' | 'kill' | 'pid'>;

/**
 * Runs functions before the process exits by itself or is ended by a signal.
 *
 * X1. The hooks do not change how the process ends: once all have run, the signal is raised again, and has its default
 *     effect.
 * X2. A second signal does not wait: the listeners are removed at the first one.
 * X3. If somebody else listens to a signal, the hooks ignore it: the program decides whether and when it ends, and
 *     keeps its locks until then. The hooks remove their listener before the others are called, as some libraries raise
 *     a signal again only if nobody else listens.
 * X4. Nothing listens while there is no hook.
 */
export function exitHooks(target: HookedProcess): ExitHooks {
  const hooks = new Set<() => Promise<void>>();

  function onSignal(signal: NodeJS.Signals): void {
    target.off(signal, onSignal);
    if (target.listenerCount(signal) > 0) return listenAgain(signal); // X3
    void runAll().then(() => target.kill(target.pid, signal)); // X1
  }

  /** Listens again once all other listeners were called. */
  function listenAgain(signal: NodeJS.Signals): void {
    setImmediate(() => {
      target.off(signal, onSignal);
      if (hooks.size > 0) target.prependListener(signal, onSignal);
    }).unref();
  }

  function onBeforeExit(): void {
    void runAll();
  }

  /** Never rejects. */
  async function runAll(): Promise<void> {
    const running = [...hooks];
    hooks.clear();
    listen('off'); // X2
    await Promise.allSettled(running.map((hook) => hook()));
  }

  function listen(how: 'prependListener' | 'off'): void {
    for (const signal of SIGNALS) target[how](signal, onSignal);
    target[how]('beforeExit', onBeforeExit);
  }

  return {
    beforeExit(fn) {
      if (hooks.size === 0) listen('prependListener');
      hooks.add(fn);
      return () => {
        if (hooks.delete(fn) && hooks.size === 0) listen('off'); // X4
      };
    },
  };
}

/** Shared by all copies of this package in one process, such as one loaded by `import` and one by `require`. */
const SHARED = Symbol.for('remora.exitHooks');

/** One instance for all clients of the process: several would take one another for the program's listeners (X3). */
export function processExitHooks(): ExitHooks {
  const shared = globalThis as unknown as { [SHARED]?: ExitHooks };
  shared[SHARED] ??= exitHooks(process);
  return shared[SHARED];
}
