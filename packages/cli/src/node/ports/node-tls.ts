/** TLS of a node's ports: one set of files for clients, one for other nodes. */
import { CLIENT_ALPN, type Clock, type Connector, type Logger, type SecurePort } from '@remora/base';
import {
  type HandshakeStats,
  PEER_ALPN,
  type ReadRevocations,
  TlsAcceptor,
  TlsConnector,
  type TlsFiles,
  TlsFilesError,
  TlsIdentity,
} from '@remora/base/node';
import { trustDomainOf } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { NodeOptions } from '../../node-options.ts';
import { clientTlsMode, peerTlsMode } from '../../tls-options.ts';
import type { CertificateExpiry } from '../health.ts';

export interface NodeTlsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

type TlsPurpose = CertificateExpiry['purpose'];
type TlsPortName = 'client' | 'http' | 'peer';

/** gRPC clients offer `h2` alone. A client that offers HTTP/1.1 too, such as curl, gets it: the JSON paths use it. */
const CLIENT_PROTOCOLS = [CLIENT_ALPN, 'http/1.1', 'h2'];

export class NodeTls {
  readonly #options: NodeOptions;
  readonly #deps: NodeTlsDeps;
  readonly #identities: ReadonlyMap<TlsPurpose, TlsIdentity>;
  readonly #acceptors = new Map<TlsPortName, TlsAcceptor>();

  private constructor(options: NodeOptions, deps: NodeTlsDeps, identities: ReadonlyMap<TlsPurpose, TlsIdentity>) {
    this.#options = options;
    this.#deps = deps;
    this.#identities = identities;
  }

  /** Reads the files that the options name. @throws CommandError `usage` for files that cannot be used. */
  static async open(options: NodeOptions, deps: NodeTlsDeps): Promise<NodeTls> {
    const identities = new Map<TlsPurpose, TlsIdentity>();
    const tls = new NodeTls(options, deps, identities);
    try {
      for (const [purpose, files] of filesOf(options)) {
        identities.set(purpose, await TlsIdentity.open(files, { ...deps, purpose, readRevocations }));
      }
      return tls;
    } catch (error) {
      tls.stop();
      if (!(error instanceof TlsFilesError)) throw error;
      throw new CommandError('usage', error.message, { cause: error });
    }
  }

  /** Absent: the port is for plain text. */
  port(name: TlsPortName): SecurePort | undefined {
    const isPeer = name === 'peer';
    const identity = this.#identities.get(isPeer ? 'peer' : 'client');
    if (identity === undefined) return undefined;
    const mode = isPeer ? peerTlsMode(this.#options) : clientTlsMode(this.#options);
    const protocols = { client: CLIENT_PROTOCOLS, http: ['http/1.1'], peer: [PEER_ALPN] }[name];
    const clientCertificates = isPeer ? 'required' : this.#options.tlsClientCertificates;
    const options = { isRequired: mode === 'tls', clientCertificates, protocols };
    const acceptor = new TlsAcceptor(options, { ...this.#deps, identity });
    this.#acceptors.set(name, acceptor);
    return acceptor;
  }

  /** Opens connections to other nodes; absent: in plain text. */
  get connector(): Connector | undefined {
    const identity = this.#identities.get('peer');
    return identity && new TlsConnector(identity, { isRequired: peerTlsMode(this.#options) === 'tls' });
  }

  /** The trust domain in the certificate for peers. */
  get trustDomain(): string | undefined {
    const names = this.#identities.get('peer')?.names;
    return names && trustDomainOf(names);
  }

  /** When the certificates expire, by purpose. */
  get expiries(): readonly CertificateExpiry[] {
    return [...this.#identities].map(([purpose, { material }]) => ({ purpose, expiresMs: material.expiresMs }));
  }

  get handshakes(): readonly (readonly [TlsPortName, HandshakeStats])[] {
    return [...this.#acceptors].map(([name, { stats }]) => [name, stats]);
  }

  /** Whether any port uses certificates. */
  get isUsed(): boolean {
    return this.#identities.size > 0;
  }

  /** Uses the files as they are now; failures are logged. */
  async reload(): Promise<void> {
    await Promise.all([...this.#identities.values()].map((identity) => identity.reload()));
  }

  stop(): void {
    for (const identity of this.#identities.values()) identity.stop();
  }
}

/** Loaded when there is a list: the library is large. */
const readRevocations: ReadRevocations = async (pem, authorities) =>
  (await import('../../certs/revocation-lists.ts')).readRevocationLists(pem, authorities);

function filesOf(options: NodeOptions): readonly (readonly [TlsPurpose, TlsFiles])[] {
  const { tlsCert, tlsKey, tlsPeerCert, tlsPeerKey } = options;
  const found: (readonly [TlsPurpose, TlsFiles])[] = [];
  if (tlsCert !== undefined && tlsKey !== undefined && clientTlsMode(options) !== 'plain') {
    found.push([
      'client',
      {
        certificate: { path: tlsCert, option: '--tls-cert' },
        key: { path: tlsKey, option: '--tls-key' },
        ca: fileOf(options.tlsClientCa, '--tls-client-ca'),
        revocations: fileOf(options.tlsClientRevoked, '--tls-client-revoked'),
        isMutual: false,
      },
    ]);
  }
  if (tlsPeerCert !== undefined && tlsPeerKey !== undefined && peerTlsMode(options) !== 'plain') {
    found.push([
      'peer',
      {
        certificate: { path: tlsPeerCert, option: '--tls-peer-cert' },
        key: { path: tlsPeerKey, option: '--tls-peer-key' },
        ca: fileOf(options.tlsPeerCa, '--tls-peer-ca'),
        revocations: fileOf(options.tlsPeerRevoked, '--tls-peer-revoked'),
        isMutual: true,
      },
    ]);
  }
  return found;
}

function fileOf(path: string | undefined, option: string) {
  return path === undefined ? undefined : { path, option };
}
