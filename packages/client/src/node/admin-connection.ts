/**
 * The connection of a client for administration: to one node at a time; a call goes on at the next node when it is
 * gone.
 */
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity as checkIdentity,
  createSecureContext,
  type PeerCertificate,
} from 'node:tls';
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type ServiceError as GrpcError,
  Metadata,
  status,
} from '@grpc/grpc-js';
import {
  formatDurationMs,
  isErrorCode,
  type Logger,
  parseAddress,
  ServiceError,
  silentLogger,
  toServiceError,
} from '@remora/base';
import { AuthService } from '@remora/protocol/etcd';
import { type CredentialOptions, credentialsOf } from '../transport/credentials.ts';
import { mayTry } from '../transport/discovery.ts';
import { AdminLogIn } from './admin-log-in.ts';
import { askGateways, silenceOf } from './ask-gateways.ts';
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
  /** The time limit of one call, in ms. */
  readonly timeoutMs: number;
  /** How long to wait for a connection to one node, in ms. */
  readonly connectTimeoutMs: number;
  /** Use other gateways of the cluster when none of `endpoints` works. Default true. */
  readonly discover?: boolean;
}

/** A method of a generated service. */
interface UnaryMethod<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/**
 * A node that hangs is detected after both times; its calls then go to another node. A server closes a connection whose
 * client pings more often than every 5 s during a call without answer, as a long change of a range is.
 */
export const KEEPALIVE = {
  'grpc.keepalive_time_ms': 6_000,
  'grpc.keepalive_timeout_ms': 2_000,
};
/** How often the client asks the cluster for its gateways, and how many of them it keeps. */
const LEARN_MS = 60_000;
const FOUND_MAX = 5;
const FOUND_TIMEOUT_MS = 1_000;
/** How often a call is repeated with another token. */
const REFUSALS_MAX = 1;
/**
 * How often a call is repeated on another connection after a node has refused one, on which it reads no call: the files
 * of TLS may have changed since it was dialled.
 */
const RECONNECTS_MAX = 1;

export class AdminConnection {
  readonly #options: Omit<AdminClientOptions, 'tls'>;
  readonly #tls: ClientTls | undefined;
  /** Absent: the client has no credentials. */
  readonly #logIn: AdminLogIn | undefined;
  readonly #mayLogInAt: (address: string) => boolean;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
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
    const { user: _user, password: _password, token: _token, ...others } = options; // Kept in `#logIn` alone.
    this.#options = { ...others, endpoints: secured.addresses };
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
        const isRefused = isRefusedConnection(error);
        if (isRefused) this.close();
        if (isRefused && reconnects++ < RECONNECTS_MAX) {
          tries--;
          continue;
        }
        if (isLost(error) && !isRefused) onLost();
        const last = !isGone(error) || tries >= this.endpoints.length;
        if (!last || isSilent(error)) this.close();
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
  async #tokenAt(client: Client, tries: number): Promise<string | undefined | ServiceError> {
    const logIn = this.#logIn;
    if (logIn === undefined) return undefined;
    try {
      return await logIn.token((request) => this.#authenticate(client, request));
    } catch (error) {
      const failed = toServiceError(this.#toServiceError(error));
      if (!isGrpcError(error)) throw failed; // It was refused before, or the program's own function failed.
      if (failed.code === 'UNAUTHENTICATED' || failed.code === 'INVALID_ARGUMENT') {
        const refusal = new ServiceError('UNAUTHENTICATED', `the log-in was refused: ${failed.message}`, {
          cause: failed,
        });
        logIn.remember(refusal);
        throw refusal;
      }
      if (tries >= this.endpoints.length) throw failed;
      this.close();
      return failed;
    }
  }

  async #authenticate(
    client: Client,
    request: { readonly name: string; readonly password: string },
  ): Promise<string | undefined> {
    try {
      const { token } = await this.#once(client, AuthService.authenticate, request, undefined);
      return token;
    } catch (error) {
      if (isGrpcError(error) && codeOf(error) === 'AUTH_REFUSED') return undefined; // Authentication is off.
      throw error;
    }
  }

  /** The node refused the call because of its token, or because it had none; another token may be accepted. */
  #isRefusedToken(error: unknown, token: string | undefined): boolean {
    if (!isGrpcError(error) || codeOf(error) !== 'UNAUTHENTICATED') return false;
    return this.#logIn?.refused(token) === true;
  }

  /** A connection to the present endpoint, or to the next one that can be reached. Concurrent calls share it. */
  #connected(): Client | Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** The given endpoints, and the discovered ones after them. */
  get endpoints(): readonly string[] {
    return [...this.#options.endpoints, ...this.#found];
  }

  async #connect(): Promise<Client> {
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

  /** gRPC does not say why a connection fails, so this asks in another way. */
  async #unreached(endpoints: readonly string[]): Promise<ServiceError> {
    const cause = await silenceOf(endpoints[0] ?? '', { timeoutMs: FOUND_TIMEOUT_MS, tls: this.#tls?.options });
    const reason = cause === undefined ? '' : `: ${cause.message}`;
    const message = `no node answers at ${endpoints.join(', ')}${reason}`;
    return new ServiceError('UNAVAILABLE', message, { details: { unreached: true }, cause });
  }

  async #connectTo(endpoint: string): Promise<Client | undefined> {
    const { connectTimeoutMs } = this.#options;
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
    const client = new Client(endpoint, ...securityOf(endpoint, this.#tls?.options));
    if (await isReady(client, isFound ? FOUND_TIMEOUT_MS : connectTimeoutMs)) return client;
    client.close();
    return undefined;
  }

  /** From the second call on, as most clients make one; in the background, and failures are ignored. */
  #learnLater(): void {
    const nowMs = performance.now();
    const isFirst = this.#learnAtMs === undefined;
    this.#learnAtMs ??= nowMs;
    if (this.#options.discover === false || isFirst || nowMs < this.#learnAtMs) return;
    this.#learnAtMs = nowMs + LEARN_MS;
    void askGateways(this.#endpoint, { timeoutMs: FOUND_TIMEOUT_MS, tls: this.#tls?.options }).then((told) => {
      if (told === undefined) return;
      const { endpoints } = this.#options;
      this.#cluster = told.cluster;
      this.#found = told.addresses
        .filter((address) => mayTry(address, endpoints) && this.#mayLogInAt(address))
        .slice(0, FOUND_MAX);
    });
  }

  #once<Request, Response>(
    client: Client,
    { path, requestSerialize, responseDeserialize }: UnaryMethod<Request, Response>,
    request: Request,
    token: string | undefined,
  ): Promise<Response> {
    const deadline = Date.now() + this.#options.timeoutMs;
    const metadata = new Metadata();
    if (token !== undefined) metadata.set('token', token);
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        { deadline },
        (error, response) => (response === undefined ? reject(error) : resolve(response)),
      );
    });
  }

  #toServiceError(error: unknown): unknown {
    if (!isGrpcError(error)) return error;
    const code = codeOf(error);
    if (code !== undefined) return new ServiceError(code, error.details, { cause: error });
    if (error.code === status.UNIMPLEMENTED) {
      return new ServiceError(
        'UNIMPLEMENTED',
        'the node runs a version that does not know this command; upgrade it, or ask another node',
        {
          cause: error,
        },
      );
    }
    const late = `no answer within ${formatDurationMs(this.#options.timeoutMs)}; --timeout gives it longer`;
    const deadline = error.code === status.DEADLINE_EXCEEDED;
    return new ServiceError(deadline ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', deadline ? late : error.details, {
      cause: error,
    });
  }

  /** A later call opens a new one. */
  close(): void {
    this.#client?.close();
    this.#client = undefined;
  }
}

/**
 * The credentials and the options of a channel. gRPC would send an IP address as the name of the server, which TLS does
 * not allow (RFC 6066, section 3), so another name takes its place; the certificate is still compared with the address.
 */
function securityOf(endpoint: string, tls: ConnectionOptions | undefined): [ChannelCredentials, ClientOptions] {
  if (tls === undefined) return [credentials.createInsecure(), KEEPALIVE];
  const host = parseAddress(endpoint)?.host ?? endpoint;
  const { rejectUnauthorized = true, checkServerIdentity = checkIdentity, servername = host } = tls;
  const verify = {
    rejectUnauthorized,
    checkServerIdentity: (_name: string, certificate: PeerCertificate) => checkServerIdentity(servername, certificate),
  };
  const secured = credentials.createFromSecureContext(tls.secureContext ?? createSecureContext(tls), verify);
  return [secured, { ...KEEPALIVE, 'grpc.ssl_target_name_override': isIP(servername) === 0 ? servername : NO_NAME }];
}

/** Nobody has a name of the domain `invalid` (RFC 2606). */
const NO_NAME = 'gateway.invalid';

function isReady(client: Client, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    client.waitForReady(Date.now() + timeoutMs, (error) => resolve(error === undefined));
  });
}

function isGrpcError(error: unknown): error is GrpcError {
  return error instanceof Error && 'metadata' in error && 'details' in error;
}

/** The code from Remora's table; undefined when the error came from the transport, and not from a node. */
function codeOf({ metadata }: GrpcError) {
  const [code] = metadata.get('remora-code');
  return typeof code === 'string' && isErrorCode(code) ? code : undefined;
}

/** The node has refused the connection with INADEQUATE_SECURITY: it requires TLS, or a certificate. */
function isRefusedConnection(error: unknown): boolean {
  return isGrpcError(error) && error.details.includes('Protocol not secure enough');
}

/** The error did not come from a node: the node may or may not have got the call. */
function isLost(error: unknown): boolean {
  if (!isGrpcError(error) || error.code === status.UNIMPLEMENTED) return false;
  return error.metadata.get('remora-code').length === 0;
}

/** The node may be frozen, with its connections open: the next call goes to another one. */
function isSilent(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.DEADLINE_EXCEEDED;
}

/** The node was unreachable, or went away: another one can be asked. */
function isGone(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.UNAVAILABLE;
}
