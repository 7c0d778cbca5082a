/**
 * Sends snapshots to followers that the log cannot help any more: a bounded number at a time over all groups.
 *
 * S1. One snapshot per (group, follower) at a time; each ends in exactly one report to the core, or in the end of the
 *     leadership that wanted it.
 * S2. While it is under way, and for a while after, the leader's log behind it is kept (traps 3).
 */
import { type Clock, sleep } from '@remora/base';
import type { ReplicaId } from '../../core/types.ts';
import type { GroupId, Transport } from '../ports.ts';
import type { GroupRunner, OutgoingSnapshot } from './group-runner.ts';
import type { HostOptions } from './options.ts';
import type { HostStats } from './stats.ts';

export interface SnapshotSenderOptions {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly options: HostOptions;
  readonly stats: HostStats;
  readonly fail: (error: unknown) => void;
}

interface Wanted {
  readonly runner: GroupRunner;
  readonly to: ReplicaId;
}

export class SnapshotSender {
  readonly #host: SnapshotSenderOptions;
  readonly #waiting = new Map<string, Wanted>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(host: SnapshotSenderOptions) {
    this.#host = host;
  }

  want(runner: GroupRunner, to: ReplicaId): void {
    const key = keyOf(runner.groupId, runner.replicaId, to);
    this.#waiting.set(key, { runner, to });
    this.#startMore();
  }

  async stop(): Promise<void> {
    this.#waiting.clear();
    this.#stopped.abort(new Error('the node is stopping'));
    await Promise.all(this.#running.values());
  }

  #startMore(): void {
    for (const [key, wanted] of this.#waiting) {
      if (this.#running.size >= this.#host.options.snapshotSendsMax || this.#stopped.signal.aborted) return;
      if (this.#running.has(key)) continue; // S1
      this.#waiting.delete(key);
      const run = this.#run(wanted).then(
        () => this.#ended(key),
        (error: unknown) => this.#host.fail(error),
      );
      this.#running.set(key, run);
    }
  }

  #ended(key: string): void {
    this.#running.delete(key);
    this.#startMore();
  }

  async #run({ runner, to }: Wanted): Promise<void> {
    const outgoing = await runner.takeSnapshot();
    if (outgoing === undefined) return;
    const { logger } = runner;
    const { index } = outgoing.snapshot.meta;
    let ok = false;
    try {
      await this.#send(runner, to, outgoing);
      ok = true;
      this.#host.stats.snapshotsSent++;
      logger.info({ to, index }, 'snapshot sent');
    } catch (error) {
      this.#host.stats.snapshotsSendFailed++;
      logger.warn({ to, index, error: String(error) }, 'sending a snapshot failed');
    } finally {
      outgoing.snapshot.release();
    }
    if (!ok) await this.#pause(outgoing.signal);
    runner.snapshotSent(to, outgoing, ok);
  }

  async #send(runner: GroupRunner, to: ReplicaId, outgoing: OutgoingSnapshot): Promise<void> {
    const { clock, options, transport } = this.#host;
    const node = runner.locate(to);
    if (node === undefined) throw new Error(`the node of replica ${to} is not known`);
    const overdue = new AbortController();
    const timer = clock.setTimer(options.snapshotSendTimeoutMs, () => overdue.abort(new Error('it took too long')));
    const signal = AbortSignal.any([outgoing.signal, this.#stopped.signal, overdue.signal]);
    const { meta, chunks } = outgoing.snapshot;
    const header = { groupId: runner.groupId, from: runner.replicaId, to, term: outgoing.term, meta };
    try {
      await transport.sendSnapshot(node, header, chunks, signal);
    } finally {
      timer.cancel();
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, options } = this.#host;
    // Ends early with the leadership or the node: then nobody waits for the report.
    await sleep(clock, options.snapshotRetryMs, AbortSignal.any([signal, this.#stopped.signal])).catch(() => undefined);
  }
}

function keyOf(groupId: GroupId, from: ReplicaId, to: ReplicaId): string {
  return `${groupId}/${from}/${to}`;
}
