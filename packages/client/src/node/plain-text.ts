import { parseAddress, ServiceError } from '@remora/base';
import { type CredentialOptions, credentialsOf } from '../transport/credentials.ts';
import { isLoopback } from '../transport/discovery.ts';
import type { SecureEndpoints } from './tls.ts';

/**
 * Decides to which addresses a client may send its credentials: to all of them with TLS, or with `allowPlainText`;
 * otherwise only to loopback addresses, as everybody on the way can read plain text.
 *
 * @throws ServiceError INVALID_ARGUMENT for credentials and an endpoint to which they must not be sent.
 */
export function logInPolicy(
  { addresses, tls }: SecureEndpoints,
  options: CredentialOptions,
): (address: string) => boolean {
  if (credentialsOf(options) === undefined || tls !== undefined || options.allowPlainText) return () => true;
  const isAllowed = (address: string): boolean => isLoopback(parseAddress(address)?.host ?? '');
  const open = addresses.find((address) => !isAllowed(address));
  if (open === undefined) return isAllowed;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `endpoints: credentials would be sent to ${open} in plain text, where everybody on the way can read them; use ` +
      'https:// or the option tls, or set allowPlainText if the network itself encrypts',
  );
}
