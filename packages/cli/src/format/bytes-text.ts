import { escapeHidden, utf8Text } from '@remora/base';

/** Text from others in one line that a terminal can show. */
export function printableText(text: string): string {
  return printable(Buffer.from(text));
}

/** Bytes that a terminal can show: as text if they are text, `\xNN` for the rest. */
export function printable(bytes: Uint8Array): string {
  const text = utf8Text(bytes);
  if (text !== undefined) return escapeHidden(text, '', (char) => Array.from(Buffer.from(char), hexEscape).join(''));
  return Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : hexEscape(byte))).join(
    '',
  );
}

/** A value for people: like `printable`, but text keeps its lines and tabs. */
export function printableValue(bytes: Uint8Array): string {
  const text = utf8Text(bytes);
  return text === undefined
    ? printable(bytes)
    : text
        .split(/(?<=[\n\t])/)
        .map(lineOf)
        .join('');
}

function lineOf(part: string): string {
  const end = /[\n\t]$/.exec(part)?.[0] ?? '';
  return printableText(part.slice(0, part.length - end.length)) + end;
}

function hexEscape(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}
