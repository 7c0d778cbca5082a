/**
 * How fast a node copies snapshots: each direction has one limit for all of them, which is lower while the node has
 * other work. The receiver has a limit of its own, because it may be busy with groups that the sender does not know.
 */
import type { Clock } from '@remora/base';
import type { HostOptions } from '../options.ts';
import type { HostStats } from '../stats.ts';
import { ByteRate } from './byte-rate.ts';
import { WorkMeter } from './work-meter.ts';

export interface SnapshotRates {
  readonly sending: ByteRate;
  readonly receiving: ByteRate;
}

export function snapshotRates(given: {
  readonly clock: Clock;
  readonly options: Pick<HostOptions, 'snapshotBytesPerSecondMax' | 'snapshotBytesPerSecondBusy'>;
  readonly stats: Readonly<HostStats>;
}): SnapshotRates {
  const { clock, options, stats } = given;
  const { snapshotBytesPerSecondMax: most, snapshotBytesPerSecondBusy: busy } = options;
  const meter = new WorkMeter(clock, stats);
  return {
    sending: new ByteRate(clock, () => (meter.busy ? lower(most, busy) : most)),
    receiving: new ByteRate(clock, () => (meter.busy ? busy : 0)),
  };
}

/** 0 means no limit. */
function lower(a: number, b: number): number {
  return a === 0 || b === 0 ? Math.max(a, b) : Math.min(a, b);
}
