/**
 * Decides which snapshots a node accepts.
 *
 * J1. At most `snapshotReceivesMax` at a time. If there is no place, or the group is still busy with another snapshot,
 *     the refusal asks the sender to retry; an unwanted snapshot is declined.
 * J2. Each place is returned once: when the snapshot ends, or earlier, when the state machine is stuck
 *     (snapshot-receiver.ts R5).
 */
import type { Clock } from '@remora/base';
import type { GroupId, NodeId, SnapshotHeader, SnapshotReceiver } from '../../ports.ts';
import { snapshotBusy } from '../../transport/snapshot-transfer.ts';
import type { GroupRunner } from '../group/group-runner.ts';
import type { HostOptions } from '../options.ts';
import type { HostStats } from '../stats.ts';
import type { ByteRate } from './byte-rate.ts';
import { IncomingSnapshot } from './snapshot-receiver.ts';

export interface SnapshotIntakeOptions {
  readonly clock: Clock;
  readonly options: HostOptions;
  readonly stats: HostStats;
  /** The current limit of bytes per second for everything received. */
  readonly rate: ByteRate;
  readonly fail: (error: unknown) => void;
  /** The local replica of the group; undefined if there is none or the node does not run. */
  readonly find: (groupId: GroupId) => GroupRunner | undefined;
}

export class SnapshotIntake {
  readonly #host: SnapshotIntakeOptions;
  #receiving = 0;

  constructor(host: SnapshotIntakeOptions) {
    this.#host = host;
  }

  get inFlight(): number {
    return this.#receiving;
  }

  /** Rejects with `RESOURCE_EXHAUSTED` if it may be offered again (J1). */
  async receive(from: NodeId, header: SnapshotHeader): Promise<SnapshotReceiver> {
    const { options, stats } = this.#host;
    const runner = this.#host.find(header.groupId);
    if (runner === undefined || runner.replicaId !== header.to) {
      throw new Error(`this node does not have replica ${header.to} of group ${header.groupId}`);
    }
    if (!runner.comesFrom(header.from, from)) throw new Error(`replica ${header.from} is not on node ${from}`);
    if (runner.snapshots.receiving) throw snapshotBusy('the group is already receiving another snapshot');
    if (this.#receiving >= options.snapshotReceivesMax) throw snapshotBusy('too many snapshots are being received');
    this.#receiving++;
    const incoming = await IncomingSnapshot.begin(
      {
        clock: this.#host.clock,
        options,
        share: this.#host.rate.share(),
        fail: this.#host.fail,
        freed: () => {
          this.#receiving--; // J2
        },
        stored: (bytes) => {
          stats.snapshotBytesReceived += bytes;
        },
        ended: (ok) => {
          if (ok) stats.snapshotsReceived++;
          else stats.snapshotsReceiveFailed++;
        },
      },
      runner,
      header,
    );
    if (incoming !== undefined) return incoming;
    this.#receiving--;
    throw new Error('the snapshot is not needed');
  }
}
