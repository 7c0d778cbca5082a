/**
 * The cookie that holds the token of a browser's log-in (docs/decisions/0106).
 *
 * SC1. Scripts cannot read it (`HttpOnly`), other sites do not send it (`SameSite=Strict`), and it goes over TLS only
 *      if it came over TLS (`Secure`).
 * SC2. It is used for `/v1/` only, and only if there is no `Authorization` header.
 * SC3. A request that may change something needs the header `x-remora-csrf` beside it. A page of another site cannot
 *      set that header: the browser would ask this server first, which allows no other site. `Sec-Fetch-Site`, `Origin`
 *      and `SameSite` refuse such requests too (request-guard.ts RG3, RG4), where a browser knows them.
 */
import { ServiceError } from '@remora/base';
import type { HttpDetails } from '../statuses.ts';

const COOKIE = 'remora_session';
export const CSRF_HEADER = 'x-remora-csrf';
const CSRF_VALUE = '1';
/** Methods that change nothing. */
const SAFE: readonly string[] = ['GET', 'HEAD'];

interface CookieTerms {
  readonly isSecure: boolean;
}

/** Sets the cookie until the browser is closed: how long the token is valid, the token says. */
export function setCookie(token: string, { isSecure }: CookieTerms): string {
  return `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
}

export function clearCookie(terms: CookieTerms): string {
  return `${setCookie('', terms)}; Max-Age=0`;
}

/** The tokens of a `Cookie` header: a page of another host of the domain may have set a second one. */
export function cookieTokens(header: string | undefined): readonly string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=');
    const token = value.join('=').trim();
    return name.trim() === COOKIE && token !== '' ? [token] : [];
  });
}

/** @throws ServiceError `UNAUTHENTICATED` if there are several */
export function onlyToken(tokens: readonly string[]): string | undefined {
  if (tokens.length <= 1) return tokens[0];
  const message = `there are several cookies ${COOKIE}; remove them in the browser, and log in again`;
  throw new ServiceError('UNAUTHENTICATED', message);
}

/** SC3. @throws ServiceError `INVALID_ARGUMENT`, as HTTP status 403 */
export function requireCsrf(method: string, header: string | readonly string[] | undefined): void {
  if (SAFE.includes(method) || header === CSRF_VALUE) return;
  const message = `a request with the cookie ${COOKIE} that is not GET needs the header ${CSRF_HEADER}: ${CSRF_VALUE}`;
  throw new ServiceError('INVALID_ARGUMENT', message, { details: { httpStatus: 403 } satisfies HttpDetails });
}
