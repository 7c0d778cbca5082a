import { type Clock, ServiceError, type Timer } from '@remora/base';
import { type Duration, durationMs } from '../options/duration.ts';
import { COUNT_MAX, callback, count, duration } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';

/**
 * Checks whether the program can still do the work for which it holds locks: a process may renew its session forever
 * without doing anything. One check runs at a time, each `interval` after the end of the last.
 */
export interface HealthCheck {
  /**
   * The check fails if this returns `false`, throws, or takes longer than `timeout`. `signal` aborts when its result is
   * no longer waited for.
   */
  readonly check: (signal: AbortSignal) => unknown;
  /** The time from the end of one check to the next. Default 5 s. */
  readonly interval?: Duration | undefined;
  /** How long one check may take. Default: `interval`. */
  readonly timeout?: Duration | undefined;
  /** How many failures in a row end the session. Default 3. */
  readonly failures?: number | undefined;
}

export const HEALTH_CHECK = optionSet<HealthCheck>('health', {
  ...{ check: callback, interval: duration, timeout: duration, failures: count(1, COUNT_MAX) },
});

/** The session that the checks may end. */
export interface Checked {
  onLoss(fn: () => void): void;
  /** Makes this client lose the session, and then ends it at the server. */
  giveUp(why: string): void;
}

export interface HealthPlan {
  readonly check: HealthCheck['check'];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly failuresMax: number;
}

/** @throws ServiceError INVALID_ARGUMENT for invalid options. */
export function healthPlan(given: HealthCheck): HealthPlan {
  checkOptions(HEALTH_CHECK, given);
  const { check, interval = 5_000, timeout = interval, failures = 3 } = given;
  if (typeof check !== 'function')
    throw new ServiceError('INVALID_ARGUMENT', `health.check: expected a function, got ${typeof check}`);
  const intervalMs = durationMs(interval, 'health.interval');
  const timeoutMs = durationMs(timeout, 'health.timeout');
  if (intervalMs > 0 && timeoutMs > 0 && Number.isInteger(failures) && failures > 0) {
    return { check, intervalMs, timeoutMs, failuresMax: failures };
  }
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `health: expected interval, timeout and failures above 0, got ${intervalMs} ms, ${timeoutMs} ms and ${failures}`,
  );
}

/** Runs the checks until the session ends, or until they end it. */
export function watchHealth(session: Checked, plan: HealthPlan, clock: Clock): void {
  new HealthWatch(session, plan, clock).begin();
}

class HealthWatch {
  readonly #session: Checked;
  readonly #plan: HealthPlan;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  #failures = 0;
  #timer: Timer | undefined;

  constructor(session: Checked, plan: HealthPlan, clock: Clock) {
    this.#session = session;
    this.#plan = plan;
    this.#clock = clock;
  }

  begin(): void {
    this.#next();
    this.#session.onLoss(() => {
      this.#timer?.cancel();
      this.#over.abort();
    });
  }

  #next(): void {
    if (!this.#over.signal.aborted) this.#timer = this.#clock.setTimer(this.#plan.intervalMs, () => this.#run());
  }

  #run(): void {
    const late = new AbortController();
    const abandon = (): void => late.abort();
    this.#over.signal.addEventListener('abort', abandon, { once: true });
    let told = false;
    const tell = (failure: string | undefined): void => {
      if (told || this.#over.signal.aborted) return;
      told = true;
      this.#timer?.cancel();
      this.#over.signal.removeEventListener('abort', abandon);
      this.#judge(failure);
    };
    this.#timer = this.#clock.setTimer(this.#plan.timeoutMs, () => {
      late.abort();
      tell(`it took longer than ${this.#plan.timeoutMs} ms`);
    });
    // A check that throws synchronously fails like any other.
    Promise.resolve()
      .then(() => this.#plan.check(late.signal))
      .then(
        (well) => tell(well === false ? 'it returned false' : undefined),
        (error: unknown) => tell(error instanceof Error ? error.message : String(error)),
      );
  }

  #judge(failure: string | undefined): void {
    this.#failures = failure === undefined ? 0 : this.#failures + 1;
    if (failure === undefined || this.#failures < this.#plan.failuresMax) return this.#next();
    this.#session.giveUp(`its health check failed ${this.#failures} times in a row, the last time because ${failure}`);
  }
}
