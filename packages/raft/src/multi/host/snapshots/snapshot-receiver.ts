/**
 * Receives one snapshot into a group's state machine.
 *
 * R1. Serial: one per group at a time, and the state machine's calls do not overlap (traps 9). An abort waits for the
 *     call in progress.
 * R2. It ends in exactly one of `installed` and `installFailed`.
 * R3. Order of durability: the state machine's `finish` first, then the log's restart. A crash in between leaves the
 *     state machine ahead of the log, which the next start repairs (see recovery.ts).
 * R4. Once `finish` has begun nothing stops it; if it fails without a broken invariant, the state machine is as before.
 * R5. If a call of the state machine takes too long, the node's place is returned and the transfer fails at the sender.
 *     But the group stays with this snapshot until the call ends (R1, R4): an installation that was only slow still
 *     counts. Opening and storing a chunk have `snapshotIdleTimeoutMs`; installing has `snapshotInstallTimeoutMs`,
 *     which restarts whenever the state machine shows progress.
 * R6. A busy node accepts chunks no faster than its own limit allows, whatever the sender's limit. The wait is not a
 *     call of the state machine, and an abort ends it.
 */
import { type Clock, InvariantError, type Timer } from '@remora/base';
import type { SnapshotHeader, SnapshotReceiver } from '../../ports.ts';
import type { GroupRunner } from '../group/group-runner.ts';
import type { HostOptions } from '../options.ts';
import type { ByteShare } from './byte-rate.ts';
import { ProgressLog, within } from './snapshot-pace.ts';

type State = 'receiving' | 'installing' | 'ended';

export interface ReceiveContext {
  readonly clock: Clock;
  /** Its share of the node's receiving rate: the sender's window bounds what waits here (R6). */
  readonly share: ByteShare;
  readonly options: Pick<HostOptions, 'snapshotIdleTimeoutMs' | 'snapshotInstallTimeoutMs' | 'snapshotLogMs'>;
  readonly fail: (error: unknown) => void;
  /** Called once, when the node may accept another snapshot: at the end at the latest (R5). */
  readonly freed: () => void;
  readonly stored: (bytes: number) => void;
  /** Called once, when it is over. */
  readonly ended: (ok: boolean) => void;
}

export class IncomingSnapshot implements SnapshotReceiver {
  readonly #context: ReceiveContext;
  readonly #runner: GroupRunner;
  readonly #header: SnapshotHeader;
  readonly #log: ProgressLog;
  #state: State = 'receiving';
  #freed = false;
  #target: SnapshotReceiver | undefined;
  #aborted: string | undefined;
  readonly #gone = new AbortController();
  #last: Promise<void> = Promise.resolve();
  #idle: Timer | undefined;

  /** Returns undefined if the group does not want the snapshot. */
  static async begin(
    context: ReceiveContext,
    runner: GroupRunner,
    header: SnapshotHeader,
  ): Promise<IncomingSnapshot | undefined> {
    const incoming = new IncomingSnapshot(context, runner, header);
    if (!incoming.#accepted()) return undefined;
    await incoming.#call(() => incoming.#open());
    incoming.#throwIfAborted();
    return incoming;
  }

  constructor(context: ReceiveContext, runner: GroupRunner, header: SnapshotHeader) {
    this.#context = context;
    this.#runner = runner;
    this.#header = header;
    this.#log = new ProgressLog({
      clock: context.clock,
      logger: runner.logger,
      what: 'receiving a snapshot',
      fields: { from: header.from, index: header.meta.index },
      intervalMs: context.options.snapshotLogMs,
    });
  }

  async #open(): Promise<void> {
    await this.#runner.snapshots.pauseApply();
    if (this.#aborted === undefined) this.#target = this.#runner.snapshots.install(this.#header.meta);
  }

  #accepted(): boolean {
    try {
      return this.#runner.snapshots.accept(this.#header, (reason) => this.abort(reason));
    } catch (error) {
      this.#context.fail(error);
      return false;
    }
  }

  async chunk(bytes: Uint8Array): Promise<void> {
    await this.#context.share.take(bytes.length, this.#gone.signal); // R6
    await this.#call(async () => this.#target?.chunk(bytes));
    this.#context.stored(bytes.length);
    this.#log.add(bytes.length);
  }

  async finish(): Promise<void> {
    await this.#last;
    this.#throwIfAborted();
    this.#state = 'installing';
    this.#idle?.cancel();
    const { clock, options } = this.#context;
    const limitMs = options.snapshotInstallTimeoutMs;
    let timer: Timer | undefined;
    let giveUp: (error: Error) => void = () => undefined;
    const stuck = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const progress = () => {
      timer?.cancel();
      if (this.#state === 'installing' && !this.#freed) timer = clock.setTimer(limitMs, () => giveUp(this.#stuck()));
    };
    progress();
    try {
      await Promise.race([this.#install(progress), stuck]);
    } finally {
      timer?.cancel();
    }
  }

  /** The installation shows no progress: it continues, but the sender no longer waits for it (R5). */
  #stuck(): Error {
    this.#runner.logger.error({ index: this.#header.meta.index }, 'installing a snapshot makes no progress');
    this.#free();
    return new Error('the state machine makes no progress installing the snapshot');
  }

  abort(reason: string): void {
    if (this.#state !== 'receiving' || this.#aborted !== undefined) return; // R4
    this.#aborted = reason;
    this.#gone.abort(givenUp(reason));
    this.#idle?.cancel();
    this.#runner.logger.warn({ reason }, 'receiving a snapshot failed');
    void this.#last.then(() => this.#endAborted(reason)); // R1
  }

  async #install(progress: () => void): Promise<void> {
    try {
      await this.#target?.finish(progress);
    } catch (error) {
      this.#stopIfBroken(error);
      this.#end(false);
      throw error;
    }
    this.#end(true);
  }

  #endAborted(reason: string): void {
    try {
      this.#target?.abort(reason);
    } catch (error) {
      this.#context.fail(error);
    }
    this.#end(false);
  }

  #stopIfBroken(error: unknown): void {
    if (error instanceof InvariantError) this.#context.fail(error);
  }

  /** One call at a time; a failure aborts the whole snapshot. */
  async #call(work: () => Promise<void>): Promise<void> {
    await this.#last;
    this.#throwIfAborted();
    this.#idle?.cancel();
    const { clock, options } = this.#context;
    const limitMs = options.snapshotIdleTimeoutMs;
    const done = work();
    this.#last = done.catch(() => undefined);
    try {
      await within(clock, limitMs, done, 'the state machine took too long for a part of the snapshot');
    } catch (error) {
      this.#stopIfBroken(error);
      this.abort(error instanceof Error ? error.message : String(error));
      this.#free(); // R5
      throw error;
    }
    if (this.#state === 'receiving' && this.#aborted === undefined) {
      this.#idle = clock.setTimer(limitMs, () => this.abort('the next chunk did not arrive in time'));
    }
  }

  #throwIfAborted(): void {
    if (this.#aborted !== undefined) throw givenUp(this.#aborted);
  }

  #free(): void {
    if (this.#freed) return;
    this.#freed = true;
    this.#context.freed();
  }

  #end(ok: boolean): void {
    this.#state = 'ended';
    this.#idle?.cancel();
    this.#context.share.done();
    try {
      if (ok)
        this.#runner.snapshots.installed(this.#header.meta); // R3
      else this.#runner.snapshots.failed();
    } catch (error) {
      this.#context.fail(error);
    }
    this.#free();
    this.#context.ended(ok);
  }
}

function givenUp(reason: string): Error {
  return new Error(`the snapshot was aborted: ${reason}`);
}
