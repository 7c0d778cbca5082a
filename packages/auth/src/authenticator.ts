/**
 * Finds out who is asking.
 *
 * AU1. A token counts before the certificate of the connection. A token that is not valid is refused, even if there is
 *      a certificate: its client believes to be somebody else.
 * AU2. While authentication is off, nothing is checked, and a caller that sends a token is nobody.
 * AU3. A log-in gives a token for the user as it was when the password was verified: if the password changes in
 *      between, the token is not valid.
 * AU4. Verified tokens are remembered, at most `VERIFIED_MAX`, so that a call costs a look-up instead of a signature.
 *      Whether one has expired, and what its user is now, is looked at each time.
 * AU5. A password that was verified is remembered for as long as a token lives, at most `PASSWORDS_MAX`, as a hash
 *      under a key that only this process has.
 * AU6. Who is asking follows from what the node knew last, so that root can log in when the masters are lost. What a
 *      caller may do then, decisions know (known-auth.ts KA2, KA5). A wrong password is refused as UNAUTHENTICATED only
 *      while what the node knows is certain: a node that is cut off from the masters may not know the latest password.
 */
import { createHmac } from 'node:crypto';
import { type Bytes, type Clock, type Random, ServiceError } from '@remora/base';
import type { LogIn, PasswordHasher } from './credentials/password-hasher.ts';
import { checkToken, readToken, signToken, TOKEN_LIFE_MS, type Token } from './credentials/tokens.ts';
import type { KnownAuth } from './known-auth.ts';
import type { Authority } from './permissions/authority.ts';
import type { Principal } from './principal.ts';

export interface Credentials {
  readonly token: string | undefined;
  /** The name of the verified certificate of the connection. */
  readonly certificateName: string | undefined;
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
   * Returns a token for a user.
   *
   * @throws ServiceError `AUTH_REFUSED` while authentication is off; `UNAUTHENTICATED`; `RESOURCE_EXHAUSTED`;
   *   `UNAVAILABLE` if this node cannot tell (AU6)
   */
  logIn(logIn: LogIn): Promise<string>;
}

export interface AuthenticatorDeps {
  readonly known: KnownAuth;
  readonly hasher: PasswordHasher;
  readonly clock: Clock;
  readonly random: Pick<Random, 'bytes'>;
}

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

  constructor({ known, hasher, clock, random }: AuthenticatorDeps) {
    this.#passwordKey = random.bytes(KEY_BYTES);
    this.#known = known;
    this.#hasher = hasher;
    this.#clock = clock;
  }

  get isOff(): boolean {
    return this.#known.isOff;
  }

  identify({ token, certificateName }: Credentials): Principal | undefined {
    if (this.#known.isOff) return undefined; // AU2
    if (token !== undefined) return this.#ofToken(token); // AU1
    return certificateName === undefined ? undefined : { name: certificateName, method: 'certificate' };
  }

  #ofToken(text: string): Principal {
    const token = this.#tokenOf(text);
    checkToken(token, this.#lastKnown().user(token.user), this.#clock.wallMs());
    return { name: token.user, method: 'token' };
  }

  async identifyByPassword(logIn: LogIn): Promise<Principal | undefined> {
    if (this.#known.isOff) return undefined; // AU2
    const hash = createHmac('sha256', this.#passwordKey).update(`${logIn.user}\0${logIn.password}`).digest('base64');
    const principal: Principal = { name: logIn.user, method: 'password' };
    const token = this.#passwords.get(hash);
    if (token !== undefined && this.#isValid(token)) return principal;
    if (this.#passwords.size >= PASSWORDS_MAX) this.#passwords.clear();
    this.#passwords.set(hash, await this.logIn(logIn));
    return principal;
  }

  /** AU6. @throws ServiceError `UNAVAILABLE` if the node has never heard from masters. */
  #lastKnown(): Authority {
    return this.#known.lastKnown ?? this.#known.authority;
  }

  #isValid(token: string): boolean {
    try {
      this.#ofToken(token);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'UNAUTHENTICATED') return false;
      throw error;
    }
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

  /** AU3. */
  async logIn(logIn: LogIn): Promise<string> {
    if (this.#known.isOff) {
      throw new ServiceError('AUTH_REFUSED', 'authentication is off, so nobody can log in', {
        details: { etcd: 'authNotEnabled' },
      });
    }
    const user = this.#lastKnown().user(logIn.user);
    if (!(await this.#hasher.verify(logIn, user?.passwordHash)) || user === undefined) {
      void this.#known.authority; // AU6: throws `UNAVAILABLE`.
      throw new ServiceError('UNAUTHENTICATED', 'the user does not exist, or the password is wrong', {
        details: { etcd: 'authFailed' },
      });
    }
    const { name, version } = user;
    return signToken({ user: name, version, endsMs: this.#clock.wallMs() + TOKEN_LIFE_MS }, this.#known.image.tokenKey);
  }
}
