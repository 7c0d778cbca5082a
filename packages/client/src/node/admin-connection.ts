/**
 * The connection of a client for administration: to one node at a time; a call goes on at the next node when it is
 * gone.
 */
import { formatDurationMs, type Logger, ServiceError, silentLogger, toServiceError } from '@remora/base';
import { AuthService } from '@remora/protocol/etcd';
import { requireCount } from '../options/options.ts';
import { type CredentialOptions, credentialsOf } from '../transport/credentials.ts';
import { mayTry } from '../transport/discovery.ts';
import { AdminLogIn } from './admin-log-in.ts';
import { askGateways, silenceOf } from './ask-gateways.ts';
import { GRPC_STATUS, GrpcConnection, GrpcError, type UnaryMethod } from './grpc-connection.ts';
import { logInPolicy } from './plain-text.ts';
import { secureEndpoints } from './tls.ts';
import { type ClientTls, clientTls, type TlsOptions } from './tls-files.ts';

export interface AdminClientOptions extends CredentialOptions {
  /** Gateways, as `host:port` or with a scheme. Calls go to the first one that answers. */
  readonly endpoints: readonly string[];
  /** Options of `node:tls`, and files that are read again before each connection, as for `connect`. */
  readonly tls?: TlsOptions | undefined;
  /** Where the client logs. Default: nowhere. */
  readonly logger?: Logger | undefined;
  /** The time limit of one call, in ms. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** How long to wait for a connection to one node, in ms. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Use other gateways of the cluster when none of `endpoints` works. Default true. */
  readonly discover?: boolean;
}

/** The default of both time limits. */
const TIMEOUT_MS = 10_000;
/** How often the client asks the cluster for its gateways, and how many of them it keeps. */
const LEARN_MS = 60_000;
const FOUND_MAX = 5;
const FOUND_TIMEOUT_MS = 1_000;
/** How often a call is repeated with another token. */
const REFUSALS_MAX = 1;
/**
 * How often a call is repeated on another connection after a node has refused one, on which it reads no call: the files
 * of TLS may have changed since it was dialled. The same for a call on an open connection that breaks.
 */
const RECONNECTS_MAX = 1;

export class AdminConnection {
  readonly #endpoints: readonly string[];
  readonly #timeoutMs: number;
  readonly #connectTimeoutMs: number;
  readonly #discover: boolean;
  readonly #tls: ClientTls | undefined;
  /** Absent: the client has no credentials. */
  readonly #logIn: AdminLogIn | undefined;
  readonly #mayLogInAt: (address: string) => boolean;
  #client: GrpcConnection | undefined;
  #connecting: Promise<GrpcConnection> | undefined;
  /** The present endpoint, or the last one. */
  #endpoint = '';
  #next = 0;
  #found: readonly string[] = [];
  #cluster = '';
  /** When to ask for the gateways next; undefined before the first answer. */
  #learnAtMs: number | undefined;

  /**
   * @throws ServiceError INVALID_ARGUMENT for invalid endpoints or credentials, and when `tls` contradicts the scheme.
   */
  constructor(options: AdminClientOptions) {
    const secured = secureEndpoints(options.endpoints, options.tls);
    this.#endpoints = secured.addresses;
    this.#timeoutMs = timeLimit(options.timeoutMs, 'timeoutMs');
    this.#connectTimeoutMs = timeLimit(options.connectTimeoutMs, 'connectTimeoutMs');
    this.#discover = options.discover ?? true;
    this.#tls = clientTls(secured.tls, options.logger ?? silentLogger);
    const credentials = credentialsOf(options);
    this.#logIn = credentials && new AdminLogIn(credentials);
    this.#mayLogInAt = logInPolicy(secured, options);
  }

  /** A node whose answer was lost may have made the change, whatever the attempts after that say. */
  async change<Request, Response>(method: UnaryMethod<Request, Response>, request: Request): Promise<Response> {
    let lost = false;
    try {
      return await this.call(method, request, () => {
        lost = true;
      });
    } catch (error) {
      if (!lost || !(error instanceof ServiceError)) throw error;
      throw new ServiceError(
        'UNKNOWN_OUTCOME',
        `the answer was lost, and the call may have taken effect: ${error.message}`,
        { cause: error },
      );
    }
  }

  /** `onLost` is called for each answer that is lost. */
  async call<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    onLost: () => void = () => {},
  ): Promise<Response> {
    for (let tries = 1, refusals = 0, reconnects = 0; ; tries++) {
      const wasOpen = this.#client?.isOpen === true;
      const client = await this.#connected();
      const token = await this.#tokenAt(client, tries);
      if (token instanceof ServiceError) continue; // Another node can log in.
      try {
        const response = await this.#once(client, method, request, token);
        this.#learnLater();
        return response;
      } catch (error) {
        if (this.#isRefusedToken(error, token) && refusals++ < REFUSALS_MAX) {
          tries--;
          continue;
        }
        const isRefused = client.isInsecure;
        if (isRefused) this.#leave(client);
        if (isRefused && reconnects++ < RECONNECTS_MAX) {
          tries--;
          continue;
        }
        if (isLost(error) && !isRefused) onLost();
        // The node may have closed it before it read the call: for a certificate that was replaced, or as it restarts.
        if (wasOpen && isGone(error) && reconnects++ < RECONNECTS_MAX) {
          this.#leave(client);
          tries--;
          continue;
        }
        const last = !isGone(error) || tries >= this.endpoints.length;
        if (!last || isSilent(error)) this.#leave(client);
        if (last && isRefused) throw await this.#unreached(this.endpoints);
        if (last) throw this.#toServiceError(error);
      }
    }
  }

  /**
   * The token for a call, if there is one; or why this node cannot log in now, after which the next one is asked.
   *
   * @throws ServiceError UNAUTHENTICATED for wrong credentials
   */
  async #tokenAt(client: GrpcConnection, tries: number): Promise<string | undefined | ServiceError> {
    const logIn = this.#logIn;
    if (logIn === undefined) return undefined;
    try {
      return await logIn.token((request) => this.#authenticate(client, request));
    } catch (error) {
      const failed = toServiceError(this.#toServiceError(error));
      if (!(error instanceof GrpcError)) throw failed; // It was refused before, or the program's own function failed.
      if (failed.code === 'UNAUTHENTICATED' || failed.code === 'INVALID_ARGUMENT') {
        const refusal = new ServiceError('UNAUTHENTICATED', `the log-in was refused: ${failed.message}`, {
          cause: failed,
        });
        logIn.remember(refusal);
        throw refusal;
      }
      if (tries >= this.endpoints.length) throw failed;
      this.#leave(client);
      return failed;
    }
  }

  async #authenticate(
    client: GrpcConnection,
    request: { readonly name: string; readonly password: string },
  ): Promise<string | undefined> {
    try {
      const { token } = await this.#once(client, AuthService.authenticate, request, undefined);
      return token;
    } catch (error) {
      if (error instanceof GrpcError && error.code === 'AUTH_REFUSED') return undefined; // Authentication is off.
      throw error;
    }
  }

  /** The node refused the call because of its token, or because it had none; another token may be accepted. */
  #isRefusedToken(error: unknown, token: string | undefined): boolean {
    if (!(error instanceof GrpcError) || error.code !== 'UNAUTHENTICATED') return false;
    return this.#logIn?.refused(token) === true;
  }

  /** A connection to the present endpoint, or to the next one that can be reached. Concurrent calls share it. */
  #connected(): GrpcConnection | Promise<GrpcConnection> {
    if (this.#client?.isOpen) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** The given endpoints, and the discovered ones after them. */
  get endpoints(): readonly string[] {
    return [...this.#endpoints, ...this.#found];
  }

  async #connect(): Promise<GrpcConnection> {
    const endpoints = this.endpoints;
    for (let tries = 0; tries < endpoints.length; tries++) {
      const endpoint = endpoints[this.#next++ % endpoints.length] ?? '';
      const client = await this.#connectTo(endpoint);
      if (client === undefined) continue;
      this.#client = client;
      this.#endpoint = endpoint;
      return client;
    }
    throw await this.#unreached(endpoints);
  }

  /** HTTP/2 does not say well why a connection fails, so this asks in another way. */
  async #unreached(endpoints: readonly string[]): Promise<ServiceError> {
    const cause = await silenceOf(endpoints[0] ?? '', { timeoutMs: FOUND_TIMEOUT_MS, tls: this.#tls?.options });
    const reason = cause === undefined ? '' : `: ${cause.message}`;
    const message = `no node answers at ${endpoints.join(', ')}${reason}`;
    return new ServiceError('UNAVAILABLE', message, { details: { unreached: true }, cause });
  }

  async #connectTo(endpoint: string): Promise<GrpcConnection | undefined> {
    const isFound = this.#found.includes(endpoint);
    // The address may belong to another cluster in the network of this process.
    if (
      isFound &&
      (await askGateways(endpoint, {
        timeoutMs: FOUND_TIMEOUT_MS,
        cluster: this.#cluster,
        tls: this.#tls?.options,
      })) === undefined
    ) {
      return undefined;
    }
    const timeoutMs = isFound ? FOUND_TIMEOUT_MS : this.#connectTimeoutMs;
    return GrpcConnection.open(endpoint, { tls: this.#tls?.options, timeoutMs });
  }

  /** From the second call on, as most clients make one; in the background, and failures are ignored. */
  #learnLater(): void {
    const nowMs = performance.now();
    const isFirst = this.#learnAtMs === undefined;
    this.#learnAtMs ??= nowMs;
    if (!this.#discover || isFirst || nowMs < this.#learnAtMs) return;
    this.#learnAtMs = nowMs + LEARN_MS;
    void askGateways(this.#endpoint, { timeoutMs: FOUND_TIMEOUT_MS, tls: this.#tls?.options }).then((told) => {
      if (told === undefined) return;
      this.#cluster = told.cluster;
      this.#found = told.addresses
        .filter((address) => mayTry(address, this.#endpoints) && this.#mayLogInAt(address))
        .slice(0, FOUND_MAX);
    });
  }

  #once<Request, Response>(
    client: GrpcConnection,
    method: UnaryMethod<Request, Response>,
    request: Request,
    token: string | undefined,
  ): Promise<Response> {
    return client.call(method, request, { timeoutMs: this.#timeoutMs, token });
  }

  #toServiceError(error: unknown): unknown {
    if (!(error instanceof GrpcError)) return error;
    if (error.code !== undefined) return new ServiceError(error.code, error.message, { cause: error });
    if (error.status === GRPC_STATUS.UNIMPLEMENTED) {
      return new ServiceError(
        'UNIMPLEMENTED',
        'the node runs a version that does not know this command; upgrade it, or ask another node',
        {
          cause: error,
        },
      );
    }
    const late = `no answer within ${formatDurationMs(this.#timeoutMs)}; raise timeoutMs (on the command line, --timeout)`;
    const deadline = error.status === GRPC_STATUS.DEADLINE_EXCEEDED;
    return new ServiceError(deadline ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', deadline ? late : error.message, {
      cause: error,
    });
  }

  /** The next call goes to another node, unless a call that runs beside this one has left it already. */
  #leave(client: GrpcConnection): void {
    if (this.#client === client) this.close();
  }

  /** A later call opens a new one. */
  close(): void {
    this.#client?.close();
    this.#client = undefined;
  }
}

/** @throws ServiceError INVALID_ARGUMENT */
function timeLimit(value: number | undefined, name: string): number {
  return requireCount(value ?? TIMEOUT_MS, name, { min: 0, max: Number.MAX_SAFE_INTEGER });
}

/** The error did not come from a node: the node may or may not have got the call. */
function isLost(error: unknown): boolean {
  return error instanceof GrpcError && !error.isAnswer && error.status !== GRPC_STATUS.UNIMPLEMENTED;
}

/** The node may be frozen, with its connections open: the next call goes to another one. */
function isSilent(error: unknown): boolean {
  return error instanceof GrpcError && error.code === undefined && error.status === GRPC_STATUS.DEADLINE_EXCEEDED;
}

/** The node was unreachable, or went away: another one can be asked. */
function isGone(error: unknown): boolean {
  return error instanceof GrpcError && error.code === undefined && error.status === GRPC_STATUS.UNAVAILABLE;
}
