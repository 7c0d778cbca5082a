import { ServiceError } from '@remora/base';
import type { Command, CommandResult, KvOp, PipeReply, Query, QueryResult } from '@remora/protocol';
import { lockCompare, notHeld } from '../lock/lock-version.ts';
import { requestMsOf } from '../options/duration.ts';
import type { Requester } from '../transport/requester.ts';
import type { OperationOptions, WriteOptions } from './kv-options.ts';

/** Sends requests about keys. */
export class KvRequests {
  readonly requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  query(query: Query, options: OperationOptions): Promise<PipeReply<QueryResult>> {
    return this.requester.query(query, this.#options(options));
  }

  compact(revision: number, options: OperationOptions): Promise<PipeReply<CommandResult>> {
    return this.requester.command({ type: 'compact', revision }, this.#options(options));
  }

  /** @throws ServiceError FENCED when the grant of `fence` no longer holds its lock. */
  async write(
    command: Extract<Command, { type: 'kv' | 'txn' }>,
    options: WriteOptions,
  ): Promise<{ readonly result: CommandResult; readonly revision: number }> {
    if (options.fence === undefined) return this.requester.command(command, this.#options(options));
    const held = lockCompare(options.fence);
    const op: KvOp = command.type === 'kv' ? command.op : command;
    const txn = { compare: [held], success: [op], failure: [] };
    const { result, revision } = await this.requester.command({ type: 'txn', txn }, this.#options(options));
    if (result.type !== 'txn') throw unexpected(result.type);
    const [written] = result.results;
    if (written === undefined) throw notHeld(held);
    return { result: written, revision };
  }

  /** The time limit of a call. @throws ServiceError INVALID_ARGUMENT for an invalid `timeout`. */
  timeoutMs({ timeout }: OperationOptions): number {
    return timeout === undefined ? this.#timeoutMs : requestMsOf(timeout, 'timeout');
  }

  #options(options: OperationOptions): { timeoutMs: number; signal: AbortSignal | undefined } {
    return { timeoutMs: this.timeoutMs(options), signal: options.signal };
  }
}

export function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a request was answered by a result of another kind: ${type}`);
}
