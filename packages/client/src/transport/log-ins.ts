/**
 * Logs the connections of a client in, and keeps them logged in.
 *
 * LI1. One log-in by password at a time for each client, and one call of the token function: servers hash one password
 *      at a time. Connections that need a log-in meanwhile wait for that token, and use it.
 * LI2. A connection carries no request before it is logged in (link-guard.ts LG1). A token is used for each further
 *      connection, until `SPARE_MS` before it ends.
 * LI3. Each connection logs in again when its token has used up 60 to 80 % of its life, a random part, so that
 *      clients spread. Requests go on meanwhile. A renewal that fails is repeated with growing pauses.
 * LI4. A token that a gateway refuses is dropped, and another one is obtained. The request that was refused is sent
 *      again (operation.ts).
 * LI5. Refused credentials are final: what waits for the log-in ends with that error. For a pause that doubles with
 *      each refusal, further requests get the same error without a log-in: a wrong password costs the cluster little.
 * LI6. Any other failure says nothing about the credentials: the gateway may be cut off from the masters, or have too
 *      many log-ins to do. It ends the connection as UNAVAILABLE, and requests go to another gateway.
 * LI7. When authentication is off, a log-in succeeds without a token. It is repeated when a gateway refuses a request
 *      as UNAUTHENTICATED, as after authentication was switched on.
 */
import { type Clock, type ErrorCode, type Random, ServiceError, type Timer, toServiceError } from '@remora/base';
import {
  FINAL_REFUSAL,
  type GuardedLink,
  isFinalRefusal,
  type LinkGuard,
  type PipeLoggedIn,
  type PipeLogIn,
  pipeLogIn,
} from '@remora/protocol';
import { type Credentials, requireToken, type TokenOption } from './credentials.ts';
import { inTime } from './in-time.ts';

/** A token of the cluster, and for how long it may be used, on the monotonic clock. */
export interface KnownToken {
  readonly token: string;
  /** LI3. */
  readonly renewAtMs: number;
  readonly endsMs: number;
}

export interface LogInPorts {
  readonly clock: Clock;
  readonly random: Random;
  /** Called with each new token, for the background renewer. */
  readonly onToken?: ((token: KnownToken) => void) | undefined;
}

/** How long a gateway may take for one log-in: log-ins queue there. */
const LOG_IN_MS = 5_000;
const TOKEN_FUNCTION_MS = 10_000;
/** LI2. */
const SPARE_MS = 10_000;
/** LI3: where in a token's life it is renewed. */
const RENEW_FROM = 0.6;
const RENEW_SPREAD = 0.2;
/** LI3: pauses after renewals that failed. */
const RENEW_PAUSE_MIN_MS = 1_000;
/** LI5, and the longest pause of LI3. */
const PAUSE_MAX_MS = 30_000;
const REFUSED_PAUSE_MIN_MS = 1_000;
const DOUBLINGS_MAX = 5;
/** LI4: how many tokens one log-in tries. */
const TOKENS_MAX = 3;

/** Errors of a log-in that say that the credentials are wrong (LI5). */
const FINAL: ReadonlySet<ErrorCode> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT']);

export class LogIns {
  readonly #ports: LogInPorts;
  readonly #credentials: Credentials;
  /** LI2. */
  #known: KnownToken | undefined;
  /** LI1. Settles, and never rejects. */
  #obtaining: Promise<void> | undefined;
  /** LI5. */
  #refusal: ServiceError | undefined;
  #refusals = 0;
  #refusedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(ports: LogInPorts, credentials: Credentials) {
    this.#ports = ports;
    this.#credentials = credentials;
  }

  /** The guard of a new connection. */
  guard(link: GuardedLink): LinkGuard {
    return new LogInGuard(link, this, this.#ports);
  }

  /** Takes a token that another thread has obtained with the same credentials. */
  learn(token: KnownToken): void {
    if (this.#known === undefined || this.#known.endsMs < token.endsMs) this.#known = token;
  }

  /** LI4. */
  drop(refused: KnownToken | undefined): void {
    if (refused !== undefined && this.#known?.token === refused.token) this.#known = undefined;
  }

  /**
   * Logs a connection in; returns its token, or undefined while authentication is off (LI7). `fresh`: with a token that
   * need not be renewed yet.
   *
   * @throws ServiceError UNAUTHENTICATED, final (LI5); UNAVAILABLE (LI6)
   */
  async logIn(link: GuardedLink, fresh: boolean): Promise<KnownToken | undefined> {
    for (let refused = 0; refused < TOKENS_MAX; ) {
      const known = this.#usable(fresh);
      if (known !== undefined) {
        if (await this.#useToken(link, known)) return known;
        this.drop(known); // LI4
        refused++;
        continue;
      }
      this.#checkRefused(); // Only now: a valid token still serves after a renewal was refused.
      if (this.#obtaining === undefined) return await this.#obtain(link);
      await this.#obtaining; // LI1
    }
    throw unavailable(new ServiceError('UNAUTHENTICATED', 'the gateway refuses the tokens of other gateways')); // LI6
  }

  /** LI5. */
  #checkRefused(): void {
    if (this.#refusal !== undefined && this.#ports.clock.monotonicMs() < this.#refusedUntilMs) throw this.#refusal;
  }

  /** LI2, LI3. */
  #usable(fresh: boolean): KnownToken | undefined {
    const known = this.#known;
    if (known === undefined) return undefined;
    const usableUntilMs = fresh ? known.renewAtMs : known.endsMs - SPARE_MS;
    return this.#ports.clock.monotonicMs() < usableUntilMs ? known : undefined;
  }

  /** LI1. */
  #obtain(link: GuardedLink): Promise<KnownToken | undefined> {
    const obtained = this.#obtainBy(this.#credentials, link);
    this.#obtaining = obtained.then(
      () => this.#obtained(),
      () => this.#obtained(),
    );
    return obtained;
  }

  #obtained(): void {
    this.#obtaining = undefined;
  }

  #obtainBy(credentials: Credentials, link: GuardedLink): Promise<KnownToken | undefined> {
    switch (credentials.with) {
      case 'password':
        return this.#byPassword(link, credentials);
      case 'token':
        return this.#byToken(link, credentials.token);
      case 'tokensOfClient':
        return Promise.reject(new ServiceError('UNAVAILABLE', 'the client has no valid token at the moment'));
    }
  }

  async #byPassword(
    link: GuardedLink,
    { user, password }: { readonly user: string; readonly password: string },
  ): Promise<KnownToken | undefined> {
    const sentMs = this.#ports.clock.monotonicMs();
    try {
      const { token, lifeMs } = await send(link, { with: 'password', user, password });
      return this.#accepted(token, sentMs, lifeMs);
    } catch (error) {
      throw this.#failed(toServiceError(error), `the log-in as user '${user}' was refused`);
    }
  }

  async #byToken(link: GuardedLink, given: TokenOption): Promise<KnownToken | undefined> {
    const isFunction = typeof given === 'function';
    const token = isFunction ? await this.#call(given) : given;
    const askedMs = this.#ports.clock.monotonicMs();
    try {
      const { token: accepted, lifeMs } = await send(link, { with: 'token', token });
      return this.#accepted(accepted, askedMs, lifeMs);
    } catch (error) {
      const advice = isFunction ? '' : '; give a function that returns fresh tokens, or user and password';
      throw this.#failed(toServiceError(error), `the token was refused${advice}`);
    }
  }

  /** LI6: an error of the program's own function is no refusal of the cluster. */
  async #call(token: Exclude<TokenOption, string>): Promise<string> {
    const { clock } = this.#ports;
    const reason = (): ServiceError =>
      new ServiceError('DEADLINE_EXCEEDED', `the function token returned none within ${TOKEN_FUNCTION_MS / 1_000} s`);
    try {
      return requireToken(await inTime(Promise.resolve().then(token), { clock, ms: TOKEN_FUNCTION_MS, reason }));
    } catch (error) {
      throw unavailable(toServiceError(error));
    }
  }

  #accepted(token: string, sentMs: number, lifeMs: number): KnownToken | undefined {
    this.#refusal = undefined;
    this.#refusals = 0;
    if (token === '') return undefined; // LI7
    const part = RENEW_FROM + (RENEW_SPREAD * this.#ports.random.int(1_000)) / 1_000;
    const known = { token, renewAtMs: sentMs + part * lifeMs, endsMs: sentMs + lifeMs };
    this.#known = known;
    this.#ports.onToken?.(known);
    return known;
  }

  /** Whether the gateway accepts it. @throws ServiceError UNAVAILABLE (LI6) */
  async #useToken(link: GuardedLink, { token }: KnownToken): Promise<boolean> {
    try {
      await send(link, { with: 'token', token });
      return true;
    } catch (error) {
      const { code } = toServiceError(error);
      if (code === 'UNAUTHENTICATED') return false;
      throw unavailable(toServiceError(error));
    }
  }

  #failed(error: ServiceError, what: string): ServiceError {
    if (!FINAL.has(error.code)) return unavailable(error); // LI6
    const message = `${what}: ${error.message}`;
    const refusal = new ServiceError('UNAUTHENTICATED', message, {
      details: { ...error.details, [FINAL_REFUSAL]: true },
      cause: error,
    });
    const pauseMs = Math.min(PAUSE_MAX_MS, REFUSED_PAUSE_MIN_MS * 2 ** Math.min(this.#refusals++, DOUBLINGS_MAX));
    this.#refusal = refusal;
    this.#refusedUntilMs = this.#ports.clock.monotonicMs() + pauseMs;
    return refusal;
  }
}

/** The guard of one connection. */
class LogInGuard implements LinkGuard {
  readonly #link: GuardedLink;
  readonly #logIns: LogIns;
  readonly #ports: LogInPorts;
  #token: KnownToken | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #over = false;

  constructor(link: GuardedLink, logIns: LogIns, ports: LogInPorts) {
    this.#link = link;
    this.#logIns = logIns;
    this.#ports = ports;
  }

  opened(): void {
    this.#enter();
  }

  /** LI4, LI7. */
  refused(): void {
    this.#logIns.drop(this.#token);
    this.#enter();
  }

  closed(): void {
    this.#over = true;
    this.#timer?.cancel();
  }

  #enter(): void {
    this.#timer?.cancel();
    this.#logIns.logIn(this.#link, false).then(
      (token) => {
        if (this.#over) return;
        this.#loggedIn(token);
        this.#link.admit();
      },
      (error: unknown) => {
        if (!this.#over) this.#link.refuse(toServiceError(error));
      },
    );
  }

  #loggedIn(token: KnownToken | undefined): void {
    this.#token = token;
    this.#failures = 0;
    if (token !== undefined) this.#renewIn(token.renewAtMs - this.#ports.clock.monotonicMs());
  }

  #renewIn(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#ports.clock.setTimer(Math.max(1, delayMs), () => this.#renew());
  }

  /** LI3. */
  #renew(): void {
    const before = this.#token;
    this.#logIns.logIn(this.#link, true).then(
      (token) => {
        if (!this.#over && this.#token === before) this.#loggedIn(token);
      },
      () => {
        if (this.#over || this.#token !== before) return;
        const doublings = Math.min(this.#failures++, DOUBLINGS_MAX);
        this.#renewIn(Math.min(PAUSE_MAX_MS, RENEW_PAUSE_MIN_MS * 2 ** doublings));
      },
    );
  }
}

function send(link: GuardedLink, request: PipeLogIn): Promise<PipeLoggedIn> {
  return new Promise((resolve, reject) => {
    link.call(pipeLogIn, request, { timeoutMs: LOG_IN_MS }, (error, reply) => {
      if (reply === undefined) reject(error ?? new ServiceError('INTERNAL', 'neither an answer nor an error'));
      else resolve(reply);
    });
  });
}

/** LI6. */
function unavailable(cause: ServiceError): ServiceError {
  if (cause.code === 'UNAVAILABLE' && !isFinalRefusal(cause)) return cause;
  return new ServiceError('UNAVAILABLE', `the log-in failed: ${cause.message}`, { cause });
}
