/** What every kind of fault has in common. */
import type { Random } from '@remora/base';
import type { LinkFaults } from '@remora/raft/testing';
import type { FaultWorld } from './fault-world.ts';

/**
 * One fault of a schedule. `a`, `b` and `c` are drawn without knowing what they will mean, so that each event stands by
 * itself.
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
  /** How long one lasts; 0 for a moment. */
  lastsMs(random: Random, electionMs: number): number;
  /** Makes it happen; returns how it ends, or undefined when it does not apply now. */
  begin(world: World, event: FaultEvent): (() => void) | undefined;
}

export const DRAW_MAX = 1 << 16;

/** Ends by itself. */
export const nothing = (): void => {};

/**
 * A link that loses everything. A blocked one loses it as well, but senders learn of it at once, as of a closed
 * connection.
 */
export const SILENT: Partial<LinkFaults> = { dropPerMille: 1_000 };
