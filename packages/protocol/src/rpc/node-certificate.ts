import type { CertificateNames } from '@remora/base';

/** A node as it is registered. */
export interface RegisteredNode {
  readonly name: string;
  /** `host:port`. */
  readonly peerAddress: string;
}

const IDENTITY = /^spiffe:\/\/([^/]+)\/node\/([^/]+)$/;

/**
 * Whether a certificate is that of a node. It names the node by an identity, `spiffe://<trust domain>/node/<name>`. In
 * a certificate without any SPIFFE identity, a host name or address must be that at which the node is registered.
 */
export function certifies({ uris, hosts }: CertificateNames, { name, peerAddress }: RegisteredNode): boolean {
  const identities = uris.filter(isSpiffe);
  if (identities.length > 0) return identities.some((uri) => IDENTITY.exec(uri)?.[2] === encodeURIComponent(name));
  return hosts.includes(hostOf(peerAddress));
}

/** The trust domain of the node that a certificate names; undefined if it names none by an identity. */
export function trustDomainOf({ uris }: CertificateNames): string | undefined {
  for (const uri of uris) {
    const [, domain] = IDENTITY.exec(uri) ?? [];
    if (domain !== undefined) return domain;
  }
  return undefined;
}

/** The names of a certificate, for messages: at most `SHOWN_MAX` of them. */
export function shownNames({ commonName, uris, hosts }: CertificateNames): string {
  const names = [...uris, ...hosts].slice(0, SHOWN_MAX);
  return names.join(', ') || commonName || 'no name';
}

const SHOWN_MAX = 5;

function isSpiffe(uri: string): boolean {
  return uri.startsWith('spiffe://');
}

function hostOf(address: string): string {
  return address
    .slice(0, address.lastIndexOf(':'))
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
}
