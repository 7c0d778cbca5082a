/** Keys on a command line, where a shell passes only text. */
import { prefixEnd, type Span } from '@remora/base';
import { kvRoutingKey, readRoutingKey } from '@remora/protocol';
import { type Command, Option } from 'commander';
import { CommandError } from '../exit-codes.ts';

const FORMATS = ['text', 'hex', 'base64'] as const;
export type KeyFormat = (typeof FORMATS)[number];

export interface KeyFlags {
  /**
   * By default: in the form in which bounds of ranges are printed (`routingKeyText`), else text, or hex if it begins
   * with 0x.
   */
  readonly keyFormat?: KeyFormat;
}

/** Adds the flag for the form of keys to a command, and a paragraph of help about it. */
export function addKeyFormatFlag(command: Command): Command {
  const format = new Option('--key-format <format>', 'format of the keys given; all are plain keys then');
  return command.addOption(format.choices(FORMATS)).addHelpText(
    'after',
    `
Keys:
  orders/42, 0x00ff        a plain key, as text or in hex
  key:orders/42            the same, as "ranges ls" prints it; \\xNN stands for a byte
  lock:orders/42           the lock orders/42; lock@jobs:orders/42 is in the namespace jobs
  lease:5f3a               the leases whose ids start with 5f3a
  Prefix a plain key that itself starts with key:, lock:, lease: or raw: with key:, as in key:lock:a, or use --key-format text.`,
  );
}

/** Returns the routing key. @throws CommandError `usage` that names the valid forms. */
export function readKey(text: string, flags: KeyFlags): Buffer {
  const read = readAsPrinted(text, flags);
  if (read === undefined) return kvRoutingKey(readPlainKey(text, flags));
  if (read.key.length > 0) return read.key;
  throw new CommandError('usage', '"-" means "no bound" and is not a key; for the plain key "-", write key:-');
}

/** Returns the span of all keys with that prefix, as routing keys. @throws CommandError like `readKey`. */
export function readPrefix(text: string, flags: KeyFlags): Span {
  const read = readAsPrinted(text, flags);
  if (read !== undefined) return read.prefix;
  const start = kvRoutingKey(readPlainKey(text, flags));
  return { start, end: prefixEnd(start) };
}

/** A routing key, or `-` for none: empty. @throws CommandError like `readKey`. */
export function readBound(text: string | undefined, flags: KeyFlags): Buffer {
  if (text === undefined) return Buffer.of();
  return readAsPrinted(text, flags)?.key ?? kvRoutingKey(readPlainKey(text, flags));
}

function readAsPrinted(
  text: string,
  { keyFormat }: KeyFlags,
): { readonly key: Buffer; readonly prefix: Span } | undefined {
  const read = keyFormat === undefined ? readRoutingKey(text) : undefined;
  if (read?.ok === false) throw malformed(text, `${read.expected}; for a plain key, write key:${text}`);
  return read;
}

function readPlainKey(text: string, { keyFormat }: KeyFlags): Buffer {
  const key = READERS[keyFormat ?? (text.startsWith('0x') ? 'hex' : 'text')](text);
  if (key.length === 0) throw new CommandError('usage', 'the key is empty; a key must have at least one byte');
  return key;
}

const READERS: Readonly<Record<KeyFormat, (text: string) => Buffer>> = {
  text: (text) => Buffer.from(text),
  hex(text) {
    const digits = text.replace(/^0x/, '');
    if (/^([0-9a-fA-F]{2})*$/.test(digits)) return Buffer.from(digits, 'hex');
    throw malformed(text, 'pairs of hex digits, as in 0x00ff; for literal text, add --key-format text');
  },
  base64(text) {
    const key = Buffer.from(text, 'base64');
    const bare = (base64: string) => base64.replace(/=+$/, '');
    if (bare(key.toString('base64')) === bare(text)) return key;
    throw malformed(text, 'base64 with the letters A-Z a-z 0-9 + /');
  },
};

function malformed(text: string, expected: string): CommandError {
  return new CommandError('usage', `invalid key ${JSON.stringify(text)}: expected ${expected}`);
}
