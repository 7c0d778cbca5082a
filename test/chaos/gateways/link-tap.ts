/**
 * Decodes the frames of one link between a gateway and another node, and reports which messages of transactions over
 * ranges they contain (docs/decisions/0019-transactions-over-ranges.md).
 */
import type { Bytes } from '@remora/base';
import {
  ANSWER,
  ASK,
  decodeFrame,
  isTxnCommand,
  masterDrawRevisions,
  rangeExecute,
  type TxnCommand,
} from '@remora/protocol';

/** Every message that a coordinator sends. The primary's prepare and its decision differ from those that follow. */
export const TXN_MESSAGES = ['prepare primary', 'prepare', 'draw', 'commit', 'abort', 'resolve', 'forget'] as const;
export type TxnMessage = (typeof TXN_MESSAGES)[number];

export class LinkTap {
  readonly #methods = new Map<unknown, unknown>();
  /** Calls with such a message, by their ids, until they are answered. */
  readonly #calls = new Map<number, TxnMessage>();

  /** The messages in a frame from the gateway. */
  asked(frame: Bytes): readonly TxnMessage[] {
    return decodeFrame(frame).flatMap(([kind, id, method, request]) => {
      if (kind === ASK.method) this.#methods.set(id, method);
      if (kind !== ASK.call) return [];
      const message = messageOf(this.#methods.get(method), request);
      if (message === undefined) return [];
      this.#calls.set(id, message);
      return [message];
    });
  }

  /** The messages that a frame of the other node answers. */
  answered(frame: Bytes): readonly TxnMessage[] {
    return decodeFrame(frame).flatMap(([kind, id]) => {
      if (kind !== ANSWER.reply && kind !== ANSWER.error) return [];
      const message = this.#calls.get(id);
      this.#calls.delete(id);
      return message === undefined || kind === ANSWER.error ? [] : [message];
    });
  }
}

function messageOf(method: unknown, request: unknown): TxnMessage | undefined {
  if (method === masterDrawRevisions.name) {
    // Without draws the call asks for the current revisions, which is not part of a transaction.
    return masterDrawRevisions.decodeRequest(request).draws.length > 0 ? 'draw' : undefined;
  }
  if (method !== rangeExecute.name) return undefined;
  const { body } = rangeExecute.decodeRequest(request);
  return body.kind === 'command' && isTxnCommand(body.command) ? nameOf(body.command) : undefined;
}

function nameOf(command: TxnCommand): TxnMessage | undefined {
  switch (command.type) {
    case 'txnPrepare':
      return command.part === 0 ? 'prepare primary' : 'prepare';
    case 'txnDecide':
      // A push is sent by a request that met an intent, not by the coordinator.
      return command.decision.type === 'push' ? undefined : command.decision.type;
    case 'txnResolve':
      return 'resolve';
    case 'txnForget':
      return 'forget';
  }
}
