import { type Clock, type Logger, type Random, ServiceError, silentLogger, type Timer } from '@remora/base';
import { type CallerLimits, LinkCaller } from './caller.ts';
import type { FrameLink } from './link.ts';
import type { LinkGuardFactory } from './link-guard.ts';
import { createLocalChannel } from './local-channel.ts';
import { isRefusal } from './pending-call.ts';
import type { RpcDispatcher } from './registry.ts';
import type { CallHandle, CallOptions, Done, Method, RpcChannel, RpcDialer, StreamHandle } from './rpc.ts';

/**
 * Begins a link; the link itself reports whether it opens. `nodeId` 0: any node that answers there; for the Pipe, a
 * gateway of `cluster` if that is given.
 */
export type LinkConnector = (target: {
  readonly address: string;
  readonly nodeId: number;
  readonly cluster?: string;
}) => FrameLink;

export interface DialerPorts {
  readonly localNodeId: number;
  readonly registry: RpcDispatcher;
  /** Called for each attempt, because a node may move; returns undefined while the address is not known. */
  readonly resolveAddress: (nodeId: number) => string | undefined;
  /** An attempt to reach the node at this address has failed: nobody answers there, or another node does. */
  readonly onUnreached?: (nodeId: number, address: string) => void;
  readonly connect: LinkConnector;
  /** Admits each new link. Absent: an open link is admitted. */
  readonly guard?: LinkGuardFactory | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger?: Logger;
  readonly options?: Partial<DialerOptions>;
}

export interface DialerOptions {
  readonly connectTimeoutMs: number;
  /** The first pause after a failed attempt; each further one doubles it, up to the maximum. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  readonly limits: CallerLimits | undefined;
}

const DEFAULTS: DialerOptions = {
  connectTimeoutMs: 3_000,
  backoffMinMs: 50,
  backoffMaxMs: 2_000,
  limits: undefined,
};

/** A peer that stays unreachable is logged once, and then at this interval. */
const STILL_AWAY_LOG_MS = 60_000;

export type ClosableDialer = RpcDialer & { close(): void };

/** Keeps one channel per peer; calls to the local node go to its handlers directly. */
export function createDialer(ports: DialerPorts): ClosableDialer {
  const local = createLocalChannel({ registry: ports.registry, clock: ports.clock });
  const byNode = new Map<number, ReconnectingChannel>();
  const byAddress = new Map<string, ReconnectingChannel>();
  return {
    channel(nodeId) {
      if (nodeId === ports.localNodeId) return local;
      let channel = byNode.get(nodeId);
      if (channel === undefined) {
        channel = new ReconnectingChannel(ports, nodeId, () => ports.resolveAddress(nodeId));
        byNode.set(nodeId, channel);
      }
      return channel;
    },
    channelTo(address) {
      let channel = byAddress.get(address);
      if (channel === undefined) {
        channel = new ReconnectingChannel(ports, 0, () => address);
        byAddress.set(address, channel);
      }
      return channel;
    },
    close() {
      for (const channel of [...byNode.values(), ...byAddress.values()]) channel.close();
    },
  };
}

/**
 * A channel over one link at a time. A call uses the open link, waits while it is being opened, or begins a new one; in
 * the pause after a failed attempt it fails at once with UNAVAILABLE. Without calls no attempt is made.
 */
export class ReconnectingChannel implements RpcChannel {
  readonly #ports: Omit<DialerPorts, 'localNodeId' | 'registry' | 'resolveAddress'>;
  readonly #options: DialerOptions;
  readonly #nodeId: number;
  readonly #address: () => string | undefined;
  readonly #logger: Logger;
  #caller: LinkCaller | undefined;
  #connectTimer: Timer | undefined;
  #failures = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #lastError: ServiceError | undefined;
  #loggedMs = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(
    ports: Omit<DialerPorts, 'localNodeId' | 'registry' | 'resolveAddress'>,
    nodeId: number,
    address: () => string | undefined,
  ) {
    this.#ports = ports;
    this.#options = { ...DEFAULTS, ...ports.options };
    this.#nodeId = nodeId;
    this.#address = address;
    this.#logger = ports.logger ?? silentLogger;
  }

  /** False while there is no link, not even one that is being opened. */
  get connected(): boolean {
    return this.#caller !== undefined;
  }

  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
  ): CallHandle {
    const caller = this.#obtain();
    if (caller instanceof ServiceError) {
      done(caller, undefined);
      return { cancel() {} };
    }
    return caller.call(method, request, options, done);
  }

  openStream<Request, Message>(
    method: Method<Request, Message>,
    request: Request,
    onMessage: (message: Message) => void,
    onEnd: (error: ServiceError | undefined) => void,
  ): StreamHandle<Request> {
    const caller = this.#obtain();
    if (caller instanceof ServiceError) {
      onEnd(caller);
      return { send() {}, cancel() {} };
    }
    return caller.openStream(method, request, onMessage, onEnd);
  }

  /** Sends waiting items now, instead of at the end of the turn. */
  flush(): void {
    this.#caller?.flush();
  }

  close(): void {
    this.#closed = true;
    this.#connectTimer?.cancel();
    const caller = this.#caller;
    this.#caller = undefined;
    caller?.close(new ServiceError('UNAVAILABLE', 'this node is stopping'));
  }

  #obtain(): LinkCaller | ServiceError {
    if (this.#caller !== undefined) return this.#caller;
    if (this.#closed) return new ServiceError('UNAVAILABLE', 'this node is stopping');
    if (this.#ports.clock.monotonicMs() < this.#notBeforeMs) return this.#unreachable();
    const address = this.#address();
    if (address === undefined) {
      return new ServiceError('UNAVAILABLE', `the address of node ${this.#nodeId} is not known`);
    }
    return this.#connect(address);
  }

  #unreachable(): ServiceError {
    const cause = this.#lastError;
    if (cause !== undefined && isRefusal(cause)) return cause;
    const name = this.#nodeId === 0 ? (this.#address() ?? '') : `node ${this.#nodeId}`;
    const why = cause === undefined ? '' : `: ${cause.message}`;
    return new ServiceError('UNAVAILABLE', `${name} cannot be reached${why}`, { cause });
  }

  #connect(address: string): LinkCaller | ServiceError {
    const { clock } = this.#ports;
    const { limits, connectTimeoutMs } = this.#options;
    const link = this.#ports.connect({ address, nodeId: this.#nodeId });
    const { guard } = this.#ports;
    let opened = false;
    let admitted = false;
    let ended = false;
    const caller = new LinkCaller({
      link,
      clock,
      ...(limits === undefined ? {} : { limits }),
      ...(guard === undefined ? {} : { guard: (guarded) => guard(guarded, address) }),
      onOpen: () => {
        opened = true;
        this.#connectTimer?.cancel(); // A guard limits its own time.
      },
      onAdmitted: () => {
        admitted = true;
        this.#failures = 0;
      },
      onClose: (error) => {
        ended = true;
        if (!opened && this.#nodeId !== 0) this.#ports.onUnreached?.(this.#nodeId, address);
        this.#onClosed(caller, error, admitted);
      },
    });
    if (ended) return this.#unreachable();
    this.#caller = caller;
    if (!opened) {
      this.#connectTimer = clock.setTimer(connectTimeoutMs, () => {
        caller.close(new ServiceError('UNAVAILABLE', `no connection to ${address} within ${connectTimeoutMs} ms`));
      });
    }
    return caller;
  }

  #onClosed(caller: LinkCaller | undefined, error: ServiceError, admitted: boolean): void {
    if (this.#caller === caller) this.#caller = undefined;
    this.#connectTimer?.cancel();
    this.#lastError = error;
    this.#failures = admitted ? 0 : this.#failures + 1;
    const { backoffMinMs, backoffMaxMs } = this.#options;
    // A link that worked is replaced at once; after one that was never usable, attempts back off, with jitter.
    const ceilingMs = admitted ? 0 : Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(this.#failures - 1, 16));
    const pauseMs = ceilingMs === 0 ? 0 : ceilingMs / 2 + this.#ports.random.int(Math.ceil(ceilingMs / 2));
    const nowMs = this.#ports.clock.monotonicMs();
    this.#notBeforeMs = nowMs + pauseMs;
    if (this.#failures > 1 && nowMs - this.#loggedMs < STILL_AWAY_LOG_MS) return;
    this.#loggedMs = nowMs;
    const { code, message: reason } = error;
    const attempts = this.#failures;
    this.#logger.info(
      { peer: this.#nodeId, address: this.#address(), opened: admitted, attempts, pauseMs, code, reason },
      'link to peer ended',
    );
  }
}
