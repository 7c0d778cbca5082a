import { isIPv4, isIPv6 } from 'node:net';
import { ServiceError } from '@remora/base';
import type { HttpDetails } from '../../http/statuses.ts';

/** The parts of a request's head that tell its target and the page that sent it. */
export interface RequestHead {
  /** The target in the request line. */
  readonly target: string;
  /** Every Host header, in order. */
  readonly hosts: readonly string[];
  readonly origin: string | undefined;
  /** Sec-Fetch-Site: the site of the page that sent the request, set by the browser. */
  readonly site: string | undefined;
}

/**
 * Decides which requests an HTTP port answers. A port without users trusts every client that can reach it, and a
 * developer's browser reaches loopback. So no request that a web page of another site can make a browser send may pass
 * (docs/decisions/0077).
 *
 * RG1. `Host` is an IP literal, `localhost` or a name that the node was given. With DNS rebinding, an attacker points a
 *      name of its own at this address: the browser then takes the two for one site, but sends that name as `Host`.
 * RG2. A request has exactly one `Host` header, and its target is a path. RFC 9112 prefers the authority of an absolute
 *      target to `Host`, and parsers differ about several `Host` headers.
 * RG3. `Sec-Fetch-Site`, which pages cannot set, is absent, `same-origin` or `none` (typed by a person). `same-site` is
 *      refused: all ports of localhost are one site.
 * RG4. `Origin`, if there is one, is this server: browsers send it with every request that may change something, also
 *      where they send no `Sec-Fetch-Site` (plain HTTP beyond loopback).
 *
 * @returns the refusal; undefined when the request may pass.
 */
export function requestRefusal(head: RequestHead, ownNames: ReadonlySet<string>): ServiceError | undefined {
  const { target, hosts, origin, site } = head;
  const [host] = hosts;
  if (!target.startsWith('/')) return refusal(400, 'the request target is not a path; send GET /path, without http://'); // RG2
  if (host === undefined) return refusal(400, 'the Host header is missing; send the address of this node as Host');
  if (hosts.length > 1) return refusal(400, 'there are several Host headers; send one');
  const name = hostName(host);
  if (name === undefined) return refusal(400, 'the Host header is malformed; send host or host:port');
  if (!isOwnName(name, ownNames)) {
    const advice = `use an IP address or localhost, or start the node with --http-allowed-hosts ${name}`;
    return refusal(403, `Host: ${name} is not a known name of this node; ${advice}`); // RG1
  }
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'; // RG3
  const isOwnOrigin = origin === undefined || ownOrigins(host).includes(origin.toLowerCase()); // RG4
  if (!isForeign && isOwnOrigin) return undefined;
  return refusal(403, 'web pages of other sites may not use this port; open the address in a tab of its own');
}

/**
 * A host as it is compared: without port and trailing dot, in lower case. Undefined for anything but `host` and
 * `host:port`.
 */
export function hostName(host: string): string | undefined {
  const [, ipv6, name, port = ''] = HOST.exec(host) ?? [];
  if (Number(port) > PORT_MAX) return undefined;
  if (ipv6 !== undefined) return isIPv6(ipv6) ? ipv6.toLowerCase() : undefined;
  return name?.toLowerCase().replace(/\.$/, '');
}

/** No userinfo, no path, nothing percent-encoded: what a parser elsewhere could read in another way is no host. */
const HOST = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?\.?))(?::(\d{0,5}))?$/;
const PORT_MAX = 65_535;

function isOwnName(name: string, ownNames: ReadonlySet<string>): boolean {
  return name === 'localhost' || isIPv4(name) || isIPv6(name) || ownNames.has(name);
}

/** Behind a proxy that ends TLS, pages are of `https`. */
function ownOrigins(host: string): readonly string[] {
  return [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`];
}

function refusal(httpStatus: number, message: string): ServiceError {
  // A body that may follow is not read.
  const details: HttpDetails = { httpStatus, headers: { connection: 'close' } };
  return new ServiceError('INVALID_ARGUMENT', message, { details: { ...details } });
}
