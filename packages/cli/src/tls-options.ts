/** Options of a node about TLS. */
import { oneOf, string } from '@remora/base';

const CLIENT_CERTIFICATES = ['off', 'optional', 'required'] as const;
const TLS_MODES = ['plain', 'both', 'tls'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

const group = 'TLS';
const file = () => string({ placeholder: '<file>' });

export const tlsOptions = {
  tlsCert: {
    type: file(),
    desc: 'Certificate of this node for clients, in PEM form, followed by those that lead to its authority. All files of certificates and keys are read again when they change, and on SIGHUP.',
    group,
  },
  tlsKey: { type: file(), desc: 'Private key of --tls-cert. Only this node may be able to read it.', group },
  tlsMode: {
    type: oneOf(TLS_MODES),
    desc: 'Connections that the client port and the HTTP port accept: plain text, both, or TLS alone. Default: tls with --tls-cert, else plain. Use both only while clients change to TLS.',
    group,
  },
  tlsClientCertificates: {
    type: oneOf(CLIENT_CERTIFICATES),
    default: 'off',
    desc: "Whether clients show a certificate, whose common name is then the client's user. One that does not verify is refused, also where it is optional.",
    group,
  },
  tlsClientCa: {
    type: file(),
    desc: 'Certificate authorities of clients. Do not use that of nodes: the certificate of a client must not make a node.',
    group,
  },
  tlsClientRevoked: {
    type: file(),
    desc: 'Revocation lists of --tls-client-ca, in PEM form. Connections of revoked certificates are closed within 10 seconds.',
    group,
  },
  tlsPeerCert: {
    type: file(),
    desc: 'Certificate of this node for other nodes, which always verify each other. It names the node: spiffe://<trust domain>/node/<name>, or else its peer address.',
    group,
  },
  tlsPeerKey: { type: file(), desc: 'Private key of --tls-peer-cert.', group },
  tlsPeerCa: {
    type: file(),
    desc: 'Certificate authorities of nodes. Each certificate that they sign can make a node of the cluster.',
    group,
  },
  tlsPeerRevoked: { type: file(), desc: 'Revocation lists of --tls-peer-ca, in PEM form.', group },
  tlsPeerMode: {
    type: oneOf(TLS_MODES),
    desc: 'Connections between nodes: plain text, both, or TLS alone. Default: tls with --tls-peer-cert, else plain. With both, a node prefers TLS; restart all nodes with both, then all with tls.',
    group,
  },
} as const;

interface TlsValues {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsMode?: TlsMode | undefined;
  readonly tlsClientCertificates: (typeof CLIENT_CERTIFICATES)[number];
  readonly tlsClientCa?: string | undefined;
  readonly tlsClientRevoked?: string | undefined;
  readonly tlsPeerCert?: string | undefined;
  readonly tlsPeerKey?: string | undefined;
  readonly tlsPeerCa?: string | undefined;
  readonly tlsPeerRevoked?: string | undefined;
  readonly tlsPeerMode?: TlsMode | undefined;
}

interface TlsRelation {
  readonly between: readonly (keyof TlsValues)[];
  readonly holds: (values: TlsValues) => boolean;
  readonly must: string;
}

/** The second option is useless, or impossible, without the first. */
function needs(option: keyof TlsValues, other: keyof TlsValues, flag: string): TlsRelation {
  return {
    between: [option, other],
    holds: (values) => values[option] === undefined || values[other] !== undefined,
    must: `be given together with ${flag}`,
  };
}

export const TLS_RELATIONS: readonly TlsRelation[] = [
  needs('tlsCert', 'tlsKey', '--tls-key'),
  needs('tlsKey', 'tlsCert', '--tls-cert'),
  needs('tlsClientCa', 'tlsCert', '--tls-cert'),
  needs('tlsClientRevoked', 'tlsClientCa', '--tls-client-ca'),
  needs('tlsPeerCert', 'tlsPeerKey', '--tls-peer-key'),
  needs('tlsPeerCert', 'tlsPeerCa', '--tls-peer-ca'),
  needs('tlsPeerKey', 'tlsPeerCert', '--tls-peer-cert'),
  needs('tlsPeerCa', 'tlsPeerCert', '--tls-peer-cert'),
  needs('tlsPeerRevoked', 'tlsPeerCa', '--tls-peer-ca'),
  {
    between: ['tlsClientCertificates', 'tlsClientCa'],
    holds: ({ tlsClientCertificates, tlsClientCa }) =>
      (tlsClientCertificates === 'off') === (tlsClientCa === undefined),
    must: 'be optional or required with --tls-client-ca, and off without it',
  },
  {
    between: ['tlsMode', 'tlsCert'],
    holds: ({ tlsMode = 'plain', tlsCert }) => tlsMode === 'plain' || tlsCert !== undefined,
    must: 'be plain unless --tls-cert and --tls-key are given; "remora cert" makes both',
  },
  {
    between: ['tlsPeerMode', 'tlsPeerCert'],
    holds: ({ tlsPeerMode = 'plain', tlsPeerCert }) => tlsPeerMode === 'plain' || tlsPeerCert !== undefined,
    must: 'be plain unless --tls-peer-cert, --tls-peer-key and --tls-peer-ca are given; "remora cert" makes them',
  },
];

/** What the client port and the HTTP port accept. */
export function clientTlsMode({ tlsMode, tlsCert }: Pick<TlsValues, 'tlsMode' | 'tlsCert'>): TlsMode {
  return tlsMode ?? (tlsCert === undefined ? 'plain' : 'tls');
}

/** How nodes connect to each other. */
export function peerTlsMode({ tlsPeerMode, tlsPeerCert }: Pick<TlsValues, 'tlsPeerMode' | 'tlsPeerCert'>): TlsMode {
  return tlsPeerMode ?? (tlsPeerCert === undefined ? 'plain' : 'tls');
}
