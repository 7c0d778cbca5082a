import type { Clock, Random, Timer } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { type PipeGateways, pipeQuery } from '@remora/protocol';
import type { AcknowledgedBeat } from '../ports.ts';
import type { KnownToken } from '../transport/log-ins.ts';
import type { Requester } from '../transport/requester.ts';

/**
 * The messages of a client to its background renewer. Sessions have numbers; times are those of the client's monotonic
 * clock.
 */
export type BackgroundRenewerRequest =
  | {
      readonly type: 'renew';
      readonly id: number;
      readonly session: SessionRef;
      readonly intervalMs: number;
      /** When the last acknowledged heartbeat was sent. */
      readonly sentMs: number;
    }
  | { readonly type: 'pace'; readonly id: number; readonly intervalMs: number }
  | { readonly type: 'until'; readonly id: number; readonly atMs: number }
  | { readonly type: 'acknowledged'; readonly id: number; readonly sentMs: number }
  | { readonly type: 'end'; readonly id: number }
  /** Further gateways. */
  | { readonly type: 'gateways'; readonly gateways: PipeGateways }
  /** A token that the client has obtained. */
  | { readonly type: 'token'; readonly token: KnownToken }
  /** The client's thread was not blocked at this moment. */
  | { readonly type: 'alive'; readonly atMs: number };

/** An acknowledged heartbeat of the background renewer. */
export type BackgroundRenewerReport = AcknowledgedBeat & { readonly id: number };

export interface BackgroundRenewerOptions {
  /** How long it renews after the last sign of life of the client's thread. */
  readonly blockMaxMs: number;
  readonly report: (report: BackgroundRenewerReport) => void;
  /** The client has named further gateways. */
  readonly learn: (gateways: PipeGateways) => void;
  /** The client has obtained a token. */
  readonly useToken: (token: KnownToken) => void;
}

/** It steps in after this many intervals without an acknowledged heartbeat: the client sends one each interval. */
const PATIENCE = 1.5;
const PAUSE_MS = 50;
/** SI4. A healthy gateway answers sooner. */
const ANSWER_MIN_MS = 100;

interface Renewed {
  readonly id: number;
  readonly session: SessionRef;
  intervalMs: number;
  sentMs: number;
  /** It is not renewed from this moment on (SI2). */
  untilMs: number;
  /** The renewer has stepped in, and the client has sent no heartbeat since. */
  steppedIn: boolean;
  /** The number of the last heartbeat. */
  beats: number;
  /** Fires when the next heartbeat may be due, or when the last one has had no answer for too long. */
  timer: Timer | undefined;
}

/**
 * Sends the heartbeats of a client whose thread is blocked, from another thread and over a connection of its own.
 *
 * SI1. It sends no heartbeats while the client does. Otherwise it sends them at the client's interval.
 * SI2. It continues for `blockMaxMs` after the client's last sign of life, and no longer: what a client holds that
 *      hangs forever is free at most that time and a TTL later. A session with a limit (`until`) is renewed until that
 *      limit.
 * SI3. It decides nothing about a session. It reports which heartbeats were acknowledged, with their send times, and
 *      the client treats them like its own (session.ts, S1 to S6).
 * SI4. A heartbeat that is not answered soon is also sent through the next gateway, so that every gateway is tried
 *      while the session is alive. Whichever answer arrives counts (as S8 of session.ts).
 */
export class BackgroundRenewer {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #requester: Pick<Requester, 'attempt' | 'gateways'>;
  readonly #options: BackgroundRenewerOptions;
  readonly #sessions = new Map<number, Renewed>();
  #aliveMs: number;

  constructor(requester: Pick<Requester, 'attempt' | 'gateways' | 'ports'>, options: BackgroundRenewerOptions) {
    this.#clock = requester.ports.clock;
    this.#random = requester.ports.random;
    this.#requester = requester;
    this.#options = options;
    this.#aliveMs = this.#clock.monotonicMs();
  }

  receive(request: BackgroundRenewerRequest): void {
    if (request.type === 'alive') {
      this.#aliveMs = Math.max(this.#aliveMs, request.atMs);
      return;
    }
    if (request.type === 'gateways') return this.#options.learn(request.gateways);
    if (request.type === 'token') return this.#options.useToken(request.token);
    if (request.type === 'renew') {
      const { id, session, intervalMs, sentMs } = request;
      const still = { untilMs: Number.POSITIVE_INFINITY, steppedIn: false, beats: 0, timer: undefined };
      const renewed: Renewed = { id, session, intervalMs, sentMs, ...still };
      this.#sessions.set(id, renewed);
      return this.#waitFor(renewed);
    }
    const renewed = this.#sessions.get(request.id);
    if (renewed === undefined) return;
    switch (request.type) {
      case 'acknowledged':
        renewed.sentMs = Math.max(renewed.sentMs, request.sentMs);
        renewed.steppedIn = false;
        return;
      case 'pace':
        renewed.intervalMs = request.intervalMs;
        return this.#waitFor(renewed);
      case 'until':
        renewed.untilMs = request.atMs;
        return;
      case 'end':
        return this.#forget(renewed);
    }
  }

  #dueMs({ sentMs, intervalMs, steppedIn }: Renewed): number {
    return sentMs + intervalMs * (steppedIn ? 1 : PATIENCE);
  }

  #waitFor(renewed: Renewed): void {
    this.#again(renewed, this.#dueMs(renewed) - this.#clock.monotonicMs());
  }

  #again(renewed: Renewed, delayMs: number): void {
    renewed.timer?.cancel();
    renewed.timer = this.#clock.setTimer(Math.max(1, delayMs), () => this.#look(renewed));
  }

  /** SI1, SI2. */
  #look(renewed: Renewed): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= renewed.untilMs) this.#forget(renewed);
    else if (nowMs < this.#dueMs(renewed)) this.#waitFor(renewed);
    else if (nowMs - this.#aliveMs > this.#options.blockMaxMs) this.#again(renewed, renewed.intervalMs);
    else this.#beat(renewed);
  }

  #beat(renewed: Renewed): void {
    const sentMs = this.#clock.monotonicMs();
    const sentWallMs = this.#clock.wallMs();
    const { id, session, intervalMs } = renewed;
    const { lease, incarnation } = session;
    const request = { query: { type: 'leaseKeepAlive', id: lease, incarnation }, timeoutMs: intervalMs } as const;
    const beat = ++renewed.beats;
    this.#askBesides(renewed);
    this.#requester.attempt(pipeQuery, request, intervalMs, (error, reply) => {
      if (this.#sessions.get(id) !== renewed) return;
      const result = reply?.result;
      const gone = error?.code === 'LEASE_NOT_FOUND' || error?.code === 'SESSION_EXPIRED';
      // The client will learn that from its own next heartbeat.
      if (gone || (result?.type === 'leaseKeepAlive' && result.ttlMs <= 0)) return this.#forget(renewed);
      if (result?.type !== 'leaseKeepAlive') {
        if (beat !== renewed.beats) return;
        return this.#again(renewed, Math.min(PAUSE_MS, intervalMs / 4) + this.#random.int(PAUSE_MS));
      }
      if (sentMs > renewed.sentMs) {
        renewed.sentMs = sentMs;
        renewed.steppedIn = true;
        this.#options.report({ id, sentMs, sentWallMs, ttlMs: result.ttlMs });
      }
      this.#waitFor(renewed);
    });
  }

  /** SI4. */
  #askBesides(renewed: Renewed): void {
    const { gateways } = this.#requester;
    const { channel } = gateways;
    renewed.timer?.cancel();
    if (gateways.count === 1) return;
    const patienceMs = Math.max(ANSWER_MIN_MS, renewed.intervalMs / (gateways.count + 1));
    renewed.timer = this.#clock.setTimer(patienceMs, () => {
      gateways.failed(channel, true);
      this.#look(renewed);
    });
  }

  #forget(renewed: Renewed): void {
    renewed.timer?.cancel();
    this.#sessions.delete(renewed.id);
  }
}
