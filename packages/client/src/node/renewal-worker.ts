// The program of the thread that renews sessions while the main thread is blocked; renewal-thread.ts starts it.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type Clock, nodeClock, nodeRandom, silentLogger } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { dialPipe } from '@remora/protocol';
import { BackgroundRenewer, type BackgroundRenewerRequest } from '../session/background-renewer.ts';
import type { Credentials } from '../transport/credentials.ts';
import { Requester } from '../transport/requester.ts';
import { retryPolicy } from '../transport/retry.ts';
import { CRASH_BLOCK_MS } from './crash-hooks.ts';
import { linkTo } from './srv-link.ts';
import { clientTls, type TlsOptions } from './tls-files.ts';

export interface RenewalSettings {
  readonly endpoints: readonly string[];
  readonly tls: TlsOptions | undefined;
  readonly credentials: Credentials | undefined;
  readonly requestBytesMax: number;
  readonly blockMaxMs: number;
  /** Sessions may have to be revoked, quickly. */
  readonly releaseOnCrash: boolean;
  /** The monotonic time of the starting thread minus that of the process: each thread counts from its own start. */
  readonly monotonicOffsetMs: number;
  readonly line: MessagePort;
}

/** The thread that sends this stands still until `done` is 1. */
export interface RevokeRequest {
  readonly type: 'revoke';
  readonly sessions: readonly SessionRef[];
  readonly done: Int32Array<SharedArrayBuffer>;
}

const WARM_UP_MS = 10_000;

function revokeAll(requester: Requester, { sessions, done }: RevokeRequest): void {
  let left = sessions.length;
  for (const { lease: id, incarnation } of sessions) {
    requester.sendCommand({ type: 'leaseRevoke', id, incarnation }, { timeoutMs: CRASH_BLOCK_MS }, () => {
      if (--left > 0) return;
      Atomics.store(done, 0, 1);
      Atomics.notify(done, 0);
    });
  }
}

/** A clock with the monotonic time of the starting thread. */
function sharedClock(offsetMs: number): Clock {
  return { ...nodeClock(), monotonicMs: () => Number(process.hrtime.bigint()) / 1e6 + offsetMs };
}

function backgroundRenewer({
  endpoints,
  tls: tlsOptions,
  credentials,
  requestBytesMax,
  blockMaxMs,
  releaseOnCrash,
  monotonicOffsetMs,
  line,
}: RenewalSettings): void {
  const clock = sharedClock(monotonicOffsetMs);
  const random = nodeRandom();
  const tls = clientTls(tlsOptions, silentLogger); // The main thread logs what is wrong with the files.
  const requester = new Requester(
    {
      clock,
      random,
      logger: silentLogger,
      connectLink: ({ address: endpoint, cluster }) =>
        linkTo(endpoint, { random, dial: (address) => dialPipe(address, { clock, tls: tls?.options, cluster }) }),
      // The thread lives as long as the port to the thread that started it.
      liveness: { hold() {}, release() {} },
    },
    { endpoints, requestBytesMax, retry: retryPolicy(), credentials },
  );
  const stand = new BackgroundRenewer(requester, {
    blockMaxMs,
    learn: (told) => requester.discovery.learn(told),
    useToken: (token) => requester.logIns?.learn(token),
    report: (report) => line.postMessage(report),
  });
  line.on('message', (request: BackgroundRenewerRequest | RevokeRequest) => {
    if (request.type === 'revoke') revokeAll(requester, request);
    else stand.receive(request);
  });
  if (!releaseOnCrash) return;
  // Opens a connection, and learns the time that a command needs: there is none to lose later.
  const told = (): void => parentPort?.postMessage('ready');
  requester.query({ type: 'status' }, { timeoutMs: WARM_UP_MS }).then(told, told);
}

backgroundRenewer(workerData);
