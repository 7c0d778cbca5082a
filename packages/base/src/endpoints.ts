import { ServiceError } from './errors.ts';
import { formatAddress, parseAddress } from './options/types.ts';
import { escapeHidden } from './terminal-text.ts';

/** The addresses of a client's servers. */
export interface Endpoints {
  /** `host:port` each, without duplicates, in the given order. */
  readonly addresses: readonly string[];
  /** From their schemes: TLS for `https://`, plain text for `http://`. Undefined: none has a scheme. */
  readonly tls: boolean | undefined;
}

/**
 * Reads endpoints: `host:port`, optionally preceded by `http://` or `https://`.
 *
 * EN1. A scheme is never ignored: a caller that writes `https://` never gets a plain-text connection. All endpoints of
 *      one client must use the same scheme.
 *
 * @throws ServiceError INVALID_ARGUMENT
 */
export function readEndpoints(texts: readonly string[]): Endpoints {
  const addresses = new Set<string>();
  let tls: boolean | undefined;
  for (const text of texts) {
    const endpoint = text.trim();
    if (endpoint === '') continue;
    const [, scheme, rest = ''] = ENDPOINT.exec(endpoint) ?? [];
    const address = parseAddress(rest);
    if (scheme !== undefined && !Object.hasOwn(TLS_OF, scheme)) {
      throw invalid(
        `'${escapeHidden(endpoint)}' has the scheme ${scheme}; use http:// for plain text or https:// for TLS`,
      );
    }
    if (address === undefined) {
      throw invalid(
        `'${escapeHidden(endpoint)}' is not a host:port address, such as 127.0.0.1:7480, [::1]:7480 or https://db1:7480`,
      );
    }
    const isTls = scheme === undefined ? undefined : TLS_OF[scheme];
    if (tls !== undefined && isTls !== undefined && isTls !== tls) {
      throw invalid('they mix http:// and https://; all endpoints of a client must use the same scheme');
    }
    tls ??= isTls;
    addresses.add(formatAddress(address));
  }
  if (addresses.size === 0) throw invalid('none given; give at least one, such as 127.0.0.1:7480');
  return { addresses: [...addresses], tls };
}

const TLS_OF: Readonly<Record<string, boolean>> = { http: false, https: true };
/** Schemes are matched in lower case, as they are usually written. */
const ENDPOINT = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?(.*?)\/?$/;

function invalid(problem: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `endpoints: ${problem}`);
}
