/** Codecs of parts of log entries and stored rows: they refuse what they do not know (schema/codec.ts SC2). */
import { checkLockCommand } from '@remora/lock';
import { closedCodec } from '../../schema/codec.ts';
import { Command } from '../command.ts';
import { CommandResult } from '../command-result.ts';

export const { encode: encodeCommand, decode: decodeCommand } = closedCodec(Command);
export const { encode: encodeCommandResult, decode: decodeCommandResult } = closedCodec(CommandResult);

/** Throws for a command that could not be decoded again: for commands that have not been through the codec. */
export function checkCommand(command: Command): void {
  if (command.type === 'lock') checkLockCommand(command.command);
  else decodeCommand(encodeCommand(command));
}
