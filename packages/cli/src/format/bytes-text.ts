import { utf8Text } from '@remora/base';

/** Text of others as a terminal can show it, in one line. */
export function printableText(text: string): string {
  return printable(Buffer.from(text));
}

/** Bytes as a terminal can show them: text where they are text, `\xNN` for the rest. */
export function printable(bytes: Uint8Array): string {
  const text = utf8Text(bytes);
  if (text !== undefined) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these must not reach a terminal.
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) =>
      Array.from(Buffer.from(char), hexEscape).join(''),
    );
  }
  return Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : hexEscape(byte))).join(
    '',
  );
}

function hexEscape(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}
