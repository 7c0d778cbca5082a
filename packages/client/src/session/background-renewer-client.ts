import type { SessionRef } from '@remora/lock';
import type { PipeGateways } from '@remora/protocol';
import type { AcknowledgedBeat, RenewedInBackground, RenewsInBackground } from '../ports.ts';
import type { KnownToken } from '../transport/log-ins.ts';
import type { BackgroundRenewerReport, BackgroundRenewerRequest } from './background-renewer.ts';

/** The connection to the background renewer. */
export interface BackgroundRenewerLine {
  send(request: BackgroundRenewerRequest): void;
  /** The next report that has arrived; undefined if there is none. Does not wait. */
  receive(): BackgroundRenewerReport | undefined;
  close(): void;
}

const NOT_RENEWED: RenewedInBackground = { pace() {}, until() {}, acknowledged() {}, take: () => undefined, end() {} };

/**
 * The client's side of the background renewer. Reports are fetched on demand, as no callback runs while the thread is
 * blocked.
 */
export class BackgroundRenewerClient implements RenewsInBackground {
  readonly #line: BackgroundRenewerLine;
  readonly #renews: boolean;
  readonly #latest = new Map<number, AcknowledgedBeat | undefined>();
  #nextId = 1;

  /** `renews`: whether the thread renews sessions; otherwise it is only kept informed. */
  constructor(line: BackgroundRenewerLine, renews = true) {
    this.#line = line;
    this.#renews = renews;
  }

  learn(gateways: PipeGateways): void {
    this.#line.send({ type: 'gateways', gateways });
  }

  useToken(token: KnownToken): void {
    this.#line.send({ type: 'token', token });
  }

  renew(session: SessionRef, start: { readonly intervalMs: number; readonly sentMs: number }): RenewedInBackground {
    if (!this.#renews) return NOT_RENEWED;
    const id = this.#nextId++;
    this.#latest.set(id, undefined);
    this.#line.send({ type: 'renew', id, session, ...start });
    return {
      pace: (intervalMs) => this.#line.send({ type: 'pace', id, intervalMs }),
      until: (atMs) => this.#line.send({ type: 'until', id, atMs }),
      acknowledged: (sentMs) => this.#line.send({ type: 'acknowledged', id, sentMs }),
      take: () => this.#take(id),
      end: () => {
        if (this.#latest.delete(id)) this.#line.send({ type: 'end', id });
      },
    };
  }

  close(): void {
    this.#line.close();
  }

  #take(id: number): AcknowledgedBeat | undefined {
    for (let report = this.#line.receive(); report !== undefined; report = this.#line.receive()) {
      // A report about a session that has ended meanwhile is dropped.
      if (this.#latest.has(report.id)) this.#latest.set(report.id, report);
    }
    const latest = this.#latest.get(id);
    if (latest !== undefined) this.#latest.set(id, undefined);
    return latest;
  }
}
