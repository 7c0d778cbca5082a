/**
 * The credentials of a client: options, their checks, and how they become log-ins.
 *
 * CR1. A password or token never appears in a message of an error, in a log or in `inspect` of a client: no check shows
 *      the value that it refuses, and what keeps one keeps it in a private field.
 */
import { ServiceError } from '@remora/base';
import type { ArgumentCheck, ChecksOf } from '../options/options.ts';

export type TokenOption = string | (() => string | Promise<string>);

/** The options by which a client says who it is. */
export interface CredentialOptions {
  /** The user as which the client logs in. Needs `password`. */
  readonly user?: string | undefined;
  /** The password of `user`. */
  readonly password?: string | undefined;
  /**
   * A token in place of user and password, or a function that returns one. The function is called at the first
   * connection, before a token of the cluster's own kind would end (after about four minutes), and when a gateway
   * refuses the last token. It may be asynchronous, and has 10 s. A token that is given as text ends after five
   * minutes, so it suits short programs only.
   */
  readonly token?: TokenOption | undefined;
  /**
   * Also send credentials in plain text to addresses other than loopback, where everybody on the way can read them.
   * Only for networks that encrypt by themselves. Default false: such endpoints are refused.
   */
  readonly allowPlainText?: boolean | undefined;
}

/** Who a client is. */
export type Credentials =
  | { readonly with: 'password'; readonly user: string; readonly password: string }
  | { readonly with: 'token'; readonly token: TokenOption }
  /** Only of the background renewer: it uses the tokens that its client obtains. */
  | { readonly with: 'tokensOfClient' };

/** As the cluster limits names and passwords of users, and tokens. */
const USER_BYTES_MAX = 1_024;
const PASSWORD_BYTES_MAX = 1_024;
const TOKEN_CHARACTERS_MAX = 2_048;

const user: ArgumentCheck = (value, name) => requireSecret(value, name, USER_BYTES_MAX);
const password: ArgumentCheck = (value, name) => requireSecret(value, name, PASSWORD_BYTES_MAX);
const token: ArgumentCheck = (value, name) => {
  if (typeof value !== 'function') requireSecret(value, name, TOKEN_CHARACTERS_MAX);
};
const allowPlainText: ArgumentCheck = (value, name) => {
  if (typeof value !== 'boolean') throw new ServiceError('INVALID_ARGUMENT', `${name}: expected true or false`);
};

export const CREDENTIAL_CHECKS: ChecksOf<CredentialOptions> = { user, password, token, allowPlainText };

/**
 * Reads the credentials of a client; undefined without any.
 *
 * @throws ServiceError INVALID_ARGUMENT for options that are out of their bounds, or that contradict one another.
 */
export function credentialsOf(options: CredentialOptions): Credentials | undefined {
  for (const [name, check] of Object.entries(CREDENTIAL_CHECKS)) {
    const value = options[name as keyof CredentialOptions];
    if (value !== undefined) check(value, name);
  }
  const { user, password, token } = options;
  if (token !== undefined) {
    if (user === undefined && password === undefined) return { with: 'token', token };
    throw invalid('give either token, or user and password, but not both');
  }
  if (user === undefined && password === undefined) return undefined;
  if (user === undefined) throw invalid('password is given without user');
  if (password === undefined) throw invalid('user is given without password; give a password, or a token');
  return { with: 'password', user, password };
}

/** CR1. @throws ServiceError INVALID_ARGUMENT for anything but such a token. */
export function requireToken(value: unknown): string {
  requireSecret(value, 'the function token returned an invalid token', TOKEN_CHARACTERS_MAX);
  return value as string;
}

/** CR1. */
function requireSecret(value: unknown, name: string, bytesMax: number): void {
  if (typeof value !== 'string') throw invalid(`${name}: expected text, got ${value === null ? 'null' : typeof value}`);
  if (value === '') throw invalid(`${name}: must not be empty`);
  if (value.includes('\0')) throw invalid(`${name}: must not contain a NUL character`);
  if (!isWellFormed(value)) throw invalid(`${name}: must be valid Unicode; it has half of a surrogate pair`);
  const bytes = Buffer.byteLength(value);
  if (bytes > bytesMax) throw invalid(`${name}: at most ${bytesMax} bytes are allowed; it has ${bytes}`);
}

/** `String.isWellFormed` exists from Node 20 on, but not in the library that this is compiled against. */
function isWellFormed(text: string): boolean {
  return Buffer.from(text).toString() === text;
}

function invalid(problem: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `credentials: ${problem}`);
}
