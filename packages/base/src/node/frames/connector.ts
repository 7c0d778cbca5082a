import type { Socket } from 'node:net';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Opens the sockets of outgoing streams. */
export interface Connector {
  connect(target: Target): Socket;
}
