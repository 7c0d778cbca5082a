import type { Timers } from '../timers.ts';
import type { Inflater } from './inflate.ts';
import type { GrpcLimits } from './limits.ts';

/** What calls need of their server. */
export interface CallServer {
  readonly limits: GrpcLimits;
  readonly timers: Timers;
  readonly inflater: Inflater;
  /** A call with a deadline has begun. */
  watchDeadlines(): void;
  refused(limit: keyof GrpcLimits): void;
  /** A method, or a handler of a call, has thrown. */
  threw(error: unknown, path: string): void;
}

/** The connection of a call: one object for all calls of it. */
export class CallConnection {
  readonly server: CallServer;
  /** The client's address and port, if the socket has one. */
  readonly peer: string;
  /** For the server's owner. */
  state: unknown;

  constructor(server: CallServer, peer: string, state: unknown) {
    this.server = server;
    this.peer = peer;
    this.state = state;
  }
}
