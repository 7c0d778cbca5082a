import type { Clock } from '@remora/base';
import type { ClusterView, Done } from '@remora/protocol';
import type { RouteLookupStats } from './route-lookup-stats.ts';
import type { Routes } from './routes.ts';

/** One call to the master's leader. `done` is called once, in bounded time. */
export type AskView = (done: Done<ClusterView>) => void;

/** Between the end of a call and the next one. */
const PAUSE_MS = 50;

/** Asks the master for its view when no range has named the right route: one call at a time, for all requests. */
export class RouteRefresh {
  readonly #clock: Clock;
  readonly #ask: AskView;
  readonly #stats: Pick<RouteLookupStats, 'routes'>;
  #busy = false;

  constructor(clock: Clock, ask: AskView, stats: Pick<RouteLookupStats, 'routes'>) {
    this.#clock = clock;
    this.#ask = ask;
    this.#stats = stats;
  }

  /** Starts a call unless one is in flight. It is cheap to call often. */
  request(routes: Pick<Routes, 'learnRanges'>): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#stats.routes++;
    this.#ask((_error, view) => {
      if (view !== undefined) routes.learnRanges(view.ranges);
      this.#clock.setTimer(PAUSE_MS, () => {
        this.#busy = false;
      });
    });
  }
}
