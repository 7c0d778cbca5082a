/**
 * Tokens that gateways give to users who have logged in.
 *
 * T1. A token is what it says and an HMAC-SHA-256 over that, with a key that all nodes of the cluster know and nobody
 *     else. Any node verifies a token that any other has given, also after restarts.
 * T2. A token names the version of its user: it ends when the password changes or the user is deleted, and goes on when
 *     anything else changes.
 * T3. A token ends after `TOKEN_LIFE_MS`. Clients get another one by their password.
 * T4. Of a forged token nothing is looked at but its signature, which is compared in constant time.
 * T5. A token of a browser is renewed while it is used, without the password, until `LOG_IN_LIFE_MS` after the log-in
 *      (decision 106). It says when that was. Other tokens do not say so, and are never renewed: who has seen one
 *      cannot make it last. Nodes of earlier releases pass over this field.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Bytes, ServiceError } from '@remora/base';
import type { User } from '@remora/protocol';

/** T3. */
export const TOKEN_LIFE_MS = 5 * 60_000;
/** T5. A working day: whoever has taken a cookie does not have it for good. */
export const LOG_IN_LIFE_MS = 12 * 3_600_000;
/** Longer ones are refused before they are looked at: a name has at most 1,024 bytes. */
export const TOKEN_CHARACTERS_MAX = 2_048;
const VERSION = 'r1';

export interface Token {
  readonly user: string;
  /** The version of the user (T2). */
  readonly version: number;
  /** On the wall clock. */
  readonly endsMs: number;
  /** When the password was verified, on the wall clock; only in a token that may be renewed (T5). */
  readonly sinceMs?: number;
}

/** Returns `r1.<contents>.<signature>`, in base64url. */
export function signToken({ user, version, endsMs, sinceMs }: Token, key: Bytes): string {
  const parts = sinceMs === undefined ? [user, version, endsMs] : [user, version, endsMs, sinceMs];
  const contents = Buffer.from(JSON.stringify(parts)).toString('base64url');
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
  const [user, userVersion, endsMs, sinceMs] = JSON.parse(Buffer.from(contents, 'base64url').toString()) as [
    string,
    number,
    number,
    number?,
  ];
  return { user, version: userVersion, endsMs, ...(sinceMs === undefined ? {} : { sinceMs }) };
}

/**
 * Returns the token that follows a valid one. Undefined if it may not be renewed, while more than half of its life is
 * left, and when it reaches the end of its log-in (T5).
 */
export function nextToken({ user, version, endsMs, sinceMs }: Token, nowMs: number): Token | undefined {
  if (sinceMs === undefined || endsMs - nowMs > TOKEN_LIFE_MS / 2) return undefined;
  const nextMs = Math.min(nowMs + TOKEN_LIFE_MS, sinceMs + LOG_IN_LIFE_MS);
  return nextMs <= endsMs ? undefined : { user, version, endsMs: nextMs, sinceMs };
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
