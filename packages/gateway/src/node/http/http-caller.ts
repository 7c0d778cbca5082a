import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { Identification, Principal } from '@remora/auth';
import { ServiceError } from '@remora/base';
import {
  CSRF_HEADER,
  clearCookie,
  cookieTokens,
  onlyToken,
  requireCsrf,
  setCookie,
} from '../../http/access/session-cookie.ts';
import { httpPrincipal, whileOff } from './http-principal.ts';

type Head = Pick<IncomingMessage, 'headers' | 'socket' | 'method'>;

/** Who sends a request to `/v1/`. */
export interface HttpCaller {
  readonly principal: Principal | undefined;
  /** The token of the cookie, if the cookie says who it is. */
  readonly cookie?: string;
}

/**
 * The same as `httpPrincipal`, and by the cookie of a log-in (session-cookie.ts SC2). A cookie with a token that is not
 * valid any more is cleared.
 *
 * @throws ServiceError `UNAUTHENTICATED`, `RESOURCE_EXHAUSTED`; `INVALID_ARGUMENT` without the header against requests
 *   of other sites
 */
export async function httpCaller(request: Head, identification: Identification): Promise<HttpCaller> {
  const tokens = sentTokens(request);
  const [cookie] = tokens;
  if (cookie === undefined) return { principal: await httpPrincipal(request, identification) };
  const { remoteAddress: address } = request.socket;
  const from = { certificateName: undefined, door: 'http', address } as const;
  try {
    const principal = await whileOff(identification, async () =>
      identification.identify({ token: onlyToken(tokens), ...from }),
    );
    return { principal, cookie };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'UNAUTHENTICATED') throw error;
    const headers = { 'set-cookie': clearCookie({ isSecure: isSecure(request) }) };
    throw new ServiceError(error.code, error.message, { cause: error, details: { ...error.details, headers } });
  }
}

/** The tokens of the cookie, if it counts (SC2), once it is clear that no other site has sent the request (SC3). */
export function sentTokens({ headers, method = '' }: Head): readonly string[] {
  const tokens = headers.authorization === undefined ? cookieTokens(headers.cookie) : [];
  if (tokens.length > 0) requireCsrf(method, headers[CSRF_HEADER]);
  return tokens;
}

/** The header that renews the log-in of the caller; undefined if it is not time. */
export function renewal(request: Head, { cookie }: HttpCaller, identification: Identification): string | undefined {
  const token = cookie === undefined ? undefined : identification.renewed(cookie);
  return token === undefined ? undefined : setCookie(token, { isSecure: isSecure(request) });
}

/**
 * Whether the browser has come by TLS: to this node, or to a proxy in front, as the page's `Origin` says. Nobody gains
 * by a false one, which makes the cookie stricter.
 */
export function isSecure({ headers, socket }: Head): boolean {
  return (socket as TLSSocket).encrypted === true || headers.origin?.toLowerCase().startsWith('https:') === true;
}
