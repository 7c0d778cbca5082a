import type { Socket } from 'node:net';

/** A connection after its handshake. */
export interface SecuredSocket {
  readonly socket: Socket;
  /** Why the other end may not use the port. Nothing but that is sent to it. */
  readonly refusal: string | undefined;
}

/** TLS at a port, as the port needs it. */
export interface SecurePort {
  /** The port refuses connections in plain text. */
  readonly isRequired: boolean;
  /** Takes a connection from the first byte of its handshake on. `done` is not called for one that ends before. */
  accept(socket: Socket, done: (secured: SecuredSocket) => void): void;
}

/** The first bytes of a handshake of TLS 1.0 to 1.3: a record of type 22, and the major version 3 (RFC 8446, 5.1). */
export const TLS_BEGINS: Uint8Array = Uint8Array.of(0x16, 0x03);
