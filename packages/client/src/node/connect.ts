import { hostname } from 'node:os';
import { resolve } from 'node:path';
import {
  identityOf,
  isGone,
  type Logger,
  nodeClock,
  nodeDisk,
  nodeRandom,
  ServiceError,
  systemProcessTable,
  taskContext,
  warnOfLooseMode,
} from '@remora/base';
import { dialPipe, PIPE_REQUEST_BYTES_MAX } from '@remora/protocol';
import { RemoraClient } from '../client.ts';
import { CLIENT_CHECKS, type ClientOptions, endpointsOf } from '../client-options.ts';
import { type Duration, durationMs } from '../options/duration.ts';
import { duration, flag, object, text } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { ClientPorts, JournalPorts, Liveness } from '../ports.ts';
import { BackgroundRenewerClient } from '../session/background-renewer-client.ts';
import { type Credentials, credentialsOf } from '../transport/credentials.ts';
import { processCrashRegistry } from './crash-hooks.ts';
import { processExitHooks } from './exit-hooks.ts';
import { processLiveness } from './liveness.ts';
import { logInPolicy } from './plain-text.ts';
import { startRenewalThread } from './renewal-thread.ts';
import { linkTo } from './srv-link.ts';
import { secureEndpoints } from './tls.ts';
import { clientTls, type TlsOptions } from './tls-files.ts';
import { warningLogger } from './warning-logger.ts';

export interface ConnectOptions extends ClientOptions {
  /**
   * Options of `node:tls`, for gateways that speak TLS. Endpoints with `https://` use TLS even without this option;
   * endpoints with `http://` are refused with it; endpoints without a scheme use TLS if it is given. With `caFile`,
   * `certFile` and `keyFile` in place of `ca`, `cert` and `key`, files are read again before each connection, so that
   * certificates may change while the program runs.
   */
  readonly tls?: TlsOptions | undefined;
  /** Where the client logs. Default: errors become warnings of the process, and nothing else is logged. */
  readonly logger?: Logger | undefined;
  /**
   * A directory on this machine, shared by any number of processes of one user. A client writes the sessions that it
   * holds into it before it uses them. When a process ends without closing its client, the next client that connects to
   * the same cluster with this directory ends those sessions at once, before their TTL has passed. Default: no journal.
   */
  readonly journal?: string | undefined;
  /**
   * Also renew sessions from a worker thread with a connection of its own, so that they survive work that blocks the
   * main thread. With it, `tls` may contain data alone, and no functions. Default false.
   */
  readonly renewInWorker?: boolean | undefined;
  /**
   * How long the main thread may be blocked before that worker stops renewing: what a program holds that hangs forever
   * is free after this time and a TTL. Default 30 s.
   */
  readonly maxMainThreadBlock?: Duration | undefined;
  /**
   * Give locks back before the process dies of an uncaught exception: its main thread stands still, for at most 500 ms,
   * while a worker thread revokes its sessions. Exit code and message stay as they are. With it, `tls` may contain data
   * alone, and no functions. Default false.
   */
  readonly releaseOnCrash?: boolean | undefined;
  /**
   * Know what a task holds, by `AsyncLocalStorage`: for `reentrant`, and so that a task that would wait for itself is
   * refused. From the first `run` on Node.js then tracks contexts, which slows down promises before Node.js 24. Default
   * true.
   */
  readonly trackTasks?: boolean | undefined;
}

export const CONNECT_OPTIONS = optionSet<ConnectOptions>('connect', {
  ...CLIENT_CHECKS,
  ...{
    tls: object,
    logger: object,
    journal: text,
    renewInWorker: flag,
    maxMainThreadBlock: duration,
    trackTasks: flag,
    releaseOnCrash: flag,
  },
});

/**
 * Connects to a Remora cluster. Resolves once a gateway has answered.
 *
 * ```ts
 * const remora = await connect({ endpoints: ['10.0.0.1:7480', '10.0.0.2:7480'] });
 * await using lock = await remora.lock('orders/42').acquire({ wait: '5s' });
 * await ship(order, { fence: lock.version, signal: lock.signal });
 * ```
 *
 * With `user` and `password`, or `token`, every connection is logged in before its first request, and again before its
 * log-in ends. A wrong password ends requests as UNAUTHENTICATED.
 *
 * @throws ServiceError INVALID_ARGUMENT for invalid options; UNAUTHENTICATED for wrong credentials; UNAVAILABLE when
 *   no gateway answers within `connectTimeout`.
 */
export async function connect(options: ConnectOptions): Promise<RemoraClient> {
  checkOptions(CONNECT_OPTIONS, options);
  const endpoints = secureEndpoints(endpointsOf(options), options.tls, { srv: true });
  const logger = options.logger ?? warningLogger;
  const tls = clientTls(endpoints.tls, logger);
  const clock = nodeClock();
  const random = nodeRandom();
  const ports: ClientPorts = {
    clock,
    random,
    logger,
    connectLink: ({ address: endpoint, cluster }) =>
      linkTo(endpoint, { random, dial: (address) => dialPipe(address, { clock, tls: tls?.options, cluster }) }),
    mayLogInAt: logInPolicy(endpoints, options),
    liveness: processLiveness,
    ...(options.trackTasks === false ? {} : { task: taskContext }),
    exit: processExitHooks(),
    ...(options.journal === undefined ? {} : { journal: journalIn(options.journal) }),
  };
  if (options.journal !== undefined) await warnOfLooseMode(resolve(options.journal), 'the journal', ports.logger);
  const thread = wantsThread(options) ? threadOf({ ...options, tls: endpoints.tls }, ports) : undefined;
  const client = await RemoraClient.open(
    { ...ports, ...thread?.ports },
    { ...options, attributes: { host: hostname(), pid: String(process.pid), ...options.attributes } },
  );
  // What is acquired from now on can be given back. A lazy client acquires nothing before its cluster is there.
  if (options.releaseOnCrash && !options.lazy) await awaited(thread?.ready, ports.liveness);
  return client;
}

function wantsThread({ renewInWorker, releaseOnCrash }: ConnectOptions): boolean {
  return renewInWorker === true || releaseOnCrash === true;
}

async function awaited(ready: Promise<void> | undefined, liveness: Liveness): Promise<void> {
  liveness.hold();
  await ready;
  liveness.release();
}

interface ClientThread {
  readonly ports: Pick<ClientPorts, 'backgroundRenewer' | 'crash'>;
  readonly ready: Promise<void>;
}

function threadOf(options: ConnectOptions, ports: ClientPorts): ClientThread {
  const settings = {
    tls: cloneable(options.tls),
    endpoints: endpointsOf(options),
    credentials: forThread(credentialsOf(options)),
    requestBytesMax: options.requestBytesMax ?? PIPE_REQUEST_BYTES_MAX,
    blockMaxMs: durationMs(options.maxMainThreadBlock ?? 30_000, 'maxMainThreadBlock'),
    releaseOnCrash: options.releaseOnCrash === true,
  };
  const thread = startRenewalThread(settings, ports);
  const backgroundRenewer = new BackgroundRenewerClient(thread, options.renewInWorker === true);
  const { ready } = thread;
  if (!options.releaseOnCrash) return { ports: { backgroundRenewer }, ready };
  return { ports: { backgroundRenewer, crash: processCrashRegistry().hooksOf(thread.revoke) }, ready };
}

/** A function cannot be passed to another thread, which then uses the tokens that this thread obtains. */
function forThread(credentials: Credentials | undefined): Credentials | undefined {
  const isFunction = credentials?.with === 'token' && typeof credentials.token === 'function';
  return isFunction ? { with: 'tokensOfClient' } : credentials;
}

/** The options as another thread gets them. @throws ServiceError INVALID_ARGUMENT for what cannot be passed to one. */
function cloneable(tls: TlsOptions | undefined): TlsOptions | undefined {
  try {
    if (tls?.secureContext !== undefined) throw new Error('a context belongs to its thread');
    return structuredClone(tls);
  } catch (cause) {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      'renewInWorker, releaseOnCrash: the option tls contains a function or a context, which cannot be passed to the renewal thread; ' +
        'give certificates and keys as text or bytes',
      { cause },
    );
  }
}

function journalIn(directory: string): JournalPorts {
  const table = systemProcessTable();
  return {
    disk: nodeDisk(resolve(directory), { syncInPlace: false }),
    self: identityOf(table),
    isGone: (process) => isGone(process, table),
  };
}
