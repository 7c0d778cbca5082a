/**
 * Makes certificates for clusters that have no certificate authority of their own.
 *
 * C1. Nodes trust each other by another authority than clients: a client's certificate must not make a node. So there
 *     are two, `ca` for what clients see, and `peer-ca` for nodes among themselves.
 * C2. A node's certificate for its peers names the node: `spiffe://<trust domain>/node/<name>`. Its hosts are in it as
 *     well, as those who connect look for them.
 * C3. A client's certificate names its user as common name, as with etcd.
 */
import 'reflect-metadata'; // @peculiar/x509 needs it before it is loaded
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

export const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const SERIAL_BYTES = 16;
const DAY_MS = 86_400_000;
/** Clocks of machines differ: a certificate that is made here must be valid there at once. */
const CLOCKS_DIFFER_MS = 5 * 60_000;

x509.cryptoProvider.set(webcrypto);

/** A certificate and its private key, both as PEM. */
export interface Credentials {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly nowMs: number;
  readonly days: number;
}

/** A certificate authority: it signs certificates, and no further authorities. */
export async function makeAuthority(name: string, validity: Validity): Promise<Credentials> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...common(validity),
    name: nameOf(name),
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key: await keyPem(keys) };
}

export interface NodeNames {
  readonly name: string;
  /** Host names and addresses by which others connect to it. */
  readonly hosts: readonly string[];
}

/** What a node shows to clients. */
export function makeServer({ name, hosts }: NodeNames, by: Credentials, validity: Validity): Promise<Credentials> {
  return makeSigned({ subject: name, names: hosts.map(hostName), usages: [SERVER] }, by, validity);
}

/** What a node shows to other nodes, which call it and which it calls (C2). */
export function makePeer(
  { name, hosts, trustDomain }: NodeNames & { readonly trustDomain: string },
  by: Credentials,
  validity: Validity,
): Promise<Credentials> {
  const identity = { type: 'url', value: peerIdentity(trustDomain, name) } as const;
  return makeSigned(
    { subject: name, names: [identity, ...hosts.map(hostName)], usages: [SERVER, CLIENT] },
    by,
    validity,
  );
}

/** What a client shows (C3). */
export function makeClient(user: string, by: Credentials, validity: Validity): Promise<Credentials> {
  return makeSigned({ subject: user, names: [], usages: [CLIENT] }, by, validity);
}

/** C2. */
export function peerIdentity(trustDomain: string, name: string): string {
  return `spiffe://${trustDomain}/node/${encodeURIComponent(name)}`;
}

const SERVER = x509.ExtendedKeyUsage.serverAuth;
const CLIENT = x509.ExtendedKeyUsage.clientAuth;

interface Subject {
  readonly subject: string;
  readonly names: readonly x509.JsonGeneralName[];
  readonly usages: readonly x509.ExtendedKeyUsageType[];
}

async function makeSigned(
  { subject, names, usages }: Subject,
  by: Credentials,
  validity: Validity,
): Promise<Credentials> {
  const keys = await newKeys();
  const authority = new x509.X509Certificate(by.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    ...common(validity),
    subject: nameOf(subject),
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey: await signingKey(by.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([...usages]),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension([...names])]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(authority),
    ],
  });
  return { certificate: pem(certificate), key: await keyPem(keys) };
}

function common({ nowMs, days }: Validity) {
  const serial = webcrypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  serial[0] = (serial[0] ?? 0) & 0x7f; // a positive number (RFC 5280 §4.1.2.2)
  return {
    serialNumber: Buffer.from(serial).toString('hex'),
    notBefore: new Date(nowMs - CLOCKS_DIFFER_MS),
    notAfter: new Date(nowMs + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
  };
}

function nameOf(commonName: string): x509.JsonName {
  return [{ CN: [commonName] }];
}

function hostName(host: string): x509.JsonGeneralName {
  return { type: isIP(host) === 0 ? 'dns' : 'ip', value: host };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

export function signingKey(key: string): Promise<webcrypto.CryptoKey> {
  const der = x509.PemConverter.decodeFirst(key);
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

async function keyPem({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', privateKey);
  return `${x509.PemConverter.encode(der, 'PRIVATE KEY')}\n`;
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}
