/**
 * The run in which everything changes: ranges are split, merged and moved all the time, leaderships are transferred,
 * and the gateways that coordinate transactions are killed at each of their messages.
 */
import type { Random } from '@remora/base';
import { type Finding, violation } from '../../checkers/index.ts';
import { killCoordinators, MOMENTS } from '../gateways/coordinator-kills.ts';
import type { Moment, MortalGateway } from '../gateways/mortal-gateway.ts';
import type { Overlap } from '../judges/overlaps.ts';
import { keepChanging } from './keep-changing.ts';
import { CHANGES, type ChangeKind, type RangeDesk } from './range-desk.ts';

/**
 * The start keys of the kinds of load, so that there are several ranges, and revisions from the master, from the first
 * moment on.
 */
export const BORDERS: readonly string[] = ['list/', 'register/', 'txn/'];
export const GATEWAYS = 3;
/** More nodes than replicas, so that replicas can move. */
export const NODES = 4;
/** Of each kind: 50 in two minutes. */
const CHANGES_PER_MINUTE = 25;
/** A shorter run is judged by the answers that clients received, but need not have covered everything. */
const WHOLE_RUN_MINUTES = 2;

/** What was done in such a run. */
export interface Changed {
  readonly done: Readonly<Record<ChangeKind, number>>;
  /** Changes that did not complete, by reason. */
  readonly failed: Readonly<Record<string, number>>;
  /** Gateways killed, by the moment: `before prepare`. */
  readonly kills: Readonly<Record<string, number>>;
}

export interface ScenarioDeps {
  readonly desk: RangeDesk;
  readonly gateways: readonly MortalGateway[];
  readonly random: Random;
  readonly signal: AbortSignal;
  pause(ms: number): Promise<void>;
  killed(moment: Moment, gateway: string): void;
}

export async function changeEverything(deps: ScenarioDeps): Promise<void> {
  await Promise.all([keepChanging(deps), killCoordinators(deps)]);
}

export function nameOf({ when, message }: Moment): string {
  return `${when} ${message}`;
}

/** What a run of this many minutes must have done to be meaningful, but has not. */
export function tooLittle(changed: Changed, overlaps: readonly Overlap[], minutes: number): readonly Finding[] {
  if (minutes < WHOLE_RUN_MINUTES) return [];
  const wanted = Math.floor(CHANGES_PER_MINUTE * minutes);
  const few = CHANGES.filter((kind) => changed.done[kind] < wanted).map(
    (kind) => `${changed.done[kind]} of at least ${wanted}: ${kind}`,
  );
  const apart = overlaps
    .filter(({ change, met }) => met === 0 && change !== 'transfer')
    .map(({ change, subject }) => `no ${subject} was under way during a ${change}`);
  const spared = MOMENTS.map(nameOf)
    .filter((name) => !changed.kills[name])
    .map((name) => `no gateway was killed ${name}`);
  return [...few, ...apart, ...spared].map((detail) => violation('enough has happened', detail));
}
