/** Codecs of parts that log entries and stored rows have: they refuse what they do not know (schema/codec.ts SC2). */
import { checkLockCommand } from '@remora/lock';
import { closedCodec } from '../../schema/codec.ts';
import { Command } from '../command.ts';
import { CommandResult } from '../command-result.ts';
import { Epoch, NodeDescriptor, RangeDescriptor, ReplicaDescriptor } from '../descriptor.ts';
import { SpanKind } from '../lease-api.ts';
import { TxnCommit, TxnSpans } from '../transaction-api.ts';

export const { encode: encodeCommand, decode: decodeCommand } = closedCodec(Command);
export const { encode: encodeCommandResult, decode: decodeCommandResult } = closedCodec(CommandResult);
export const { encode: encodeEpoch, decode: decodeEpoch } = closedCodec(Epoch);
export const { encode: encodeNodeDescriptor, decode: decodeNodeDescriptor } = closedCodec(NodeDescriptor);
export const { encode: encodeRangeDescriptor, decode: decodeRangeDescriptor } = closedCodec(RangeDescriptor);
export const { encode: encodeReplica, decode: decodeReplica } = closedCodec(ReplicaDescriptor);
export const { encode: encodeSpan, decode: decodeSpan } = closedCodec(SpanKind);
export const { encode: encodeSpans, decode: decodeSpans } = closedCodec(TxnSpans);
export const { encode: encodeTxnCommit, decode: decodeTxnCommit } = closedCodec(TxnCommit);

/** Throws for a command that would not be decoded again: for those that have not been through the codec. */
export function checkCommand(command: Command): void {
  if (command.type === 'lock') checkLockCommand(command.command);
  else decodeCommand(encodeCommand(command));
}
