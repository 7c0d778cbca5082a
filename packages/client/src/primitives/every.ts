/**
 * Work at regular times, once for all processes.
 *
 * EV1. A tick is a multiple of the interval since 1970, by wall clocks. A process starts a tick only after it has
 *      claimed it: it writes the tick's time into a key, which must have had an earlier one. So a tick is started at
 *      most once, whatever clocks and messages do.
 * EV2. A claim has a token of its own. If its answer is lost, the key tells whether it is the process's own claim; it
 *      is started then, and no other process starts it.
 * EV3. A claimed tick is never given back: if its process dies or its work fails, the tick is lost. Ticks that nobody
 *      claims in time are lost too, and are not made up for.
 * EV4. A process has one run at a time in progress. While it works, others may start later ticks.
 */

import type { Timer } from '@remora/base';
import { ServiceError, toServiceError } from '@remora/base';
import type { BytesLike, KvPair } from '../kv/keys.ts';
import { requireText, toBytes } from '../kv/keys.ts';
import type { Kv } from '../kv/kv.ts';
import { type Duration, durationMs } from '../options/duration.ts';
import { bytes, callback, requireFunction, signal } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import type { ClientPorts } from '../ports.ts';
import { onAbort } from '../transport/abort.ts';
import { isLasting } from '../transport/request-errors.ts';
import { json } from '../values/codecs.ts';

/** One tick. */
export interface Tick {
  /** When it is due, in ms since 1970: a multiple of the interval. It grows from tick to tick, so it may be a fence. */
  readonly atMs: number;
  /** Aborts when the schedule ends in this process. It does not abort when the tick is overtaken by a later one. */
  readonly signal: AbortSignal;
}

export interface EveryOptions {
  /** The key that records the latest tick. Default: `remora/every/` and the name. */
  readonly key?: BytesLike | undefined;
  /** Called with the error when the work fails. Default: it goes to the client's logger. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Ends the schedule when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export const EVERY_OPTIONS = optionSet<EveryOptions>('every', { key: bytes, onError: callback, signal });

/** The work of a schedule. */
export type TickWork = (tick: Tick) => unknown;

const INTERVAL_MIN_MS = 1_000;
const INTERVAL_MAX_MS = 365 * 86_400_000;
const PREFIX = 'remora/every/';
const EARLY_MS = 20;
/** A clock cannot set a timer for longer. */
const TIMER_MAX_MS = 86_400_000;

/** The value of the key, as JSON. */
interface Claim {
  readonly atMs: number;
  /** EV2: unique. */
  readonly token: string;
  /** Who has started the tick: the attributes of its client. For people. */
  readonly by: Readonly<Record<string, string>>;
}

export interface EveryDeps {
  readonly ports: Pick<ClientPorts, 'clock' | 'logger'>;
  readonly kv: Pick<Kv, 'get' | 'compareAndSet'>;
  readonly newToken: () => string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** A schedule of this process, made by `RemoraClient.every`. End it with `release`, or with `await using`. */
export class Every implements AsyncDisposable {
  /** The name that all processes share. */
  readonly name: string;
  readonly #deps: EveryDeps;
  readonly #intervalMs: number;
  readonly #work: TickWork;
  readonly #key: Uint8Array;
  readonly #onError: (error: unknown) => void;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;

  /** @throws ServiceError INVALID_ARGUMENT for an interval below 1 s or above a year, and for invalid options. */
  constructor(deps: EveryDeps, when: { readonly interval: Duration; readonly name: string }, terms: EveryTerms) {
    const { work, options } = terms;
    checkOptions(EVERY_OPTIONS, options);
    requireFunction(work, 'every');
    this.name = requireText(when.name, 'name');
    this.#intervalMs = intervalOf(when.interval);
    this.#deps = deps;
    this.#work = work;
    this.#key = toBytes(options.key ?? `${PREFIX}${this.name}`);
    const { logger } = deps.ports;
    this.#onError =
      options.onError ?? ((error) => logger.error({ name: this.name, error: String(error) }, 'scheduled work failed'));
    if (options.signal !== undefined) onAbort(options.signal, () => this.#end());
    if (options.signal?.aborted) this.#end();
    else this.#next();
  }

  /** Ends the schedule in this process, and waits for the work that is in progress. Other processes go on. */
  async release(): Promise<void> {
    this.#end();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #end(): void {
    this.#timer?.cancel();
    this.#controller.abort(new ServiceError('CANCELED', `the schedule ${shown(this.name)} has ended`));
  }

  /** Waits for the next multiple of the interval, which is behind the present moment. */
  #next(): void {
    if (this.#controller.signal.aborted) return;
    const { clock } = this.#deps.ports;
    const leftMs = this.#intervalMs - (clock.wallMs() % this.#intervalMs);
    const isDue = leftMs <= TIMER_MAX_MS;
    this.#timer = clock.setTimer(Math.min(leftMs, TIMER_MAX_MS), () => {
      if (isDue && this.#running === undefined) this.#begin();
      this.#next();
    });
  }

  #begin(): void {
    const nowMs = this.#deps.ports.clock.wallMs();
    // A timer may fire a moment early. One that fires late is for the tick that has passed, never for the next one.
    const atMs = Math.floor((nowMs + EARLY_MS) / this.#intervalMs) * this.#intervalMs;
    this.#running = this.#tick(atMs).finally(() => {
      this.#running = undefined;
    });
  }

  async #tick(atMs: number): Promise<void> {
    try {
      if (!(await this.#claim(atMs))) return;
      await this.#work({ atMs, signal: this.#controller.signal });
    } catch (error) {
      try {
        this.#onError(error);
      } catch (failure) {
        this.#deps.ports.logger.error({ name: this.name, error: String(failure) }, 'onError threw an error');
      }
    }
  }

  /** EV1, EV2. Whether this process is the one that starts the tick. */
  async #claim(atMs: number): Promise<boolean> {
    const { kv, newToken, attributes, ports } = this.#deps;
    const mine: Claim = { atMs, token: newToken(), by: attributes };
    const signal = this.#controller.signal;
    // Until the next tick: a later claim is for that one.
    const endsMs = ports.clock.monotonicMs() + this.#intervalMs;
    while (!signal.aborted && ports.clock.monotonicMs() < endsMs) {
      try {
        const pair = await kv.get(this.#key, { signal });
        const claim = claimIn(pair);
        if (claim?.token === mine.token) return true;
        if (claim !== undefined && claim.atMs >= atMs) return false;
        const set = await kv.compareAndSet(this.#key, pair, json.encode(mine), { signal });
        if (set.swapped) return true;
      } catch (error) {
        // The next round reads whether it was applied.
        if (isLasting(toServiceError(error))) throw error;
      }
    }
    return false;
  }
}

export interface EveryTerms {
  readonly work: TickWork;
  readonly options: EveryOptions;
}

function intervalOf(interval: Duration): number {
  const ms = durationMs(interval, 'every');
  if (ms >= INTERVAL_MIN_MS && ms <= INTERVAL_MAX_MS && Number.isInteger(ms)) return ms;
  throw new ServiceError('INVALID_ARGUMENT', `every: expected an interval from 1 s to 365 days, got ${ms} ms`);
}

/** @throws ServiceError INVALID_ARGUMENT for a key that holds something else. */
function claimIn(pair: KvPair | undefined): Omit<Claim, 'by'> | undefined {
  if (pair === undefined) return undefined;
  const { atMs, token } = pair.json<Partial<Claim>>() ?? {};
  if (typeof atMs === 'number' && typeof token === 'string') return { atMs, token };
  throw new ServiceError('INVALID_ARGUMENT', `every: the key ${shown(String(pair.key))} does not record a tick`);
}
