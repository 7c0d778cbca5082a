import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CertificateFiles } from '../certs/certificate-files.ts';

const DAYS = 365;
const AUTHORITY_DAYS = 3_650;
const DAY_MS = 86_400_000;
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
/** The user whose certificate clients show. */
const USER = 'root';

export interface DevCertificates {
  /** The flags of a node, without the dashes. */
  flagsOf(node: string): Readonly<Record<string, string>>;
  /** The files for clients. */
  readonly client: { readonly cacert: string; readonly cert: string; readonly key: string };
}

/**
 * Certificates of a local cluster: the authorities stay, so that clients that trust them go on, and what they sign is
 * made again when less than half of its time is left.
 */
export async function devCertificates(dir: string, nodes: readonly string[], nowMs: number): Promise<DevCertificates> {
  const { makeAuthority, makeClient, makePeer, makeServer } = await import('../certs/make-certificate.ts');
  const files = new CertificateFiles(dir);
  const path = (name: string): string => join(dir, name);
  const validity = { nowMs, days: DAYS };
  for (const name of ['ca', 'peer-ca']) {
    if (existsSync(path(`${name}.key`))) continue;
    files.write(name, await makeAuthority(`remora dev ${name}`, { nowMs, days: AUTHORITY_DAYS }));
  }
  const [authority, peerAuthority] = [files.read('ca'), files.read('peer-ca')];
  const renew = async (name: string, make: () => ReturnType<typeof makeServer>): Promise<void> => {
    if (isFresh(path(`${name}.crt`), files, name, nowMs)) return;
    files.remove(name);
    files.write(name, await make());
  };
  for (const name of nodes) {
    const names = { name, hosts: LOOPBACK };
    await renew(name, () => makeServer(names, authority, validity));
    await renew(`${name}-peer`, () => makePeer({ ...names, trustDomain: 'remora' }, peerAuthority, validity));
  }
  await renew(`client-${USER}`, () => makeClient(USER, authority, validity));
  return {
    flagsOf: (node) => ({
      ...{ 'tls-cert': path(`${node}.crt`), 'tls-key': path(`${node}.key`) },
      ...{ 'tls-client-ca': path('ca.crt'), 'tls-client-certificates': 'required' },
      ...{ 'tls-peer-cert': path(`${node}-peer.crt`), 'tls-peer-key': path(`${node}-peer.key`) },
      'tls-peer-ca': path('peer-ca.crt'),
    }),
    client: { cacert: path('ca.crt'), cert: path(`client-${USER}.crt`), key: path(`client-${USER}.key`) },
  };
}

function isFresh(path: string, files: CertificateFiles, name: string, nowMs: number): boolean {
  if (!existsSync(path)) return false;
  const { validTo } = new X509Certificate(files.read(name).certificate);
  return new Date(validTo).getTime() - nowMs > (DAYS / 2) * DAY_MS;
}
