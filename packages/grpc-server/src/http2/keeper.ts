/**
 * What a connection owes with time, looked at once a tick, and how often its client may ping.
 *
 * K1. A client that keeps sending PING frames sooner than `pingIntervalMs` after the last one gets ENHANCE_YOUR_CALM at
 *     the third, as from etcd. Each HEADERS or DATA frame that this side sends forgives all before it: clients
 *     measure the network by pings while they receive (gRPC's A8 "keepalive", and grpc-go's enforcement).
 * K2. A silent connection is sent a PING, and closed if nothing arrives.
 */
import type { Timers } from '../timers.ts';
import type { Http2Limits } from './limits.ts';

/** The length of a tick. */
export const TICK_MS = 1_000;

/** What a tick asks the connection to do. */
export type TickAction = 'nothing' | 'ping' | 'closeSilent' | 'closeUngreeted' | 'closeUnsettled';

export class Keeper {
  readonly #limits: Http2Limits;
  readonly #timers: Timers;
  ticks = 0;
  /** Whether anything has arrived since the last tick. */
  heard = false;
  /** The client's first SETTINGS have arrived. */
  isGreeted = false;
  /** The client has acknowledged ours. */
  isSettled = false;
  /** Whether HEADERS or DATA were sent since the last PING of the client (K1). */
  hasAnswered = false;
  #silentTicks = 0;
  #strikes = 0;
  #lastPingMs = Number.NEGATIVE_INFINITY;

  constructor(limits: Http2Limits, timers: Timers) {
    this.#limits = limits;
    this.#timers = timers;
  }

  /** Counts a PING of the client. Returns true if there have been too many (K1). */
  isPingTooEarly(): boolean {
    const nowMs = this.#timers.monotonicMs();
    const isEarly = nowMs - this.#lastPingMs < this.#limits.pingIntervalMs;
    this.#lastPingMs = nowMs;
    if (this.hasAnswered) {
      this.hasAnswered = false;
      this.#strikes = 0;
    } else if (isEarly) this.#strikes++;
    return this.#strikes > this.#limits.pingStrikesMax;
  }

  tick(): TickAction {
    this.ticks++;
    const { prefaceMs, settingsAckMs, keepAliveMs, keepAliveTimeoutMs } = this.#limits;
    const ageMs = this.ticks * TICK_MS;
    if (!this.isGreeted && ageMs > prefaceMs) return 'closeUngreeted';
    if (!this.isSettled && ageMs > settingsAckMs) return 'closeUnsettled';
    this.#silentTicks = this.heard ? 0 : this.#silentTicks + 1;
    this.heard = false;
    const silentMs = this.#silentTicks * TICK_MS;
    if (silentMs >= keepAliveMs + keepAliveTimeoutMs) return 'closeSilent'; // K2
    const isTime = silentMs >= keepAliveMs && silentMs < keepAliveMs + TICK_MS;
    return isTime ? 'ping' : 'nothing';
  }

  /** The tick before which something must have begun to be older than `ms` now. */
  tickBefore(ms: number): number {
    return this.ticks - Math.ceil(ms / TICK_MS);
  }
}
