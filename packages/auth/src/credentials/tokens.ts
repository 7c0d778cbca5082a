/**
 * Tokens that gateways give to users who have logged in.
 *
 * T1. A token is what it says and an HMAC-SHA-256 over that, with a key that all nodes of the cluster know and nobody
 *     else. Any node verifies a token that any other has given, also after restarts.
 * T2. A token names the version of its user: it ends when the password changes or the user is deleted, and goes on when
 *     anything else changes.
 * T3. A token ends after `TOKEN_LIFE_MS`. Clients get another one by their password.
 * T4. Of a forged token nothing is looked at but its signature, which is compared in constant time.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Bytes, ServiceError } from '@remora/base';
import type { User } from '@remora/protocol';

/** T3. */
export const TOKEN_LIFE_MS = 5 * 60_000;
/** Longer ones are refused before they are looked at: a name has at most 1,024 bytes. */
export const TOKEN_CHARACTERS_MAX = 2_048;
const VERSION = 'r1';

export interface Token {
  readonly user: string;
  /** The version of the user (T2). */
  readonly version: number;
  /** On the wall clock. */
  readonly endsMs: number;
}

/** Returns `r1.<contents>.<signature>`, in base64url. */
export function signToken({ user, version, endsMs }: Token, key: Bytes): string {
  const contents = Buffer.from(JSON.stringify([user, version, endsMs])).toString('base64url');
  const signed = `${VERSION}.${contents}`;
  return `${signed}.${signatureOf(signed, key).toString('base64url')}`;
}

/** @throws ServiceError `UNAUTHENTICATED` unless it was signed with the key (T4). */
export function readToken(text: string, key: Bytes): Token {
  const at = text.lastIndexOf('.');
  if (text.length > TOKEN_CHARACTERS_MAX || at < 0 || key.length === 0)
    throw invalidToken('it is none of this cluster');
  const signed = text.slice(0, at);
  const given = Buffer.from(text.slice(at + 1), 'base64url');
  const expected = signatureOf(signed, key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw invalidToken('it is none of this cluster');
  }
  const [version, contents = ''] = signed.split('.');
  if (version !== VERSION) throw invalidToken('another version of this program has given it');
  const [user, userVersion, endsMs] = JSON.parse(Buffer.from(contents, 'base64url').toString()) as [
    string,
    number,
    number,
  ];
  return { user, version: userVersion, endsMs };
}

/**
 * Checks what a signature does not say (T2, T3).
 *
 * @throws ServiceError `UNAUTHENTICATED`
 */
export function checkToken({ version, endsMs }: Token, user: User | undefined, nowMs: number): void {
  if (nowMs >= endsMs) throw invalidToken('it has expired');
  if (user === undefined) throw invalidToken('its user does not exist any more');
  if (user.version !== version) throw invalidToken('the password of its user was changed');
}

function invalidToken(why: string): ServiceError {
  return new ServiceError('UNAUTHENTICATED', `invalid token: ${why}; log in again`, {
    details: { etcd: 'invalidAuthToken' },
  });
}

function signatureOf(signed: string, key: Bytes): Buffer {
  return createHmac('sha256', key).update(signed).digest();
}
