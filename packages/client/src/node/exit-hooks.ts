import type { ExitHooks } from '../ports.ts';

/** Those whose default is to end the process, and which ask rather than force. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** What it needs of the process. */
export type HookedProcess = Pick<NodeJS.Process, 'prependListener' | 'off' | 'listenerCount' | 'kill' | 'pid'>;

/**
 * Runs something before the process ends by itself or by a signal.
 *
 * X1. How the process ends is not changed: a signal is raised again once everything has run, and has its default effect.
 * X2. A second signal does not wait: after the first one nothing listens any more.
 * X3. A signal that somebody else listens to is theirs: the program decides whether and when it ends, and what it holds
 *     until then stays held. Those others find nobody else listening, as libraries raise a signal again only then.
 * X4. Nothing listens while there is nothing to run.
 */
export function exitHooks(target: HookedProcess): ExitHooks {
  const hooks = new Set<() => Promise<void>>();

  function onSignal(signal: NodeJS.Signals): void {
    target.off(signal, onSignal);
    if (target.listenerCount(signal) > 0) return listenAgain(signal); // X3
    void runAll().then(() => target.kill(target.pid, signal)); // X1
  }

  /** Once all others have been told. */
  function listenAgain(signal: NodeJS.Signals): void {
    setImmediate(() => {
      target.off(signal, onSignal);
      if (hooks.size > 0) target.prependListener(signal, onSignal);
    }).unref();
  }

  function onBeforeExit(): void {
    void runAll();
  }

  /** None of them rejects. */
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

/** The same in every copy of this package that a process may have, such as one by `import` and one by `require`. */
const SHARED = Symbol.for('remora.exitHooks');

/** One for all clients of the process: of several, each would take the others for the program's own (X3). */
export function processExitHooks(): ExitHooks {
  const shared = globalThis as unknown as { [SHARED]?: ExitHooks };
  shared[SHARED] ??= exitHooks(process);
  return shared[SHARED];
}
