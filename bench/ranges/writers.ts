import { setTimeout as pause } from 'node:timers/promises';
import { type RemoraClient, ServiceError } from 'remora';
import { longestGap, type TimeSpan } from './gaps.ts';

/**
 * Writers of one client, each of which puts its own key, one put after the other, and when each of these succeeded. A
 * put that fails is followed by the next one. With `everyMs` a writer begins no put sooner than that after the one
 * before, so that the machine has time left for what is measured.
 */
export class Writers {
  readonly #client: RemoraClient;
  readonly #keys: readonly (string | Buffer)[];
  readonly #everyMs: number;
  /** Of each writer, in order. */
  readonly #successes: number[][];
  readonly #puts: { readonly endMs: number; readonly tookMs: number }[] = [];
  readonly #running: Promise<unknown>;
  /** How many puts failed, by the code of their error. */
  readonly failures: Record<string, number> = {};
  #stopped = false;

  constructor(client: RemoraClient, keys: readonly (string | Buffer)[], everyMs = 0) {
    this.#client = client;
    this.#keys = keys;
    this.#everyMs = everyMs;
    this.#successes = keys.map(() => []);
    this.#running = Promise.all(keys.map((_, i) => this.#write(i)));
  }

  /** The longest time between two successes of one writer, of those between which some of the time given lies. */
  longestGap(time: TimeSpan, writers: readonly number[] = this.#keys.map((_, i) => i)): number {
    return Math.max(0, ...writers.map((writer) => longestGap(this.#successes[writer] ?? [], time)));
  }

  /** Puts that succeeded so far. */
  get done(): number {
    return this.#puts.length;
  }

  /** How long those puts took that succeeded in a time. */
  latencies({ fromMs, toMs }: TimeSpan): number[] {
    return this.#puts.filter(({ endMs }) => endMs >= fromMs && endMs <= toMs).map(({ tookMs }) => tookMs);
  }

  /** Waits for the puts that are under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #write(writer: number): Promise<void> {
    const key = this.#keys[writer] ?? '';
    for (let n = 0; !this.#stopped; n++) {
      const begunMs = performance.now();
      try {
        await this.#client.kv.put(key, String(n));
        const endMs = performance.now();
        this.#successes[writer]?.push(endMs);
        this.#puts.push({ endMs, tookMs: endMs - begunMs });
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        this.failures[error.code] = (this.failures[error.code] ?? 0) + 1;
      }
      const restMs = begunMs + this.#everyMs - performance.now();
      if (restMs > 0) await pause(restMs);
    }
  }
}
