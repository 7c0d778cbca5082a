/** Remembers which names of hosts could not be resolved, so that the node can report them. */
import { connect, isIP, type Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import type { Connector, Target } from './connector.ts';
import { systemHosts } from './host-names.ts';

export interface FailedLookup {
  readonly host: string;
  /** Such as ENOTFOUND. */
  readonly code: string;
}

/** Peers that cannot be reached are dialled again within seconds; a name that nobody dials any more is forgotten. */
const FORGOTTEN_AFTER_MS = 60_000;
/** As many names as a large cluster has nodes; further ones are not remembered. */
const FAILURES_MAX = 100;

/** Opens sockets, by `connector` if there is one, otherwise in plain text. */
export class NameLookups implements Connector {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #connector: Connector | undefined;
  readonly #failed = new Map<string, { readonly code: string; readonly atMs: number }>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, connector: Connector | undefined) {
    this.#clock = clock;
    this.#connector = connector;
  }

  connect(target: Target): Socket {
    const socket = this.#connector?.connect(target) ?? connect({ ...systemHosts.dialOptions, ...target });
    const { host } = target;
    if (isIP(host) === 0) socket.on('lookup', (error: NodeJS.ErrnoException | null) => this.#lookedUp(host, error));
    return socket;
  }

  /** Names whose last lookup failed. */
  get failed(): readonly FailedLookup[] {
    const sinceMs = this.#clock.monotonicMs() - FORGOTTEN_AFTER_MS;
    for (const [host, { atMs }] of this.#failed) {
      if (atMs < sinceMs) this.#failed.delete(host);
    }
    return [...this.#failed].map(([host, { code }]) => ({ host, code }));
  }

  #lookedUp(host: string, error: NodeJS.ErrnoException | null): void {
    if (!error) this.#failed.delete(host);
    else if (this.#failed.has(host) || this.#failed.size < FAILURES_MAX) {
      this.#failed.set(host, { code: error.code ?? error.message, atMs: this.#clock.monotonicMs() });
    }
  }
}
