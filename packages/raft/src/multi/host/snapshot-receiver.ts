/**
 * Receives one snapshot into a group's state machine.
 *
 * R1. Serial: one per group at a time, and the state machine's calls do not overlap (traps 9). An abort waits for the
 *     call under way.
 * R2. It ends in exactly one of `installed` and `installFailed`.
 * R3. Order of durability: the state machine's `finish` first, then the log's restart. A crash in between leaves the
 *     state machine ahead of the log, which the start mends (see recovery.ts).
 * R4. Once `finish` has begun nothing stops it; a failure of it that is no broken invariant leaves the state machine as
 *     it was.
 */
import { type Clock, InvariantError, type Timer } from '@remora/base';
import type { SnapshotHeader, SnapshotReceiver } from '../ports.ts';
import type { GroupRunner } from './group-runner.ts';

type State = 'receiving' | 'installing' | 'ended';

export interface ReceiveContext {
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
  readonly fail: (error: unknown) => void;
  /** Called once, when it is over. */
  readonly ended: (ok: boolean) => void;
}

export class IncomingSnapshot implements SnapshotReceiver {
  readonly #context: ReceiveContext;
  readonly #runner: GroupRunner;
  readonly #header: SnapshotHeader;
  #state: State = 'receiving';
  #target: SnapshotReceiver | undefined;
  #aborted: string | undefined;
  #last: Promise<void> = Promise.resolve();
  #idle: Timer | undefined;

  /** Undefined when the group does not want the snapshot. */
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
  }

  async #open(): Promise<void> {
    await this.#runner.pauseApply();
    if (this.#aborted === undefined) this.#target = this.#runner.stateMachine.install(this.#header.meta);
  }

  #accepted(): boolean {
    try {
      return this.#runner.acceptSnapshot(this.#header, (reason) => this.abort(reason));
    } catch (error) {
      this.#context.fail(error);
      return false;
    }
  }

  chunk(bytes: Uint8Array): Promise<void> {
    return this.#call(async () => this.#target?.chunk(bytes));
  }

  async finish(): Promise<void> {
    await this.#last;
    this.#throwIfAborted();
    this.#state = 'installing';
    this.#idle?.cancel();
    try {
      await this.#target?.finish();
    } catch (error) {
      this.#stopIfBroken(error);
      this.#end(false);
      throw error;
    }
    this.#end(true);
  }

  abort(reason: string): void {
    if (this.#state !== 'receiving' || this.#aborted !== undefined) return; // R4
    this.#aborted = reason;
    this.#runner.logger.warn({ reason }, 'receiving a snapshot broke off');
    void this.#last.then(() => this.#endAborted(reason)); // R1
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

  /** One call at a time; a failure aborts the whole. */
  async #call(work: () => Promise<void>): Promise<void> {
    await this.#last;
    this.#throwIfAborted();
    this.#idle?.cancel();
    const done = work();
    this.#last = done.catch(() => undefined);
    try {
      await done;
    } catch (error) {
      this.#stopIfBroken(error);
      this.abort(error instanceof Error ? error.message : String(error));
      throw error;
    }
    const { clock, idleTimeoutMs } = this.#context;
    if (this.#state === 'receiving' && this.#aborted === undefined) {
      this.#idle = clock.setTimer(idleTimeoutMs, () => this.abort('the next chunk did not come'));
    }
  }

  #throwIfAborted(): void {
    if (this.#aborted !== undefined) throw new Error(`the snapshot was given up: ${this.#aborted}`);
  }

  #end(ok: boolean): void {
    this.#state = 'ended';
    this.#idle?.cancel();
    try {
      if (ok)
        this.#runner.installed(this.#header.meta); // R3
      else this.#runner.installFailed();
    } catch (error) {
      this.#context.fail(error);
    }
    this.#context.ended(ok);
  }
}
