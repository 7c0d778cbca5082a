/**
 * The log-in of a client for administration: a token, sent with each call as etcd's clients send theirs.
 *
 * AL1. One log-in at a time: calls that begin meanwhile use its token. A token is used until a node refuses it.
 * AL2. Refused credentials are final, and are not tried again for a pause that doubles with each refusal.
 * AL3. While authentication is off, calls carry no token.
 */
import { ServiceError } from '@remora/base';
import { type Credentials, requireToken } from '../transport/credentials.ts';

/** Asks a node for a token; undefined while authentication is off. */
export type Authenticate = (logIn: { readonly name: string; readonly password: string }) => Promise<string | undefined>;

const REFUSED_PAUSE_MIN_MS = 1_000;
const REFUSED_PAUSE_MAX_MS = 30_000;
const DOUBLINGS_MAX = 5;

export class AdminLogIn {
  readonly #credentials: Credentials;
  #known: { readonly token: string | undefined } | undefined;
  #obtaining: Promise<string | undefined> | undefined;
  /** AL2. */
  #refusal: ServiceError | undefined;
  #refusals = 0;
  #refusedUntilMs = 0;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /** AL1. @throws ServiceError the refusal (AL2), and whatever `authenticate` throws */
  token(authenticate: Authenticate): Promise<string | undefined> {
    if (this.#known !== undefined) return Promise.resolve(this.#known.token);
    if (this.#refusal !== undefined && performance.now() < this.#refusedUntilMs) return Promise.reject(this.#refusal);
    this.#obtaining ??= this.#obtain(authenticate)
      .then((token) => {
        this.#known = { token };
        this.#refusals = 0;
        return token;
      })
      .finally(() => {
        this.#obtaining = undefined;
      });
    return this.#obtaining;
  }

  /** A node has refused this token, or a call without one. Returns whether another one may be accepted. */
  refused(token: string | undefined): boolean {
    if (this.#known?.token === token) this.#known = undefined;
    return this.#credentials.with !== 'token' || typeof this.#credentials.token === 'function';
  }

  /** AL2. */
  remember(refusal: ServiceError): void {
    const pauseMs = REFUSED_PAUSE_MIN_MS * 2 ** Math.min(this.#refusals++, DOUBLINGS_MAX);
    this.#refusal = refusal;
    this.#refusedUntilMs = performance.now() + Math.min(REFUSED_PAUSE_MAX_MS, pauseMs);
  }

  async #obtain(authenticate: Authenticate): Promise<string | undefined> {
    const credentials = this.#credentials;
    switch (credentials.with) {
      case 'password':
        return authenticate({ name: credentials.user, password: credentials.password });
      case 'token':
        return typeof credentials.token === 'string' ? credentials.token : requireToken(await credentials.token());
      case 'tokensOfClient':
        throw new ServiceError('INVALID_ARGUMENT', 'a client for administration needs credentials of its own');
    }
  }
}
