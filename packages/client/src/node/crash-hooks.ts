/**
 * Gives back what clients hold before the process dies of an uncaught exception.
 *
 * CR1. The main thread stands still from the moment of the exception until the sessions are revoked, for at most
 *      `CRASH_BLOCK_MS` altogether: no other task of the process works on without its lock.
 * CR2. The way in which the process dies does not change: neither its exit code nor what it prints.
 * CR3. Nothing happens if the process goes on, because somebody handles uncaught exceptions.
 */
import type { SessionRef } from '@remora/lock';
import type { CrashHooks } from '../ports.ts';

/** CR1. */
export const CRASH_BLOCK_MS = 500;

/** What the hooks need of the process. */
export type CrashingProcess = Pick<
  NodeJS.Process,
  'on' | 'off' | 'listenerCount' | 'hasUncaughtExceptionCaptureCallback'
>;

/** Begins to revoke sessions in another thread, which sets the first number of `done` to 1 when it is finished. */
export type BeginRevoking = (sessions: readonly SessionRef[], done: Int32Array<SharedArrayBuffer>) => void;

interface Crashing {
  readonly sessions: () => readonly SessionRef[];
  readonly begin: BeginRevoking;
}

const EVENT = 'uncaughtExceptionMonitor';

/** The hooks of one process. `waitFor` blocks the thread until the first number is no longer 0, or for that long. */
export class CrashRegistry {
  readonly #process: CrashingProcess;
  readonly #nowMs: () => number;
  readonly #waitFor: (done: Int32Array<SharedArrayBuffer>, ms: number) => void;
  readonly #clients = new Set<Crashing>();

  constructor(
    target: CrashingProcess,
    nowMs: () => number,
    waitFor: (done: Int32Array<SharedArrayBuffer>, ms: number) => void = (done, ms) =>
      void Atomics.wait(done, 0, 0, ms),
  ) {
    this.#process = target;
    this.#nowMs = nowMs;
    this.#waitFor = waitFor;
  }

  /** The hooks of one client, whose sessions `begin` revokes. */
  hooksOf(begin: BeginRevoking): CrashHooks {
    return {
      beforeCrash: (sessions) => {
        const client = { sessions, begin };
        if (this.#clients.size === 0) this.#process.on(EVENT, this.#onCrash);
        this.#clients.add(client);
        return () => {
          if (this.#clients.delete(client) && this.#clients.size === 0) this.#process.off(EVENT, this.#onCrash);
        };
      },
    };
  }

  readonly #onCrash = (): void => {
    const isHandled = this.#process.listenerCount('uncaughtException') > 0;
    if (isHandled || this.#process.hasUncaughtExceptionCaptureCallback()) return; // CR3
    const endsMs = this.#nowMs() + CRASH_BLOCK_MS;
    // All of them at once, and then one wait after the other, within one time.
    const revoking = [...this.#clients].flatMap(({ sessions, begin }) => {
      const held = sessions();
      if (held.length === 0) return [];
      const done = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
      begin(held, done);
      return [done];
    });
    for (const done of revoking) {
      const leftMs = endsMs - this.#nowMs();
      if (leftMs > 0) this.#waitFor(done, leftMs);
    }
  };
}

const SHARED = Symbol.for('remora.crashRegistry');

/** One for all clients of the process, also those of another copy of this package: CR1 limits the whole. */
export function processCrashRegistry(): CrashRegistry {
  const shared = globalThis as unknown as { [SHARED]?: CrashRegistry };
  shared[SHARED] ??= new CrashRegistry(process, () => Number(process.hrtime.bigint()) / 1e6);
  return shared[SHARED];
}
