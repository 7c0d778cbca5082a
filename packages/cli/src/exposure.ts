import { clientTlsMode } from './tls-options.ts';

/** What a node may leave open beyond loopback. */
export const INSECURITIES = ['clients', 'peers', 'anonymous'] as const;

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

interface Exposure {
  readonly listenHost: string;
  readonly insecure: readonly (typeof INSECURITIES)[number][];
}

/** Loopback needs no protection from other machines. */
export function isExposureAllowed(
  what: (typeof INSECURITIES)[number],
  isProtected: boolean,
  { listenHost, insecure }: Exposure,
): boolean {
  return isProtected || isLoopback(listenHost) || insecure.includes(what);
}

/** Only over TLS alone: in plain text, clients show no certificates. */
export function areClientsKnown(
  options: Parameters<typeof clientTlsMode>[0] & { readonly tlsClientCertificates: string },
) {
  return clientTlsMode(options) === 'tls' && options.tlsClientCertificates === 'required';
}
