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

export interface EndpointRules {
  /** Names with SRV records (`srv://remora.example.com`) are allowed too. */
  readonly srv?: boolean;
}

/**
 * Reads endpoints: `host:port`, optionally preceded by `http://` or `https://`.
 *
 * EN1. A scheme is never ignored: a caller that writes `https://` never gets a plain-text connection. All endpoints of
 *      one client must use the same scheme.
 *
 * EN2. Where it is allowed, `srv://` and a name in DNS stand for the servers that its SRV records name. It says nothing
 *      about TLS.
 *
 * @throws ServiceError INVALID_ARGUMENT
 */
export function readEndpoints(texts: readonly string[], { srv = false }: EndpointRules = {}): Endpoints {
  const addresses = new Set<string>();
  let tls: boolean | undefined;
  for (const text of texts) {
    const endpoint = text.trim();
    if (endpoint === '') continue;
    if (srv && endpoint.startsWith(SRV)) {
      addresses.add(srvEndpoint(endpoint));
      continue;
    }
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

const SRV = 'srv://';
/** Of DNS: labels of letters, digits, dashes and underscores. */
const SRV_NAME = /^[\w-]{1,63}(\.[\w-]{1,63})+\.?$/;

/** EN2. As it stays an address: with its scheme. */
function srvEndpoint(endpoint: string): string {
  const name = endpoint.slice(SRV.length).replace(/\/$/, '');
  if (SRV_NAME.test(name) && name.length <= 253) return `${SRV}${name}`;
  throw invalid(`'${escapeHidden(endpoint)}' is not a name with SRV records, such as srv://remora.example.com`);
}

/**
 * EN2. The name whose SRV records name the servers: `_remora._tcp.` in front of the given one, unless that begins with
 *      a service of its own. Undefined for any other address.
 */
export function srvNameOf(address: string): string | undefined {
  if (!address.startsWith(SRV)) return undefined;
  const name = address.slice(SRV.length);
  return name.startsWith('_') ? name : `_remora._tcp.${name}`;
}

const TLS_OF: Readonly<Record<string, boolean>> = { http: false, https: true };
/** Schemes are matched in lower case, as they are usually written. */
const ENDPOINT = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?(.*?)\/?$/;

function invalid(problem: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `endpoints: ${problem}`);
}
