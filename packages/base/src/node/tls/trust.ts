/**
 * Verifies certificates once more, after the handshake: OpenSSL verified them when their connections began, and since
 * then they may have expired, been revoked, or lost their authority.
 *
 * TR1. This check closes connections, and admits none that OpenSSL did not admit. So it may be simpler: it looks at
 *      dates, signatures, authorities and revocation lists, and not at purposes, names and lengths of paths.
 * TR2. Revocation lists apply to all certificates of a chain. A list that is out of date still counts: refusing every
 *      peer because of it would stop the cluster.
 */
import type { X509Certificate } from 'node:crypto';
import { CHAIN_LENGTH_MAX } from './peer-certificate.ts';

/** The certificates that one authority has revoked. */
export interface RevocationList {
  /** `fingerprint256` of the authority. */
  readonly issuer: string;
  /** As `serialKey` writes them. */
  readonly serials: ReadonlySet<string>;
  /** When the authority promised the next list. */
  readonly nextUpdateMs: number | undefined;
}

/** Reads revocation lists in PEM form. @throws Error for a list that none of the authorities has signed. */
export type ReadRevocations = (
  pem: string,
  authorities: readonly X509Certificate[],
) => Promise<readonly RevocationList[]>;

export interface Trust {
  readonly authorities: readonly X509Certificate[];
  readonly revocations: readonly RevocationList[];
}

/** A serial number as it is compared: hexadecimal digits in lower case without leading zeros. */
export function serialKey(serial: string): string {
  return serial.toLowerCase().replace(/^0+(?=.)/, '');
}

/** Why a certificate does not verify; undefined if it does. */
export function chainProblem(chain: readonly X509Certificate[], trust: Trust, nowMs: number): string | undefined {
  const [first] = chain;
  if (first === undefined) return 'there is no certificate';
  let current: X509Certificate = first;
  for (let length = 0; length < CHAIN_LENGTH_MAX; length++) {
    const problem = dateProblem(current, nowMs);
    if (problem !== undefined) return problem;
    const { fingerprint256 } = current;
    if (trust.authorities.some((authority) => authority.fingerprint256 === fingerprint256)) return undefined;
    const issuer = issuerOf(current, trust.authorities) ?? issuerOf(current, chain);
    if (issuer === undefined) return 'the certificate is signed by an authority that is not trusted here';
    if (isRevoked(current, issuer, trust)) return 'the certificate is revoked';
    current = issuer;
  }
  return 'the chain of certificates is too long';
}

/** Why a certificate is not valid at this time; undefined if it is. */
export function dateProblem(certificate: X509Certificate, nowMs: number): string | undefined {
  const [from, to] = [new Date(certificate.validFrom), new Date(certificate.validTo)];
  if (to.getTime() < nowMs) return `the certificate expired at ${to.toISOString()}`;
  if (from.getTime() > nowMs) return `the certificate is not valid before ${from.toISOString()}`;
  return undefined;
}

/** The moment at which the first of these expires. */
export function expiryMs(chain: readonly X509Certificate[]): number {
  return Math.min(...chain.map(({ validTo }) => new Date(validTo).getTime()));
}

function issuerOf(certificate: X509Certificate, candidates: readonly X509Certificate[]): X509Certificate | undefined {
  return candidates.find(
    (candidate) =>
      candidate.ca &&
      candidate.fingerprint256 !== certificate.fingerprint256 &&
      certificate.checkIssued(candidate) &&
      certificate.verify(candidate.publicKey),
  );
}

function isRevoked(certificate: X509Certificate, issuer: X509Certificate, { revocations }: Trust): boolean {
  const serial = serialKey(certificate.serialNumber);
  return revocations.some((list) => list.issuer === issuer.fingerprint256 && list.serials.has(serial));
}
