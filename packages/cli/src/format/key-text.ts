/** Keys as people type them on a command line, where a shell passes text only. */
import { type Command, Option } from 'commander';
import { CommandError } from '../exit-codes.ts';

const FORMATS = ['text', 'hex', 'base64'] as const;
export type KeyFormat = (typeof FORMATS)[number];

export interface KeyFlags {
  /** Unless given: text, or hex when it begins with 0x. */
  readonly keyFormat?: KeyFormat;
}

/** Gives a command that takes keys the flag that says how they are written. */
export function addKeyFormatFlag(command: Command): Command {
  const format = new Option(
    '--key-format <format>',
    'how keys are written; text unless given, or hex if 0x is in front',
  );
  return command.addOption(format.choices(FORMATS));
}

/** @throws CommandError `usage` that says what would be right. */
export function readKey(text: string, { keyFormat }: KeyFlags): Buffer {
  const key = READERS[keyFormat ?? (text.startsWith('0x') ? 'hex' : 'text')](text);
  if (key.length === 0) throw new CommandError('usage', 'a key has at least one byte');
  return key;
}

const READERS: Readonly<Record<KeyFormat, (text: string) => Buffer>> = {
  text: (text) => Buffer.from(text),
  hex(text) {
    const digits = text.replace(/^0x/, '');
    if (/^([0-9a-fA-F]{2})*$/.test(digits)) return Buffer.from(digits, 'hex');
    throw malformed(text, 'pairs of hex digits, as in 0x00ff; --key-format text takes it as it is');
  },
  base64(text) {
    const key = Buffer.from(text, 'base64');
    const bare = (base64: string) => base64.replace(/=+$/, '');
    if (bare(key.toString('base64')) === bare(text)) return key;
    throw malformed(text, 'base64 with the letters A-Z a-z 0-9 + /');
  },
};

function malformed(text: string, expected: string): CommandError {
  return new CommandError('usage', `the key ${JSON.stringify(text)} is not right: expected ${expected}`);
}
