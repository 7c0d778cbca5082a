// The program of the thread that renews sessions while the main thread is blocked; renewal-thread.ts starts it.
import { type MessagePort, workerData } from 'node:worker_threads';
import { type Clock, nodeClock, nodeRandom, silentLogger } from '@remora/base';
import { dialPipe } from '@remora/protocol';
import { BackgroundRenewer, type BackgroundRenewerRequest } from '../session/background-renewer.ts';
import type { Credentials } from '../transport/credentials.ts';
import { Requester } from '../transport/requester.ts';
import { retryPolicy } from '../transport/retry.ts';
import { linkTo } from './srv-link.ts';
import { clientTls, type TlsOptions } from './tls-files.ts';

export interface RenewalSettings {
  readonly endpoints: readonly string[];
  readonly tls: TlsOptions | undefined;
  readonly credentials: Credentials | undefined;
  readonly requestBytesMax: number;
  readonly blockMaxMs: number;
  /** The monotonic time of the starting thread minus that of the process: each thread counts from its own start. */
  readonly monotonicOffsetMs: number;
  readonly line: MessagePort;
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
  line.on('message', (request: BackgroundRenewerRequest) => stand.receive(request));
}

backgroundRenewer(workerData);
