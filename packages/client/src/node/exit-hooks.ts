import type { ExitHooks } from '../ports.ts';

/** Those whose default is to end the process, and which ask rather than force. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** What it needs of the process. */
export type HookedProcess = Pick<NodeJS.Process, 'on' | 'off' | 'listenerCount' | 'kill' | 'pid'>;

/**
 * Runs something before the process ends by itself or by a signal.
 *
 * X1. How the process ends is not changed: a signal is raised again once everything has run, and has its default effect.
 * X2. A second signal does not wait: after the first one nothing listens any more.
 * X3. A signal that the program listens to itself is the program's: it decides whether and when it ends, and what it holds
 *     until then stays held.
 * X4. Nothing listens while there is nothing to run.
 */
export function exitHooks(target: HookedProcess): ExitHooks {
  const hooks = new Set<() => Promise<void>>();

  function onSignal(signal: NodeJS.Signals): void {
    if (target.listenerCount(signal) > 1) return; // X3
    void runAll().then(() => target.kill(target.pid, signal)); // X1
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

  function listen(how: 'on' | 'off'): void {
    for (const signal of SIGNALS) target[how](signal, onSignal);
    target[how]('beforeExit', onBeforeExit);
  }

  return {
    beforeExit(fn) {
      if (hooks.size === 0) listen('on');
      hooks.add(fn);
      return () => {
        if (hooks.delete(fn) && hooks.size === 0) listen('off'); // X4
      };
    },
  };
}

let ofThisProcess: ExitHooks | undefined;

/** One for all clients of the process: listeners of several would each take the others for the program's own (X3). */
export function processExitHooks(): ExitHooks {
  ofThisProcess ??= exitHooks(process);
  return ofThisProcess;
}
