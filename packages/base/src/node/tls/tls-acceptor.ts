/**
 * The TLS side of a listening port.
 *
 * TA1. A connection whose certificate does not verify is handed over with the reason, and nothing but the reason is
 *      sent to it. So is one without a certificate at a port that requires one.
 * TA2. A handshake that waits for the other end holds up no other: at most `max` are in progress, and of an address at
 *      most `perAddressMax`; one more ends the oldest (crowd.ts). Their time limit is the port's.
 * TA3. A turn begins at most `HANDSHAKES_PER_TURN`, because each signs; the others wait in order. The connections of
 *      the port bound their number.
 * TA4. Failures are logged once a minute for each reason, with an address.
 * TA5. A port that asks for certificates resumes no session of TLS. A resumed session has lost the certificates that
 *      its client sent to vouch for its own, so the chain could not be verified again.
 */
import { constants } from 'node:crypto';
import { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import { RareLog } from '../../rare-log.ts';
import { addressKey } from '../frames/address-key.ts';
import { Crowd, type CrowdLimits } from '../frames/crowd.ts';
import type { SecuredSocket, SecurePort } from '../frames/secure-port.ts';
import { peerChainOf } from './peer-certificate.ts';
import { connectionErrorText, verificationText } from './tls-error-text.ts';
import type { TlsMaterial } from './tls-files.ts';
import { addressOf, type TlsIdentity } from './tls-identity.ts';

export interface TlsAcceptorOptions {
  /** Refuses connections in plain text. */
  readonly isRequired: boolean;
  readonly clientCertificates: 'off' | 'optional' | 'required';
  /** Names of ALPN, the preferred one first. */
  readonly protocols: readonly string[];
  readonly limits?: CrowdLimits;
}

export interface TlsAcceptorDeps {
  readonly identity: TlsIdentity;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A handshake holds some 50 KB. */
export const HANDSHAKE_LIMITS: CrowdLimits = { max: 1_000, perAddressMax: 500 };
export const HANDSHAKES_PER_TURN = 4;
/** Longer than any port waits, which ends a handshake by closing its connection. */
const NODE_HANDSHAKE_TIMEOUT_MS = 120_000;

interface Handshake {
  readonly address: string;
  spokeMs: number;
  readonly socket: Socket;
  readonly done: (secured: SecuredSocket) => void;
}

/** How many handshakes were refused, by reason, and how many are in progress. */
export interface HandshakeStats {
  readonly inProgress: number;
  readonly waiting: number;
  readonly completed: number;
  readonly failed: number;
  readonly refused: number;
}

export class TlsAcceptor implements SecurePort {
  readonly isRequired: boolean;
  readonly #options: TlsAcceptorOptions;
  readonly #deps: TlsAcceptorDeps;
  readonly #log: RareLog;
  readonly #server: Server;
  readonly #crowd: Crowd<Handshake>;
  readonly #byEnds = new Map<string, Handshake>();
  readonly #waiting: Handshake[] = [];
  #isBeginning = false;
  #completed = 0;
  #failed = 0;
  #refused = 0;

  constructor(options: TlsAcceptorOptions, deps: TlsAcceptorDeps) {
    this.isRequired = options.isRequired;
    this.#options = options;
    this.#deps = deps;
    this.#log = new RareLog(deps.clock, deps.logger);
    this.#crowd = new Crowd(options.limits ?? HANDSHAKE_LIMITS, (handshake) => {
      this.#crowd.remove(handshake);
      this.#failure(addressOf(handshake.socket), 'there are too many handshakes at a time');
      handshake.socket.destroy();
    });
    this.#server = createServer({
      ...this.#contextOf(deps.identity.material),
      requestCert: options.clientCertificates !== 'off',
      rejectUnauthorized: false, // TA1
      ALPNProtocols: [...options.protocols],
      handshakeTimeout: NODE_HANDSHAKE_TIMEOUT_MS,
    });
    deps.identity.onReload((material) => this.#server.setSecureContext(this.#contextOf(material)));
    this.#server.on('secureConnection', (socket) => this.#secured(socket));
    this.#server.on('tlsClientError', (error, socket) =>
      this.#failure(addressOf(parentOf(socket)), failureText(error)),
    );
  }

  /** TA5. */
  #contextOf({ options }: TlsMaterial): SecureContextOptions {
    if (this.#options.clientCertificates === 'off') return options;
    return { ...options, secureOptions: (options.secureOptions ?? 0) | constants.SSL_OP_NO_TICKET };
  }

  get stats(): HandshakeStats {
    return {
      inProgress: this.#crowd.size,
      waiting: this.#waiting.length,
      completed: this.#completed,
      failed: this.#failed,
      refused: this.#refused,
    };
  }

  /** Takes a connection from its first byte on. `done` is not called for one that ends before. */
  accept(socket: Socket, done: (secured: SecuredSocket) => void): void {
    const handshake = { address: addressKey(socket.remoteAddress), spokeMs: 0, socket, done };
    this.#waiting.push(handshake);
    if (!this.#isBeginning) this.#beginSome();
  }

  /** TA3. */
  #beginSome(): void {
    for (const handshake of this.#waiting.splice(0, HANDSHAKES_PER_TURN)) this.#begin(handshake);
    this.#isBeginning = this.#waiting.length > 0;
    if (this.#isBeginning) this.#deps.clock.setImmediate(() => this.#beginSome());
  }

  #begin(handshake: Handshake): void {
    const { socket } = handshake;
    if (socket.destroyed) return;
    const ends = endsOf(socket);
    this.#byEnds.set(ends, handshake);
    this.#crowd.add(handshake, this.#deps.clock.monotonicMs());
    socket.once('close', () => {
      this.#crowd.remove(handshake);
      if (this.#byEnds.get(ends) === handshake) this.#byEnds.delete(ends);
    });
    this.#server.emit('connection', socket);
  }

  #secured(socket: TLSSocket): void {
    socket.on('error', () => undefined); // a broken connection is closed, which is enough
    const ends = endsOf(socket);
    const handshake = this.#byEnds.get(ends);
    if (handshake === undefined) return void socket.destroy(); // its other end has left
    this.#byEnds.delete(ends);
    this.#crowd.remove(handshake);
    const refusal = this.#refusal(socket);
    if (refusal === undefined) {
      this.#completed++;
      this.#deps.identity.watch(socket);
    } else {
      this.#refused++;
      this.#log.warn(refusal, { address: addressOf(socket), reason: refusal }, 'refused a client by its certificate');
    }
    handshake.done({ socket, refusal });
  }

  /** TA1. */
  #refusal(socket: TLSSocket): string | undefined {
    const { clientCertificates } = this.#options;
    if (clientCertificates === 'off') return undefined;
    if (peerChainOf(socket).length === 0) {
      return clientCertificates === 'optional' ? undefined : 'this port requires a client certificate';
    }
    if (socket.authorized) return this.#deps.identity.refusalOf(socket);
    const code = String(socket.authorizationError);
    return verificationText(code) ?? `the certificate does not verify: ${code}`;
  }

  #failure(address: string, reason: string): void {
    this.#failed++;
    this.#log.warn(kindOf(reason), { address, reason }, 'a TLS handshake failed');
  }
}

/**
 * The socket below: a TLS socket that has failed no longer knows its address. Node has it under this name since it has
 * TLS; without it, a log line lacks the address.
 */
function parentOf(socket: TLSSocket): Socket {
  return '_parent' in socket && socket._parent instanceof Socket ? socket._parent : socket;
}

function failureText(error: NodeJS.ErrnoException): string {
  if (error.code !== 'ECONNRESET') return connectionErrorText(error);
  return 'the other end closed the connection; perhaps it does not trust the certificate of this end';
}

/** The kinds of `RareLog` are from a small set, and texts of OpenSSL may contain anything. */
function kindOf(reason: string): string {
  return reason.replace(/[0-9A-F]{6,}|\d+/g, '').slice(0, 64);
}

/** The two ends of a connection; no two connections have the same. A socket and the one that TLS makes of it agree. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
