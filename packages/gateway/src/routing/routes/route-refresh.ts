import type { Clock } from '@remora/base';
import type { ClusterView, Done } from '@remora/protocol';
import type { RouteLookupStats } from './route-lookup-stats.ts';
import type { Routes } from './routes.ts';

/** One call to the master's leader. `done` is called once, in bounded time. */
export type AskView = (done: Done<ClusterView>) => void;

/** Between the end of a call and the next one. */
const PAUSE_MS = 50;

/** Asks the master where keys are, when nobody else said it: once at a time, for all who want to know. */
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

  /** Cheap to call again and again. */
  want(routes: Pick<Routes, 'learnRanges'>): void {
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
