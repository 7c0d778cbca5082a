import { createPrivateKey, X509Certificate } from 'node:crypto';

/** What `remora cert inspect` shows of a certificate. */
export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  /** Host names, addresses and identities that it is for. */
  readonly names: readonly string[];
  /** What it is for: `authority`, `server`, `client`. */
  readonly uses: readonly string[];
  readonly from: Date;
  readonly to: Date;
  /** Whole days until it ends; negative: since it has ended. */
  readonly daysLeft: number;
  readonly serial: string;
  readonly fingerprint: string;
}

const DAY_MS = 86_400_000;
const USES: Readonly<Record<string, string>> = { '1.3.6.1.5.5.7.3.1': 'server', '1.3.6.1.5.5.7.3.2': 'client' };
const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/**
 * The certificates of a PEM file, in their order.
 *
 * @throws Error if there is none, or one of them is damaged.
 */
export function inspectCertificates(pem: string, nowMs: number): readonly CertificateFacts[] {
  const blocks = pem.match(BLOCK);
  if (blocks === null) throw new Error('it contains no certificate in PEM form');
  return blocks.map((block) => factsOf(new X509Certificate(block), nowMs));
}

/** Whether the key is that of the first certificate. */
export function isKeyOf(key: string, pem: string): boolean {
  return new X509Certificate(pem).checkPrivateKey(createPrivateKey(key));
}

function factsOf(certificate: X509Certificate, nowMs: number): CertificateFacts {
  const [from, to] = [new Date(certificate.validFrom), new Date(certificate.validTo)];
  const uses = (certificate.keyUsage ?? []).map((use) => USES[use] ?? use);
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    names: certificate.subjectAltName?.split(', ') ?? [],
    uses: certificate.ca ? ['authority', ...uses] : uses,
    from,
    to,
    daysLeft: Math.floor((to.getTime() - nowMs) / DAY_MS),
    serial: certificate.serialNumber,
    fingerprint: certificate.fingerprint256,
  };
}

/** Node separates the parts of a name by line ends. */
function oneLine(name: string): string {
  return name.split('\n').join(', ');
}
