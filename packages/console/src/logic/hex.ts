/** The classic dump: offset, sixteen bytes in hexadecimal, and their ASCII letters. */
export interface HexLine {
  readonly offset: string;
  readonly hex: string;
  readonly ascii: string;
}

const HEX_LINE_BYTES = 16;

export function hexLine(bytes: Uint8Array, line: number): HexLine {
  const from = line * HEX_LINE_BYTES;
  const part = bytes.subarray(from, from + HEX_LINE_BYTES);
  const pairs = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'));
  const halves = [pairs.slice(0, 8).join(' '), pairs.slice(8).join(' ')];
  return {
    offset: from.toString(16).padStart(8, '0'),
    hex: halves.join('  ').padEnd(HEX_LINE_BYTES * 3, ' '),
    ascii: Array.from(part, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join(''),
  };
}

export function hexLines(bytes: Uint8Array): number {
  return Math.ceil(bytes.length / HEX_LINE_BYTES);
}

/** Reads hexadecimal digits, with or without spaces; undefined if there is anything else or half a byte. */
export function parseHex(text: string): Uint8Array | undefined {
  const digits = text.replace(/\s+/g, '');
  if (digits.length % 2 !== 0 || /[^0-9A-Fa-f]/.test(digits)) return undefined;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
