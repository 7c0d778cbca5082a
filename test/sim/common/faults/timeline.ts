/** The faults of a run over time: when each begins and ends, automatically or with all others. */
import type { SimLoop } from '../env/loop.ts';
import type { Trace } from '../trace.ts';
import type { FaultEvent } from './fault.ts';

interface TimelineOptions {
  readonly loop: SimLoop;
  readonly trace: Trace;
  /** Starts a fault; returns a function that ends it, or undefined if it does not apply now. */
  readonly begin: (event: FaultEvent) => (() => void) | undefined;
}

export class FaultTimeline {
  /** How often each kind of fault happened. */
  readonly fired = new Map<string, number>();
  readonly #options: TimelineOptions;
  /** The functions that end faults in progress. */
  readonly #open = new Set<() => void>();
  #healed = false;

  constructor(options: TimelineOptions) {
    this.#options = options;
  }

  /** Whether faults are over, permanently. */
  get healed(): boolean {
    return this.#healed;
  }

  schedule(events: readonly FaultEvent[]): void {
    for (const event of events) this.#options.loop.setTimer(event.atMs, () => this.#befall(event));
  }

  /** Ends all faults in progress; from now on none begins. */
  heal(): void {
    this.#healed = true;
    for (const end of [...this.#open]) end();
  }

  #befall(event: FaultEvent): void {
    if (this.#healed) return;
    const { loop, trace, begin } = this.#options;
    const end = begin(event);
    if (end === undefined) return;
    const { kind, lastsMs, a, b, c } = event;
    trace.add('fault', 0, 0, Math.round(lastsMs), a, `${kind} ${b} ${c}`);
    this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
    const once = (): void => {
      if (!this.#open.delete(once)) return;
      trace.add('healed', 0, 0, 0, 0, kind);
      end();
    };
    this.#open.add(once);
    loop.setTimer(lastsMs, once);
  }
}
