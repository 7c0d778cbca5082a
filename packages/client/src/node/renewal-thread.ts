import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { Clock, Logger } from '@remora/base';
import type { BackgroundRenewerReport } from '../session/background-renewer.ts';
import type { BackgroundRenewerLine } from '../session/background-renewer-client.ts';
import type { BeginRevoking } from './crash-hooks.ts';
import type { RenewalSettings, RevokeRequest } from './renewal-worker.ts';

/** The interval of this thread's signs of life: a small part of any `maxMainThreadBlock`. */
const ALIVE_INTERVAL_MS = 250;

/** Beside this file when it is compiled, and beside the bundle when it is packed. */
const WORKER = './renewal-worker.js';

/** The thread, which also revokes sessions while this one stands still. */
export interface RenewalThread extends BackgroundRenewerLine {
  readonly revoke: BeginRevoking;
  /** Resolves once the thread is prepared to revoke, or has failed. Does not keep the process alive. */
  readonly ready: Promise<void>;
}

/** Starts a thread that renews sessions while this one is blocked. The thread does not keep the process alive. */
export function startRenewalThread(
  settings: Omit<RenewalSettings, 'monotonicOffsetMs' | 'line'>,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): RenewalThread {
  const { port1: line, port2 } = new MessageChannel();
  const monotonicOffsetMs = clock.monotonicMs() - Number(process.hrtime.bigint()) / 1e6;
  const workerData: RenewalSettings = { ...settings, monotonicOffsetMs, line: port2 };
  const worker = new Worker(new URL(WORKER, import.meta.url), {
    workerData,
    transferList: [port2],
    execArgv: [],
  });
  worker.unref();
  line.unref();
  const ready = new Promise<void>((resolve) => {
    worker.once('message', () => resolve());
    worker.once('exit', () => resolve());
  });
  worker.once('error', (error) => {
    clearInterval(alive);
    logger.error({ error: String(error) }, 'the renewal thread failed; the main thread renews sessions alone');
  });
  const alive = setInterval(() => line.postMessage({ type: 'alive', atMs: clock.monotonicMs() }), ALIVE_INTERVAL_MS);
  alive.unref();
  return {
    ready,
    revoke: (sessions, done) => line.postMessage({ type: 'revoke', sessions, done } satisfies RevokeRequest),
    send: (request) => line.postMessage(request),
    receive: () => receiveMessageOnPort(line)?.message as BackgroundRenewerReport | undefined,
    close() {
      clearInterval(alive);
      line.close();
      void worker.terminate();
    },
  };
}
