import { sizeText } from '../format/sizes.ts';
import type { Shell } from '../shell.ts';

const SAY_EVERY_MS = 2_000;

/** Prints the progress of a long operation from time to time. */
export class Progress {
  readonly #shell: Shell;
  readonly #what: string;
  readonly #total: number;
  readonly #things: string;
  #pairs = 0;
  #bytes = 0;
  #saidAtMs = performance.now();

  /** `total`: the number of all pairs; 0 if unknown. `things`: what is counted, if it is not keys. */
  constructor(shell: Shell, what: string, total: number, things = 'keys') {
    this.#shell = shell;
    this.#what = what;
    this.#total = total;
    this.#things = things;
  }

  get pairs(): number {
    return this.#pairs;
  }

  add(pairs: number, bytes: number): void {
    this.#pairs += pairs;
    this.#bytes += bytes;
    if (performance.now() - this.#saidAtMs < SAY_EVERY_MS) return;
    this.#saidAtMs = performance.now();
    const share = this.#total === 0 ? '' : ` of ${this.#total} (${Math.floor((100 * this.#pairs) / this.#total)} %)`;
    const count = this.#pairs === 0 ? [] : [`${this.#pairs}${share} ${this.#things}`];
    const size = this.#bytes === 0 ? [] : [sizeText(this.#bytes)];
    this.#shell.err(`${this.#what} ${[...count, ...size].join(', ')}`);
  }
}
