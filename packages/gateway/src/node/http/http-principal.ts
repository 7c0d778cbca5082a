import type { IncomingMessage } from 'node:http';
import type { Identification, Principal } from '@remora/auth';
import { ServiceError, verifiedName } from '@remora/base';

/**
 * Who sends a request over HTTP: by `Authorization: Bearer TOKEN`, `Authorization: Basic …` (RFC 7617), a token alone,
 * as etcd's JSON gateway takes it, or the certificate of the connection. Nothing else in a request counts: a proxy may
 * have set it.
 *
 * @throws ServiceError `UNAUTHENTICATED`, `RESOURCE_EXHAUSTED`
 */
export function httpPrincipal(
  request: Pick<IncomingMessage, 'headers' | 'socket'>,
  identification: Identification,
): Promise<Principal | undefined> {
  return whileOff(identification, () => presented(request, identification));
}

/** Nobody needs credentials while authentication is off (authenticator.ts AU2). */
export async function whileOff(
  identification: Identification,
  identified: () => Promise<Principal | undefined>,
): Promise<Principal | undefined> {
  try {
    return await identified();
  } catch (error) {
    if (identification.isOff && error instanceof ServiceError) return undefined;
    throw error;
  }
}

async function presented(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  identification: Identification,
): Promise<Principal | undefined> {
  const { authorization } = headers;
  const { remoteAddress: address } = socket;
  const door = 'http';
  if (authorization === undefined) {
    return identification.identify({ token: undefined, certificateName: verifiedName(socket), door, address });
  }
  const [, scheme = '', rest = ''] = /^(?:(Bearer|Basic) +)?(\S+)$/i.exec(authorization.trim()) ?? [];
  if (rest === '') throw malformed();
  if (scheme.toLowerCase() === 'basic') {
    const [user, password] = userAndPassword(rest);
    return identification.identifyByPassword({ user, password, door, address: address ?? '' });
  }
  return identification.identify({ token: rest, certificateName: verifiedName(socket), door, address });
}

function userAndPassword(encoded: string): readonly [user: string, password: string] {
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) throw malformed();
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function malformed(): ServiceError {
  return new ServiceError(
    'UNAUTHENTICATED',
    'the header Authorization is none that is understood; send "Bearer TOKEN", or "Basic" with USER:PASSWORD in base64',
  );
}
