import { setTimeout as pause } from 'node:timers/promises';
import { type RemoraClient, ServiceError } from 'remora';

export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Writers of one client, each of which puts its own key, one put after the other, and when each of these succeeded. A put
 * that fails is followed by the next one. With `everyMs` a writer begins no put sooner than that after the one before, so
 * that the machine has time left for what is measured.
 */
export class Writers {
  readonly #client: RemoraClient;
  readonly #keys: readonly (string | Buffer)[];
  readonly #everyMs: number;
  /** Of each writer, in order. */
  readonly #successes: number[][];
  readonly #running: Promise<unknown>;
  #failures = 0;
  #stopped = false;

  constructor(client: RemoraClient, keys: readonly (string | Buffer)[], everyMs = 0) {
    this.#client = client;
    this.#keys = keys;
    this.#everyMs = everyMs;
    this.#successes = keys.map(() => []);
    this.#running = Promise.all(keys.map((_, i) => this.#write(i)));
  }

  get failures(): number {
    return this.#failures;
  }

  /** The longest time between two successes of one writer, of those between which some of the time given lies. */
  longestGap({ fromMs, toMs }: TimeSpan, writers: readonly number[] = this.#keys.map((_, i) => i)): number {
    let longestMs = 0;
    for (const writer of writers) {
      const successes = this.#successes[writer] ?? [];
      let before = successes[0] ?? toMs;
      for (const at of [...successes, performance.now()]) {
        if (at >= fromMs && before <= toMs) longestMs = Math.max(longestMs, at - before);
        before = at;
      }
    }
    return longestMs;
  }

  /** Waits for the puts that are under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #write(writer: number): Promise<void> {
    const key = this.#keys[writer] ?? '';
    for (let n = 0; !this.#stopped; n++) {
      const nextMs = performance.now() + this.#everyMs;
      try {
        await this.#client.kv.put(key, String(n));
        this.#successes[writer]?.push(performance.now());
      } catch (error) {
        this.#failures++;
        if (!(error instanceof ServiceError)) throw error;
      }
      const restMs = nextMs - performance.now();
      if (restMs > 0) await pause(restMs);
    }
  }
}
