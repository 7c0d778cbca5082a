/**
 * Finds out who is asking.
 *
 * AU1. A token counts before the certificate of the connection. A token that is not valid is refused, even if there is
 *      a certificate: its client believes to be somebody else.
 * AU2. While authentication is off, credentials are optional. Right ones name the caller, so that sessions have their
 *      owners already when it is switched on; wrong ones are not refused, and their caller is nobody. etcd's log-in is
 *      refused.
 * AU3. A log-in gives a token for the user as it was when the password was verified: if the password changes in
 *      between, the token is not valid.
 * AU4. Verified tokens are remembered, at most `VERIFIED_MAX`, so that a call costs a look-up instead of a signature.
 *      Whether one has expired, and what its user is now, is looked at each time.
 * AU5. A password that was verified is remembered for as long as a token lives, at most `PASSWORDS_MAX`, as a hash
 *      under a key that only this process has.
 * AU6. Who is asking follows from what the node knew last, so that root can log in when the masters are lost. What a
 *      caller may do then, decisions know (known-auth.ts KA2, KA5). A wrong password is refused as UNAUTHENTICATED only
 *      while what the node knows is certain: a node that is cut off from the masters may not know the latest password.
 * AU7. While authentication is on, each log-in, and each token that is refused, is recorded once: here, whichever door
 *      it came through. A name that is longer than any user's is cut. A renewal is no log-in, and is not recorded.
 */
import { createHmac } from 'node:crypto';
import { type Bytes, type Clock, type Logger, type Random, RareLog, ServiceError, toServiceError } from '@remora/base';
import type { Door } from '@remora/protocol';
import { type Audit, NO_AUDIT } from './audit/audit.ts';
import type { LogIn, PasswordHasher } from './credentials/password-hasher.ts';
import { checkToken, nextToken, readToken, signToken, TOKEN_LIFE_MS, type Token } from './credentials/tokens.ts';
import type { KnownAuth } from './known-auth.ts';
import type { Authority } from './permissions/authority.ts';
import type { Principal } from './principal.ts';
import { AUTH_LIMITS } from './state/auth-limits.ts';

export interface Credentials {
  readonly token: string | undefined;
  /** The name of the verified certificate of the connection. */
  readonly certificateName: string | undefined;
  readonly door: Door;
  /** The address of the caller, without its port. */
  readonly address: string | undefined;
}

/** What doors need to know who is asking. */
export interface Identification {
  /** Whether authentication is off, so that nobody needs to be identified. */
  readonly isOff: boolean;
  /** @throws ServiceError `UNAUTHENTICATED` for a token that is not valid */
  identify(credentials: Credentials): Principal | undefined;
  /**
   * For callers that send their password with each request (AU5).
   *
   * @throws ServiceError as a log-in
   */
  identifyByPassword(logIn: LogIn): Promise<Principal | undefined>;
  /**
   * Returns a token for a user; with `isRenewable`, one that may be renewed (tokens.ts T5).
   *
   * @throws ServiceError `AUTH_REFUSED` while authentication is off; `UNAUTHENTICATED`; `RESOURCE_EXHAUSTED`;
   *   `UNAVAILABLE` if this node cannot tell (AU6)
   */
  logIn(logIn: LogIn, isRenewable?: boolean): Promise<string>;
  /** Returns a token for a user, also while authentication is off; undefined if the log-in is wrong (AU2). */
  logInIfRight(logIn: LogIn): Promise<string | undefined>;
  /**
   * Returns the token that follows this one. Undefined if it may not be renewed, if it is too early, if its log-in is
   * over, or if it is not valid (tokens.ts T5).
   */
  renewed(token: string): string | undefined;
}

export interface AuthenticatorDeps {
  readonly known: KnownAuth;
  readonly hasher: PasswordHasher;
  readonly clock: Clock;
  readonly random: Pick<Random, 'bytes'>;
  readonly audit?: Audit | undefined;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Why callers could not prove who they are. */
export const REFUSED_LOG_INS = ['password', 'token', 'busy', 'off'] as const;
export type RefusedLogIns = Readonly<Record<(typeof REFUSED_LOG_INS)[number], number>>;

/** AU5. */
const PASSWORDS_MAX = 1_000;
const KEY_BYTES = 32;

/** AU4. */
const VERIFIED_MAX = 10_000;

export class Authenticator implements Identification {
  readonly #known: KnownAuth;
  readonly #hasher: PasswordHasher;
  readonly #clock: Clock;
  readonly #verified = new Map<string, Token>();
  /** The key with which they were verified. */
  #key: Bytes | undefined;

  /** AU5. Tokens by hashes of users and passwords. */
  readonly #passwords = new Map<string, string>();
  readonly #passwordKey: Bytes;

  readonly #audit: Audit;
  readonly #log: RareLog;
  readonly #refused = { password: 0, token: 0, busy: 0, off: 0 };

  constructor({ known, hasher, clock, random, logger, audit = NO_AUDIT }: AuthenticatorDeps) {
    this.#audit = audit;
    this.#log = new RareLog(clock, logger);
    this.#passwordKey = random.bytes(KEY_BYTES);
    this.#known = known;
    this.#hasher = hasher;
    this.#clock = clock;
  }

  get isOff(): boolean {
    return this.#known.isOff;
  }

  /** Since the node started. */
  get refused(): RefusedLogIns {
    return this.#refused;
  }

  identify(credentials: Credentials): Principal | undefined {
    const { token, certificateName, door, address } = credentials;
    if (token === undefined && certificateName === undefined) return this.#nobody(door, address);
    if (!this.#known.isOff) return this.#identified(credentials);
    return this.#unlessRefused(() => this.#identified(credentials)) ?? this.#nobody(door, address); // AU2
  }

  #identified({ token, certificateName, door, address }: Credentials): Principal | undefined {
    if (token !== undefined) return this.#byToken(token, door, address); // AU1
    return { name: certificateName, method: 'certificate', door, address };
  }

  /** The audit log shows from where nobody asks. */
  #nobody(door: Door, address: string | undefined): Principal | undefined {
    return this.#audit.isOn ? { name: undefined, method: 'none', door, address } : undefined;
  }

  #unlessRefused(identified: () => Principal | undefined): Principal | undefined {
    try {
      return identified();
    } catch (error) {
      if (error instanceof ServiceError) return undefined;
      throw error;
    }
  }

  /** AU7. */
  #byToken(text: string, door: Door, address: string | undefined): Principal {
    try {
      return { ...this.#ofToken(text), door, address };
    } catch (error) {
      const isRecorded = !this.#known.isOff;
      if (isRecorded) this.#refuse('token', { name: undefined, method: 'token', door, address }, toServiceError(error));
      throw error;
    }
  }

  /** AU7. The node's own log has the first of a minute, for each reason. */
  #refuse(why: (typeof REFUSED_LOG_INS)[number], principal: Principal, error: ServiceError): void {
    this.#refused[why]++;
    const { name: user, door, address } = principal;
    this.#log.warn(why, { user, door, address, reason: error.message }, 'refused a log-in');
    const action = why === 'token' ? 'useToken' : 'logIn';
    this.#audit.record({ action, decision: 'failed', principal, reason: error.message });
  }

  #ofToken(text: string): Principal {
    const token = this.#tokenOf(text);
    checkToken(token, this.#lastKnown().user(token.user), this.#clock.wallMs());
    return { name: token.user, method: 'token', version: token.version };
  }

  async identifyByPassword(logIn: LogIn): Promise<Principal | undefined> {
    const { door, address } = logIn;
    const hash = createHmac('sha256', this.#passwordKey).update(`${logIn.user}\0${logIn.password}`).digest('base64');
    const known = this.#passwords.get(hash);
    const remembered = known === undefined ? undefined : this.#unlessRefused(() => this.#ofToken(known));
    if (remembered !== undefined) return { ...remembered, method: 'password', door, address };
    const token = this.#known.isOff ? await this.logInIfRight(logIn) : await this.logIn(logIn); // AU2
    if (token === undefined) return this.#nobody(door, address);
    if (this.#passwords.size >= PASSWORDS_MAX) this.#passwords.clear();
    this.#passwords.set(hash, token);
    return { ...this.#ofToken(token), method: 'password', door, address };
  }

  /** AU6. @throws ServiceError `UNAVAILABLE` if the node has never heard from masters. */
  #lastKnown(): Authority {
    return this.#known.lastKnown ?? this.#known.authority;
  }

  /** AU4. */
  #tokenOf(text: string): Token {
    const { tokenKey } = this.#known.image;
    if (this.#key !== tokenKey || this.#verified.size >= VERIFIED_MAX) this.#verified.clear();
    this.#key = tokenKey;
    const known = this.#verified.get(text);
    if (known !== undefined) return known;
    const token = readToken(text, tokenKey);
    this.#verified.set(text, token);
    return token;
  }

  /** Hashes a new password. @throws ServiceError `INVALID_ARGUMENT`, `RESOURCE_EXHAUSTED` */
  hashOf(password: string): Promise<string> {
    return this.#hasher.hash(password);
  }

  /** AU7. */
  async logIn(logIn: LogIn, isRenewable = false): Promise<string> {
    const { door, address } = logIn;
    const name = logIn.user.slice(0, AUTH_LIMITS.nameBytesMax);
    const principal: Principal = { name, method: 'password', door, address };
    try {
      if (this.#known.isOff) throw isOff(); // AU2
      const token = await this.#tokenFor(logIn, isRenewable);
      this.#audit.record({ action: 'logIn', decision: 'allowed', principal });
      return token;
    } catch (cause) {
      const error = toServiceError(cause);
      const why = error.code === 'UNAUTHENTICATED' ? 'password' : error.code === 'AUTH_REFUSED' ? 'off' : 'busy';
      this.#refuse(why, principal, error);
      throw error;
    }
  }

  async logInIfRight(logIn: LogIn): Promise<string | undefined> {
    if (this.#known.lastKnown?.user(logIn.user) === undefined) return undefined;
    try {
      return await this.#tokenFor(logIn);
    } catch (error) {
      if (error instanceof ServiceError) return undefined;
      throw error;
    }
  }

  renewed(text: string): string | undefined {
    if (this.#unlessRefused(() => this.#ofToken(text)) === undefined) return undefined;
    const next = nextToken(this.#tokenOf(text), this.#clock.wallMs());
    return next && signToken(next, this.#known.image.tokenKey);
  }

  /** AU3. */
  async #tokenFor(logIn: LogIn, isRenewable = false): Promise<string> {
    const user = this.#lastKnown().user(logIn.user);
    if (!(await this.#hasher.verify(logIn, user?.passwordHash)) || user === undefined) {
      void this.#known.authority; // AU6: throws `UNAVAILABLE`.
      throw new ServiceError('UNAUTHENTICATED', 'the user does not exist, or the password is wrong', {
        details: { etcd: 'authFailed' },
      });
    }
    const { name, version } = user;
    const sinceMs = this.#clock.wallMs();
    const token = { user: name, version, endsMs: sinceMs + TOKEN_LIFE_MS, ...(isRenewable && { sinceMs }) };
    return signToken(token, this.#known.image.tokenKey);
  }
}

function isOff(): ServiceError {
  return new ServiceError('AUTH_REFUSED', 'authentication is off, so nobody can log in', {
    details: { etcd: 'authNotEnabled' },
  });
}
