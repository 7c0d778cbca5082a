/**
 * Hashes of passwords, in the PHC string format: `$scrypt$ln=15,r=8,p=1$<salt>$<hash>`, in base64 without padding.
 *
 * P1. A hash holds its own parameters, so passwords hashed with weaker ones still log in after the defaults have
 *     risen.
 * P2. What a hash may cost is bounded: one that was put together by somebody else cannot hold a thread for long.
 * P3. A password has no NUL: scrypt takes trailing ones for nothing, as the key of an HMAC is padded with them (RFC
 *     2104).
 *
 * Both functions hold their thread for about 100 ms and 32 MiB: they are for a worker (password-hasher.ts).
 */
import { scryptSync, timingSafeEqual } from 'node:crypto';
import { type Bytes, ServiceError } from '@remora/base';

/** OWASP's "Password Storage Cheat Sheet" has N = 2^15, r = 8, p = 3 or 2^17, 8, 1. */
const DEFAULTS = { ln: 15, r: 8, p: 3 };
/** P2. */
const MOST = { ln: 17, r: 8, p: 4 };
const HASH_BYTES = 32;
export const SALT_BYTES = 16;
/** Longer ones are refused: nobody types them, and they cost time. */
export const PASSWORD_BYTES_MAX = 1_024;

const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** @throws ServiceError `INVALID_ARGUMENT` for a password that nobody could log in with. */
export function hashPassword(password: string, salt: Bytes, cost = DEFAULTS): string {
  checkPassword(password);
  const { ln, r, p } = cost;
  return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(derived(password, salt, cost))}`;
}

/** False for every password if the hash is not one of ours. */
export function isPassword(password: string, hash: string): boolean {
  const [, ln, r, p, salt, expected] = PHC.exec(hash) ?? [];
  if (salt === undefined || expected === undefined) return false;
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  if (cost.ln < 1 || cost.ln > MOST.ln || cost.r < 1 || cost.r > MOST.r || cost.p < 1 || cost.p > MOST.p) return false;
  if (isTooLong(password) || password.includes('\0')) return false; // P3
  const wanted = Buffer.from(expected, 'base64');
  const got = derived(password, Buffer.from(salt, 'base64'), cost);
  return wanted.length === got.length && timingSafeEqual(wanted, got);
}

/** Whether nobody can have this password. */
export function isTooLong(password: string): boolean {
  return Buffer.byteLength(password) > PASSWORD_BYTES_MAX;
}

/** @throws ServiceError `INVALID_ARGUMENT` */
export function checkPassword(password: string): void {
  const bytes = Buffer.byteLength(password);
  if (bytes === 0) throw new ServiceError('INVALID_ARGUMENT', 'a password must not be empty');
  if (password.includes('\0'))
    throw new ServiceError('INVALID_ARGUMENT', 'a password must not contain a NUL character');
  if (bytes > PASSWORD_BYTES_MAX) {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `a password has at most ${PASSWORD_BYTES_MAX} bytes; this one has ${bytes}`,
    );
  }
}

function derived(password: string, salt: Bytes, { ln, r, p }: typeof DEFAULTS): Buffer {
  const N = 2 ** ln;
  return scryptSync(password.normalize('NFC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r });
}

function unpadded(bytes: Bytes): string {
  return Buffer.from(bytes).toString('base64').replaceAll('=', '');
}
