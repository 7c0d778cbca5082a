import type { Address } from '@remora/base';
import { clientTlsMode } from './tls-options.ts';

/** What a node may leave open beyond loopback. */
export const INSECURITIES = ['clients', 'peers', 'anonymous'] as const;

/** An address that only this machine reaches. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** The addresses at which clients reach a node. */
export interface ClientAddresses {
  readonly clientListen: Address;
  readonly httpListen: Address;
}

interface Exposure extends ClientAddresses {
  readonly peerListen: Address;
  readonly insecure: readonly (typeof INSECURITIES)[number][];
}

/** The address at which clients of other machines reach a node; undefined if there is none. */
export function exposedAddress({ clientListen, httpListen }: ClientAddresses): Address | undefined {
  return [clientListen, httpListen].find(({ host }) => !isLoopback(host));
}

/** Loopback needs no protection from other machines. */
export function isExposureAllowed(
  what: (typeof INSECURITIES)[number],
  isProtected: boolean,
  exposure: Exposure,
): boolean {
  const { peerListen, insecure } = exposure;
  const isLocal = what === 'peers' ? isLoopback(peerListen.host) : exposedAddress(exposure) === undefined;
  return isProtected || isLocal || insecure.includes(what);
}

/**
 * Whether clients prove who they are: by certificates, or as users of the cluster that this node founds. A node that
 * joins finds out from its cluster (node/cluster/exposure-check.ts).
 */
export function areClientsKnown(options: Parameters<typeof showCertificates>[0] & Founding): boolean {
  return showCertificates(options) || options.initialRootPasswordFile !== undefined || options.join.length > 0;
}

interface Founding {
  readonly initialRootPasswordFile?: string | undefined;
  readonly join: readonly unknown[];
}

/** Only over TLS alone: in plain text, clients show no certificates. */
function showCertificates(options: Parameters<typeof clientTlsMode>[0] & { readonly tlsClientCertificates: string }) {
  return clientTlsMode(options) === 'tls' && options.tlsClientCertificates === 'required';
}
