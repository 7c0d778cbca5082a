import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { peerCertificateOf } from '../tls/peer-certificate.ts';

/**
 * Returns the common name of the certificate by which the other side of a connection has identified itself. Every door
 * takes the names of certificates from here. Undefined without TLS, without a certificate, for a certificate that was
 * not verified, and for one with several common names.
 */
export function verifiedName(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const name = peerCertificateOf(socket)?.commonName;
  return name === '' ? undefined : name;
}
