/** Shared by all kinds of faults. */
import type { Random } from '@remora/base';
import type { LinkFaults } from '@remora/raft/testing';
import type { FaultWorld } from './fault-world.ts';

/**
 * One fault of a schedule. `a`, `b` and `c` are drawn independently of their meaning, so that each event is independent
 * of the others.
 */
export interface FaultEvent {
  readonly atMs: number;
  readonly kind: string;
  readonly lastsMs: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

export interface Fault<World = FaultWorld> {
  readonly kind: string;
  /** The duration of one; 0 for a moment. */
  lastsMs(random: Random, electionMs: number): number;
  /** Starts it; returns a function that ends it, or undefined if it does not apply now. */
  begin(world: World, event: FaultEvent): (() => void) | undefined;
}

export const DRAW_MAX = 1 << 16;

/** For faults that end automatically. */
export const nothing = (): void => {};

/**
 * A link that loses everything. A blocked link loses it as well, but senders notice at once, like a closed connection.
 */
export const SILENT: Partial<LinkFaults> = { dropPerMille: 1_000 };
