/**
 * Sends snapshots to followers that need entries which the log no longer has: a bounded number at a time over all
 * groups, at a bounded rate.
 *
 * S1. One snapshot per (group, follower) at a time; each ends in exactly one report to the core, or in the end of the
 *     leadership that wanted it.
 * S2. While it is in progress, and for a while after, the leader's log behind it is kept (traps 3).
 * S3. A receiver without a free place is asked again after a pause, with the same picture of the state machine, which
 *     waits without occupying a place here. At most `snapshotSendsMax` pictures wait; a further one is released, and
 *     taken again when its turn comes. Meanwhile other nodes get their snapshots.
 * S4. No snapshot occupies a place for ever: the state machine has `snapshotIdleTimeoutMs` for each chunk, the receiver
 *     must not fall silent (snapshot-outgoing.ts O4), and the whole transfer has `snapshotSendTimeoutMs`.
 */
import { type Clock, joinSignals, sleep } from '@remora/base';
import type { ReplicaId } from '../../../core/types.ts';
import type { GroupId, NodeId, Transport } from '../../ports.ts';
import { isSnapshotBusy } from '../../transport/snapshot-transfer.ts';
import type { GroupHandle } from '../group/group-handle.ts';
import type { HostOptions } from '../options.ts';
import type { HostStats } from '../stats.ts';
import type { ByteRate } from './byte-rate.ts';
import { SendQueue } from './send-queue.ts';
import { ProgressLog, pacedChunks, TooLateError, within } from './snapshot-pace.ts';
import type { OutgoingSnapshot } from './snapshots-in-flight.ts';

export interface SnapshotSenderOptions {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly options: HostOptions;
  readonly stats: HostStats;
  /** The current limit of bytes per second for everything sent. */
  readonly rate: ByteRate;
  readonly fail: (error: unknown) => void;
}

/** A picture of a state machine, and its time limit for being sent. */
interface Picture {
  readonly outgoing: OutgoingSnapshot;
  readonly dueMs: number;
  /** Set while the picture waits (S3): releases it. */
  unpark: (() => void) | undefined;
}

interface Wanted {
  readonly key: string;
  readonly group: GroupHandle;
  readonly to: ReplicaId;
  readonly node: NodeId;
  readonly picture: Picture | undefined;
}

/** Stands for the node of a replica that is not located. */
const NOWHERE: NodeId = 0;

export class SnapshotSender {
  readonly #host: SnapshotSenderOptions;
  readonly #queue = new SendQueue<Wanted>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #parked = new Set<Picture>();
  readonly #stopped = new AbortController();

  constructor(host: SnapshotSenderOptions) {
    this.#host = host;
  }

  want(group: GroupHandle, to: ReplicaId): void {
    const key = keyOf(group.groupId, group.replicaId, to);
    const node = group.locate(to) ?? NOWHERE;
    if (this.#queue.get(node, key)?.picture === undefined) {
      this.#queue.put(node, key, { key, group, to, node, picture: undefined });
    }
    this.#startMore();
  }

  /** Includes those that wait for their turn, or for a place at the receiver. */
  get inFlight(): number {
    return this.#queue.size + this.#running.size + this.#parked.size;
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the node is stopping'));
    this.#queue.clear();
    for (const picture of [...this.#parked]) {
      picture.unpark?.();
      this.#letGo(picture.outgoing);
    }
    await Promise.all(this.#running.values());
  }

  #startMore(): void {
    const { clock, options, fail } = this.#host;
    while (this.#running.size < options.snapshotSendsMax && !this.#stopped.signal.aborted) {
      const wanted = this.#queue.next(clock.monotonicMs(), (key) => !this.#running.has(key)); // S1
      if (wanted === undefined) return;
      const run = this.#run(wanted).then(() => this.#ended(wanted.key), fail);
      this.#running.set(wanted.key, run);
    }
  }

  #ended(key: string): void {
    this.#running.delete(key);
    this.#startMore();
  }

  async #run(wanted: Wanted): Promise<void> {
    const { group, to } = wanted;
    const picture = await this.#pictureFor(wanted);
    if (picture === undefined) return;
    const { logger } = group;
    const { outgoing } = picture;
    const { index } = outgoing.snapshot.meta;
    try {
      const bytes = await this.#send(wanted, picture);
      this.#host.stats.snapshotsSent++;
      logger.info({ to, index, bytes }, 'snapshot sent');
    } catch (error) {
      if (isSnapshotBusy(error) && !outgoing.signal.aborted && !this.#stopped.signal.aborted) {
        return this.#putOff(wanted, picture);
      }
      this.#host.stats.snapshotsSendFailed++;
      logger.warn({ to, index, error: String(error) }, 'sending a snapshot failed');
      outgoing.snapshot.release();
      return this.#reportLater(wanted, outgoing);
    }
    outgoing.snapshot.release();
    group.snapshots.sent(to, outgoing, true);
  }

  /** Returns the waiting picture (S3), or a new one; undefined if there is none to send now. */
  async #pictureFor(wanted: Wanted): Promise<Picture | undefined> {
    const { clock, options } = this.#host;
    const { group, picture } = wanted;
    if (picture !== undefined) {
      picture.unpark?.();
      return picture;
    }
    const taking = group.snapshots.take(wanted.to);
    try {
      const outgoing = await within(clock, options.snapshotIdleTimeoutMs, taking, 'the state machine is busy');
      if (outgoing === undefined) return undefined;
      return { outgoing, dueMs: clock.monotonicMs() + options.snapshotSendTimeoutMs, unpark: undefined };
    } catch (error) {
      if (!(error instanceof TooLateError)) throw error;
      void taking.then((late) => late !== undefined && this.#letGo(late), this.#host.fail);
      this.#again(wanted); // S4: others use its place meanwhile
      return undefined;
    }
  }

  /** Resolves with the number of bytes sent. */
  async #send({ group, to, node }: Wanted, { outgoing, dueMs }: Picture): Promise<number> {
    const { clock, options, transport, stats } = this.#host;
    if (node === NOWHERE) throw new Error(`the node of replica ${to} is unknown`);
    const overdue = new AbortController();
    const leftMs = Math.max(0, dueMs - clock.monotonicMs());
    const timer = clock.setTimer(leftMs, () => overdue.abort(new Error('it exceeded its time limit'))); // S4
    const { signal, letGo } = joinSignals([outgoing.signal, this.#stopped.signal, overdue.signal]);
    const { meta, chunks, bytes } = outgoing.snapshot;
    const log = new ProgressLog({
      clock,
      logger: group.logger,
      what: 'sending a snapshot',
      fields: { to, index: meta.index },
      intervalMs: options.snapshotLogMs,
      total: bytes,
    });
    const paced = pacedChunks(chunks, {
      clock,
      share: this.#host.rate.share(),
      signal,
      idleTimeoutMs: options.snapshotIdleTimeoutMs,
      sent: (count) => {
        stats.snapshotBytesSent += count;
        log.add(count);
      },
    });
    const resumed = () => {
      stats.snapshotsResumed++;
      group.logger.info({ to, index: meta.index, bytes: log.bytes }, 'resumed a snapshot after a broken connection');
    };
    const header = { groupId: group.groupId, from: group.replicaId, to, term: outgoing.term, meta };
    try {
      await transport.sendSnapshot(node, header, paced, signal, resumed);
    } finally {
      timer.cancel();
      letGo();
    }
    return log.bytes;
  }

  // ---------------------------------------------------------------------------------------------- later

  /** S3. */
  #putOff(wanted: Wanted, picture: Picture): void {
    const { options, stats } = this.#host;
    const { key, node } = wanted;
    stats.snapshotsPutOff++;
    const keep = this.#parked.size < options.snapshotSendsMax;
    if (keep) {
      const { signal } = picture.outgoing;
      const gone = () => {
        picture.unpark?.();
        this.#queue.delete(node, key);
        this.#letGo(picture.outgoing);
      };
      picture.unpark = () => {
        picture.unpark = undefined;
        signal.removeEventListener('abort', gone);
        this.#parked.delete(picture);
      };
      signal.addEventListener('abort', gone, { once: true });
      this.#parked.add(picture);
      this.#queue.put(node, key, { ...wanted, picture }, 'front');
      this.#putOffNode(node);
    } else {
      this.#letGo(picture.outgoing);
      this.#again(wanted);
    }
  }

  /** Waits for another turn, and then takes a new picture. */
  #again(wanted: Wanted): void {
    this.#queue.put(wanted.node, wanted.key, { ...wanted, picture: undefined });
    this.#putOffNode(wanted.node);
  }

  #putOffNode(node: NodeId): void {
    const { clock, options } = this.#host;
    this.#queue.putOff(node, clock.monotonicMs() + options.snapshotRetryMs);
    clock.setTimer(options.snapshotRetryMs, () => this.#startMore());
  }

  #letGo(outgoing: OutgoingSnapshot): void {
    outgoing.hold.untilMs = this.#host.clock.monotonicMs();
    outgoing.snapshot.release();
  }

  /**
   * Reports to the core after a pause that occupies no place; does not report if leadership or the node ends before.
   */
  #reportLater({ group, to }: Wanted, outgoing: OutgoingSnapshot): void {
    const { clock, options } = this.#host;
    const { signal, letGo } = joinSignals([outgoing.signal, this.#stopped.signal]);
    void sleep(clock, options.snapshotRetryMs, signal)
      .catch(() => undefined)
      .finally(letGo)
      .then(() => group.snapshots.sent(to, outgoing, false))
      .catch((error: unknown) => this.#host.fail(error));
  }
}

function keyOf(groupId: GroupId, from: ReplicaId, to: ReplicaId): string {
  return `${groupId}/${from}/${to}`;
}
