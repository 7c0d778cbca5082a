import type { Random } from '@remora/base';
import { isTxnCommand, type RangeRequest, type RpcDialer, rangeExecute, type TxnCommand } from '@remora/protocol';

/** Ends the process. Nothing that it would do later happens. */
export type Kill = () => void;

/** Counts how often coordinators ended before or after each message of a transaction. */
export type Kills = Map<string, number>;

/**
 * For each kind of message: one of this many is the last message that its coordinator sends, or the last one whose
 * answer it hears.
 */
const KILLED_IN: Readonly<Record<TxnCommand['type'], number>> = {
  txnPrepare: 250,
  txnDecide: 50,
  txnResolve: 150,
  txnForget: 100,
};

/**
 * The path from a gateway to ranges. The gateway may end before it sends a message of a transaction, right after that,
 * or when the answer arrives.
 */
export function deadly(
  dialer: RpcDialer,
  deps: { readonly random: Random; readonly kill: Kill; readonly kills: Kills },
): RpcDialer {
  const { random, kill, kills } = deps;
  const end = (moment: string): void => {
    kills.set(moment, (kills.get(moment) ?? 0) + 1);
    kill();
  };
  const channel: RpcDialer['channel'] = (node) => {
    const inner = dialer.channel(node);
    const call: typeof inner.call = (method, request, options, done) => {
      const message = messageOf(method, request);
      if (message === undefined || random.int(KILLED_IN[message]) > 0)
        return inner.call(method, request, options, done);
      switch (random.int(3)) {
        case 0:
          end(`before ${message}`);
          return { cancel: () => {} };
        case 1: {
          const handle = inner.call(method, request, options, done);
          end(`behind ${message}`);
          return handle;
        }
        default:
          return inner.call(method, request, options, () => end(`after ${message}`));
      }
    };
    return { ...inner, call, openStream: (...args) => inner.openStream(...args) };
  };
  return { channel, channelTo: (address) => dialer.channelTo(address) };
}

function messageOf(method: { readonly name: string }, request: unknown): TxnCommand['type'] | undefined {
  if (method.name !== rangeExecute.name) return undefined;
  const { body } = request as RangeRequest;
  return body.kind === 'command' && isTxnCommand(body.command) ? body.command.type : undefined;
}
