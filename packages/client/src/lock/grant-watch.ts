import type { Timer } from '@remora/base';
import type { LockId, Revocation, SessionRef } from '@remora/lock';
import type { CallHandle } from '@remora/protocol';
import type { Requester } from '../transport/requester.ts';

/** What the watches need of the client's requester. */
export type Asks = Pick<Requester, 'ask' | 'ports'>;

export interface WatchedGrant {
  readonly lock: LockId;
  readonly version: number;
  /** The session of the holder. */
  readonly session: SessionRef;
}

export interface GrantListener {
  /** Called once when the grant has ended. `sessionAlive`: whether its session still exists. */
  readonly onEnd: (sessionAlive: boolean) => void;
  /** Called for each revocation; absent when nobody listens. */
  readonly onAsked?: ((revocation: Revocation) => void) | undefined;
}

/** Most locks are released before that, and are never watched. */
const DELAY_MS = 100;
/** A query is repeated after this long, so that a lost one is noticed. */
const ASK_MS = 15_000;
/** After a failure, and while too many queries are open. */
const PAUSE_MS = 1_000;
/** After an error that the same gateway would return again, for example because it does not know the query. */
const LONG_PAUSE_MS = 30_000;
/** Queries open at a time: a connection carries a few thousand requests, and others need room on it. */
const OPEN_MAX = 1_024;

/**
 * Notifies holders when somebody takes their lock by force, or asks for it: one long query for each grant, which the
 * cluster answers when the grant ends or a revocation comes.
 *
 * GW1. Watches make such news prompt, and guarantee nothing: the deadline of the session needs no notification
 *      (session.ts, S1), and the fencing version protects in any case.
 * GW2. At most OPEN_MAX queries are open; the others wait until some of those end.
 * GW3. A watch ends with its grant, by `stop`, or with the client, and for no other reason: a query that one gateway
 *      refuses may be answered by the next one, or by the same one after an upgrade.
 */
export class GrantWatches {
  readonly #requester: Asks;
  #open = 0;

  constructor(requester: Asks) {
    this.#requester = requester;
  }

  /** Returns a function that stops watching. */
  watch(grant: WatchedGrant, listener: GrantListener): () => void {
    const slots = { take: () => this.#take(), give: () => this.#open-- };
    const watch = new GrantWatch(this.#requester, grant, { slots, listener });
    watch.askIn(DELAY_MS);
    return () => watch.stop();
  }

  /** GW2. */
  #take(): boolean {
    if (this.#open >= OPEN_MAX) return false;
    this.#open++;
    return true;
  }
}

interface WatchPorts {
  readonly slots: { take(): boolean; give(): unknown };
  readonly listener: GrantListener;
}

class GrantWatch {
  readonly #requester: Asks;
  readonly #grant: WatchedGrant;
  readonly #ports: WatchPorts;
  #timer: Timer | undefined;
  #call: CallHandle | undefined;
  #asking = false;
  #over = false;
  /** The revision of the latest revocation that it has received. */
  #known = 0;

  constructor(requester: Asks, grant: WatchedGrant, ports: WatchPorts) {
    this.#requester = requester;
    this.#grant = grant;
    this.#ports = ports;
  }

  askIn(delayMs: number): void {
    this.#timer = this.#requester.ports.clock.setTimer(delayMs, () => this.#ask());
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#timer?.cancel();
    if (!this.#asking) return;
    this.#call?.cancel();
    this.#ports.slots.give();
  }

  #ask(): void {
    if (!this.#ports.slots.take()) return this.askIn(PAUSE_MS); // GW2
    this.#asking = true;
    const { onEnd, onAsked } = this.#ports.listener;
    const known = onAsked === undefined ? {} : { known: this.#known };
    this.#call = this.#requester.ask({ type: 'grantEnd', ...this.#grant, ...known }, ASK_MS, (error, reply) => {
      this.#asking = false;
      this.#ports.slots.give();
      if (reply?.result.type === 'grantEnd') {
        this.#over = true;
        return onEnd(reply.result.sessionAlive);
      }
      if (reply?.result.type === 'grantAsked') return this.#asked(reply.result.revocation);
      if (error?.code === 'CANCELED') return; // the client is closed (GW3)
      if (error?.code === 'DEADLINE_EXCEEDED') return this.askIn(0);
      this.askIn(error?.retry === 'no' ? LONG_PAUSE_MS : PAUSE_MS);
    });
  }

  /** The listener may stop this watch. */
  #asked(revocation: Revocation): void {
    this.#known = revocation.revision;
    this.#ports.listener.onAsked?.(revocation);
    if (!this.#over) this.askIn(0);
  }
}
