import type { Clock, Logger, Random } from '@remora/base';
import type { LinkConnector } from '@remora/protocol';

/** What the SDK needs of its surroundings; `connect` wires it to Node, the simulator to its virtual world. */
export interface ClientPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Begins a Pipe to a gateway's address. */
  readonly connectLink: LinkConnector;
  readonly liveness: Liveness;
}

/** Keeps the process alive while the caller awaits something; timers do not. */
export interface Liveness {
  hold(): void;
  release(): void;
}
