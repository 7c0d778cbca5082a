/** TLS: each rule about certificates and handshakes broken, and its test. */
import type { RuleMutation } from './mutation.ts';

const PORT = 'packages/cli/test/tls/tls-port.test.ts';
const FILES = 'packages/cli/test/tls/tls-files.test.ts';
const HTTP = 'packages/cli/test/tls/tls-http.test.ts';
const IDENTITIES = 'packages/cli/src/node/cluster/peer-identities.test.ts';
const TRUST = 'packages/base/src/node/tls/trust.ts';
const IDENTITY = 'packages/base/src/node/tls/tls-identity.ts';
const ACCEPTOR = 'packages/base/src/node/tls/tls-acceptor.ts';

export const TLS_RULES: readonly RuleMutation[] = [
  {
    name: 'plain-where-tls-is-required',
    rule: 'a port that requires TLS serves nothing in plain text (frame-port.ts)',
    file: 'packages/base/src/node/frames/frame-port.ts',
    find: 'if (secure.isRequired) return sendAway(socket, kind, TLS_REQUIRED, received);',
    replace: '',
    killedBy: { file: PORT, test: 'tells a client in plain text what to use' },
  },
  {
    name: 'plain-http-where-tls-is-required',
    rule: 'an HTTP port that requires TLS serves nothing in plain text (secure-http.ts)',
    file: 'packages/cli/src/node/ports/secure-http.ts',
    find: 'if (secure.isRequired) return',
    replace: 'if (false) return',
    killedBy: {
      file: HTTP,
      test: 'a request in plain text is refused with the advice to use https, or answered where both are allowed',
    },
  },
  {
    name: 'certificates-of-anybody',
    rule: 'a certificate that does not verify is refused, also where it is optional (tls-acceptor.ts TA1)',
    file: ACCEPTOR,
    find: 'if (socket.authorized) return',
    replace: 'if (socket.encrypted) return',
    killedBy: { file: PORT, test: 'with the certificate of a server are refused: it is not for this purpose' },
  },
  {
    name: 'refused-clients-are-served',
    rule: 'nothing but the reason is sent to a refused client (tls-acceptor.ts TA1)',
    file: 'packages/base/src/node/frames/frame-port.ts',
    find: 'if (secured.refusal === undefined) return serveKind(',
    replace: 'if (secured.refusal !== null) return serveKind(',
    killedBy: { file: PORT, test: 'that are missing where they are required are asked for in the refusal' },
  },
  {
    name: 'sessions-without-their-chain',
    rule: 'a port that asks for certificates resumes no session (tls-acceptor.ts TA5)',
    file: ACCEPTOR,
    find: "if (this.#options.clientCertificates === 'off') return options;",
    replace: "if (this.#options.clientCertificates !== 'never') return options;",
    killedBy: { file: PORT, test: "of 'TLSv1.3' is resumed where certificates are 'optional': false (TA5)" },
  },
  {
    name: 'handshakes-without-bound',
    rule: 'handshakes in progress are bounded, and the oldest ends (tls-acceptor.ts TA2)',
    file: ACCEPTOR,
    find: 'this.#crowd.add(handshake, this.#deps.clock.monotonicMs());',
    replace: '',
    killedBy: { file: PORT, test: 'that stall hold up no other, and those beyond the bound end the oldest (TA2)' },
  },
  {
    name: 'revocation-is-not-looked-up',
    rule: 'a revoked certificate does not verify (trust.ts)',
    file: TRUST,
    find: "if (isRevoked(current, issuer, trust)) return 'the certificate is revoked';",
    replace: '',
    killedBy: { file: PORT, test: 'closes the connections of certificates that were revoked, and no others (TI4)' },
  },
  {
    name: 'half-of-the-files',
    rule: 'a certificate whose key has not been replaced yet changes nothing (tls-files.ts TF1)',
    file: 'packages/base/src/node/tls/tls-files.ts',
    find: 'if (!certificate.checkPrivateKey(keyOf(files.key, texts.key))) {',
    replace: 'if (false) {',
    killedBy: {
      file: FILES,
      test: "'the key of another certificate' is an error that names the option, the file and the fault (TF2)",
    },
  },
  {
    name: 'connections-outlive-their-certificate',
    rule: 'a connection is closed when the certificate of its other end expires (tls-identity.ts TI4)',
    file: IDENTITY,
    find: "if (expiresMs < nowMs) this.#close(socket, 'the certificate has expired');",
    replace: '',
    killedBy: { file: PORT, test: 'a connection is closed when the certificate of its other end expires (TI4)' },
  },
  {
    name: 'connections-outlive-their-authority',
    rule: 'connections are verified again when authorities change (tls-identity.ts TI4)',
    file: IDENTITY,
    find: 'if (sameTexts(authorities, material.trust.authorities) && ',
    replace: 'if (',
    killedBy: { file: PORT, test: 'closes the connections of an authority that is no longer trusted (TI4)' },
  },
  {
    name: 'fall-back-although-tls-is-required',
    rule: 'a node that requires TLS never dials in plain text (tls-connector.ts TC2)',
    file: 'packages/base/src/node/tls/tls-connector.ts',
    find: 'if (!this.#isRequired) {',
    replace: 'if (true) {',
    killedBy: { file: PORT, test: 'that requires TLS never falls back' },
  },
  {
    name: 'any-node-certificate-is-every-node',
    rule: 'a peer shows the certificate of the node whose id it presents (peer-identities.ts PI5)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'if (node === undefined || certifies(certificate, node)) return undefined;',
    replace: 'return undefined;',
    killedBy: { file: IDENTITIES, test: "that 'names another node'" },
  },
  {
    name: 'trust-domains-are-alike',
    rule: 'the trust domain tells clusters of one authority apart (peer-identities.ts PI5)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'domain !== undefined && own !== undefined && domain !== own',
    replace: 'domain === undefined && own !== undefined && domain !== own',
    killedBy: { file: IDENTITIES, test: "that 'names a node of another trust domain'" },
  },
];
