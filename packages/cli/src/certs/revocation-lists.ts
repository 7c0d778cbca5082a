/** Reads and makes revocation lists (RFC 5280, section 5). */
import 'reflect-metadata'; // @peculiar/x509 needs it before it is loaded
import { webcrypto, type X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { type RevocationList, serialKey } from '@remora/base/node';
import { ALGORITHM, type Credentials, signingKey, type Validity } from './make-certificate.ts';

x509.cryptoProvider.set(webcrypto);

const BLOCK = /-----BEGIN X509 CRL-----[\s\S]+?-----END X509 CRL-----/g;

/** @throws Error for a list that is damaged, or that none of the authorities has signed. */
export async function readRevocationLists(
  pem: string,
  authorities: readonly X509Certificate[],
): Promise<readonly RevocationList[]> {
  const blocks = pem.match(BLOCK);
  if (blocks === null) throw new Error('it contains no revocation list in PEM form');
  return Promise.all(blocks.map((block) => readList(block, authorities)));
}

async function readList(pem: string, authorities: readonly X509Certificate[]): Promise<RevocationList> {
  const list = new x509.X509Crl(pem);
  for (const authority of authorities) {
    const publicKey = new x509.X509Certificate(authority.raw);
    if (!(await list.verify({ publicKey }).catch(() => false))) continue;
    return {
      issuer: authority.fingerprint256,
      serials: new Set(list.entries.map(({ serialNumber }) => serialKey(serialNumber))),
      nextUpdateMs: list.nextUpdate?.getTime(),
    };
  }
  throw new Error(`none of the trusted authorities has signed the list of ${list.issuer}`);
}

/** A list of everything that `before` revokes, and of these certificates. Both must be of the authority `by`. */
export async function makeRevocationList(
  certificates: readonly X509Certificate[],
  before: string | undefined,
  by: Credentials,
  { nowMs, days }: Validity,
): Promise<string> {
  const old = before === undefined ? [] : new x509.X509Crl(before).entries;
  const revoked = new Map(old.map(({ serialNumber, revocationDate }) => [serialKey(serialNumber), revocationDate]));
  for (const { serialNumber } of certificates) revoked.set(serialKey(serialNumber), new Date(nowMs));
  const list = await x509.X509CrlGenerator.create({
    issuer: new x509.X509Certificate(by.certificate).subjectName,
    ...{ thisUpdate: new Date(nowMs), nextUpdate: new Date(nowMs + days * DAY_MS) },
    signingAlgorithm: ALGORITHM,
    signingKey: await signingKey(by.key),
    entries: [...revoked].map(([serial, revocationDate]) => ({
      serialNumber: serial.length % 2 === 0 ? serial : `0${serial}`,
      revocationDate: revocationDate ?? new Date(nowMs),
    })),
  });
  return `${x509.PemConverter.encode(list.rawData, 'X509 CRL')}\n`;
}

const DAY_MS = 86_400_000;
