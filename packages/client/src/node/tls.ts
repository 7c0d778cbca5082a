import { type EndpointRules, readEndpoints, ServiceError } from '@remora/base';
import type { TlsOptions } from './tls-files.ts';

/** The servers of a client, and the options of TLS if it uses TLS. */
export interface SecureEndpoints {
  /** `host:port` each. */
  readonly addresses: readonly string[];
  readonly tls: TlsOptions | undefined;
}

/**
 * The scheme of the endpoints decides; without a scheme, the option does.
 *
 * @throws ServiceError INVALID_ARGUMENT for invalid endpoints, and when the option `tls` contradicts their scheme.
 */
export function secureEndpoints(
  endpoints: readonly string[],
  tls: TlsOptions | undefined,
  rules?: EndpointRules,
): SecureEndpoints {
  const { addresses, tls: isSecure } = readEndpoints(endpoints, rules);
  if (isSecure === undefined) return { addresses, tls };
  if (isSecure) return { addresses, tls: tls ?? {} };
  if (tls === undefined) return { addresses, tls };
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'endpoints: http:// means plain text, but the option tls is set; use https://, or omit tls',
  );
}
