/**
 * Names what holds the event loop. Each root of work (a Raft turn, a frame, a request, a slice of a checkpoint) runs as
 * a section, and sections that took long are reported by name.
 *
 * The recorder belongs to the thread, as the event loop does: parts need no port for it, and a simulation has none.
 *
 * LS1. Time belongs to the innermost section: the time of an inner one does not count for the outer one.
 * LS2. Without a recorder, a section costs one comparison; with one, two readings of the clock. So a section surrounds
 *      a root of work or something rare, never a single operation of a batch.
 * LS3. Only sections of at least `leastMs` are reported; the others leave nothing behind.
 * LS4. A section is synchronous. Work that awaits is one section between two awaits, or none.
 */
import type { Clock } from './clock.ts';

/** Labels of a metric: a new one is a new time series. */
export type LoopSection =
  | 'checkpoint'
  | 'compaction'
  | 'frame'
  | 'grpc'
  | 'heartbeat'
  | 'http'
  | 'immediate'
  | 'leaseEnd'
  | 'logDone'
  | 'merge'
  | 'metrics'
  | 'raftApply'
  | 'raftTurn'
  | 'snapshot'
  | 'split'
  | 'timer';

export interface LongSection {
  readonly name: LoopSection;
  /** Monotonic time of its beginning and its end. */
  readonly startMs: number;
  readonly endMs: number;
  /** What it took itself (LS1). */
  readonly ownMs: number;
}

export interface SectionRecorderOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** LS3. */
  readonly leastMs: number;
  readonly onLong: (section: LongSection) => void;
}

/** Sections that `longestSection` still knows. */
const KEPT = 16;

interface Frame {
  innerMs: number;
}

class SectionRecorder {
  readonly options: SectionRecorderOptions;
  /** The innermost section that is running. */
  frame: Frame | undefined;
  /** The newest last; at most KEPT. */
  readonly recent: LongSection[] = [];

  constructor(options: SectionRecorderOptions) {
    this.options = options;
  }

  run<T>(name: LoopSection, work: () => T): T {
    const { clock } = this.options;
    const outer = this.frame;
    const own: Frame = { innerMs: 0 };
    const startMs = clock.monotonicMs();
    this.frame = own;
    try {
      return work();
    } finally {
      this.frame = outer;
      const endMs = clock.monotonicMs();
      if (outer !== undefined) outer.innerMs += endMs - startMs;
      const ownMs = endMs - startMs - own.innerMs;
      if (ownMs >= this.options.leastMs) this.#long({ name, startMs, endMs, ownMs });
    }
  }

  #long(section: LongSection): void {
    this.recent.push(section);
    if (this.recent.length > KEPT) this.recent.shift();
    this.options.onLong(section);
  }
}

let recorder: SectionRecorder | undefined;

/** Records the sections of this thread, in place of an earlier recorder. Returns a function that ends it. */
export function recordSections(options: SectionRecorderOptions): () => void {
  const own = new SectionRecorder(options);
  recorder = own;
  return () => {
    if (recorder === own) recorder = undefined;
  };
}

/** Runs `work` and returns its result. If it takes long, it is reported under `name`. */
export function loopSection<T>(name: LoopSection, work: () => T): T {
  return recorder === undefined ? work() : recorder.run(name, work);
}

/** Returns the longest recorded section that ended within the last `sinceMs`, garbage collection included. */
export function longestSection(sinceMs: number): LongSection | undefined {
  if (recorder === undefined) return undefined;
  const fromMs = recorder.options.clock.monotonicMs() - sinceMs;
  let longest: LongSection | undefined;
  for (const section of recorder.recent) {
    if (section.endMs >= fromMs && section.ownMs > (longest?.ownMs ?? 0)) longest = section;
  }
  return longest;
}

/** A clock whose timers and immediates are sections, so that work without a section of its own has at least a kind. */
export function sectionedClock(clock: Clock): Clock {
  return {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (delayMs, fn) => clock.setTimer(delayMs, () => loopSection('timer', fn)),
    setImmediate: (fn) => clock.setImmediate(() => loopSection('immediate', fn)),
  };
}
