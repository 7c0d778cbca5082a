import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/** The interval between two log lines for one kind of event. */
const EVERY_MS = 60_000;

/**
 * Warns of events that strangers can cause as often as they like: each kind once a minute, with the number of events
 * since the last line. Kinds come from a small closed set.
 */
export class RareLog {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #said = new Map<string, { atMs: number; since: number }>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, logger: Pick<Logger, 'warn'>) {
    this.#clock = clock;
    this.#logger = logger;
  }

  warn(kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    const nowMs = this.#clock.monotonicMs();
    const said = this.#said.get(kind);
    if (said !== undefined && nowMs - said.atMs < EVERY_MS) {
      said.since++;
      return;
    }
    this.#said.set(kind, { atMs: nowMs, since: 0 });
    this.#logger.warn(said === undefined || said.since === 0 ? fields : { ...fields, unlogged: said.since }, message);
  }
}
