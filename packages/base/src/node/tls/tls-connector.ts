/**
 * Connections of a node to other nodes.
 *
 * TC1. The other end must have a certificate of the same authorities. Which node it is follows from the names in that
 *      certificate, and is compared with its hello (cli/src/node/cluster/peer-identities.ts PI5), so the name of the
 *      host says nothing more.
 * TC2. While TLS is not required, an address that answers with plain text is dialled in plain text the next time. Each
 *      plain connection that ends makes TLS the first choice again. So nodes find each other while the cluster changes
 *      from plain text to TLS, in either order; a third party that can change what they send can keep them in plain
 *      text for as long.
 */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Connector, Target } from '../frames/connector.ts';
import { type HostNames, systemHosts } from '../frames/host-names.ts';
import { speaksNoTls } from './tls-error-text.ts';
import type { TlsIdentity } from './tls-identity.ts';

/** The name of ALPN for connections between nodes. */
export const PEER_ALPN = 'remora-peer';
/** As many addresses as a cluster has nodes. */
const PLAIN_MAX = 1_000;

export class TlsConnector implements Connector {
  readonly #identity: TlsIdentity;
  readonly #isRequired: boolean;
  /** TC2. */
  readonly #plain = new Set<string>();

  readonly #hosts: HostNames;

  constructor(
    identity: TlsIdentity,
    { isRequired, hosts = systemHosts }: { readonly isRequired: boolean; readonly hosts?: HostNames },
  ) {
    this.#identity = identity;
    this.#hosts = hosts;
    this.#isRequired = isRequired;
  }

  connect(target: Target): Socket {
    const address = `${target.host}:${target.port}`;
    return this.#plain.has(address) ? this.#connectPlain(target, address) : this.#connectSecure(target, address);
  }

  #connectPlain(target: Target, address: string): Socket {
    const socket = connect({ ...this.#hosts.dialOptions, host: target.host, port: target.port });
    socket.once('close', () => this.#plain.delete(address));
    return socket;
  }

  #connectSecure({ host, port }: Target, address: string): TLSSocket {
    const identity = this.#identity;
    const socket: TLSSocket = connectTls({
      ...{ ...this.#hosts.dialOptions, host, port },
      ...(isIP(host) === 0 ? { servername: host } : {}),
      secureContext: identity.material.context,
      ALPNProtocols: [PEER_ALPN],
      checkServerIdentity() {
        const refusal = identity.refusalOf(socket);
        return refusal === undefined ? undefined : new Error(refusal);
      },
    });
    socket.once('secureConnect', () => identity.watch(socket));
    if (!this.#isRequired) {
      socket.once('error', (error) => {
        if (speaksNoTls(error) && this.#plain.size < PLAIN_MAX) this.#plain.add(address);
      });
    }
    return socket;
  }
}
