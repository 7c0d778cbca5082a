import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { type DetailedPeerCertificate, TLSSocket } from 'node:tls';

/** The names in a certificate. */
export interface CertificateNames {
  /** Empty if the subject has none, or several. */
  readonly commonName: string;
  /** Identities, such as `spiffe://remora/node/n1`. */
  readonly uris: readonly string[];
  /** DNS names in lower case, and IP addresses. */
  readonly hosts: readonly string[];
}

/** Chains are short; a longer one is not followed. */
export const CHAIN_LENGTH_MAX = 8;

/**
 * The names in the verified certificate of the other end. Undefined for plain text, and for an end without a
 * certificate. Ports hand over no connection whose certificate does not verify (tls-acceptor.ts TA1).
 */
export function peerCertificateOf(socket: Socket): CertificateNames | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const [certificate] = peerChainOf(socket);
  if (certificate === undefined) return undefined;
  let names = NAMES.get(certificate);
  if (names === undefined) {
    names = certificateNames(certificate);
    NAMES.set(certificate, names);
  }
  return names;
}

const NAMES = new WeakMap<X509Certificate, CertificateNames>();

/**
 * The certificate of the other end, and those that it sent to vouch for it, the issuer of each behind it. Known once
 * the handshake is complete.
 */
export function peerChainOf(socket: TLSSocket): readonly X509Certificate[] {
  let chain = CHAINS.get(socket);
  if (chain === undefined) {
    chain = readChain(socket);
    CHAINS.set(socket, chain);
  }
  return chain;
}

const CHAINS = new WeakMap<TLSSocket, readonly X509Certificate[]>();

/** Node 20's `getPeerX509Certificate` takes the certificate of a server out of the session, so a second call fails. */
function readChain(socket: TLSSocket): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  // Absent, or empty, if the other end showed none. A certificate that is signed by itself is its own issuer.
  let { raw, issuerCertificate: issuer }: Partial<DetailedPeerCertificate> = socket.getPeerCertificate(true) ?? {};
  while (raw !== undefined && chain.length < CHAIN_LENGTH_MAX) {
    const before = raw;
    chain.push(new X509Certificate(raw));
    ({ raw, issuerCertificate: issuer } = (issuer ?? {}) as Partial<DetailedPeerCertificate>);
    if (raw?.equals(before)) break;
  }
  return chain;
}

export function certificateNames(certificate: X509Certificate): CertificateNames {
  const { CN: commonName } = certificate.toLegacyObject().subject ?? {};
  const [uris, hosts]: [string[], string[]] = [[], []];
  for (const [, kind, text = ''] of (certificate.subjectAltName ?? '').matchAll(ALTERNATIVE)) {
    const value = text.startsWith('"') ? unquoted(text) : text;
    if (kind === 'URI') uris.push(value);
    else if (kind === 'DNS' || kind === 'IP Address') hosts.push(value.toLowerCase());
  }
  return { commonName: typeof commonName === 'string' ? commonName : '', uris, hosts };
}

/** Node quotes a name that contains what separates names. */
const ALTERNATIVE = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/g;

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return '';
  }
}
