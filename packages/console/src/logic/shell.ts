/** Command lines to show and copy. */
import { type JsonBytes, toBytes } from './bytes.ts';

export type Word = string | JsonBytes;

/** Quotes words for POSIX shells; bytes that are not printable become `$'\x1b'`, as bash and zsh read them. */
export function commandLine(words: readonly Word[]): string {
  return words.map(quoted).join(' ');
}

function quoted(word: Word): string {
  if (typeof word === 'string') {
    if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
    if (/^[\x20-\x7E\u00C0-\u024F\u0370-\u058F]*$/.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  }
  return `$'${Array.from(toBytes(word), escaped).join('')}'`;
}

function escaped(byte: number): string {
  const char = String.fromCharCode(byte);
  if (char === "'" || char === '\\') return `\\${char}`;
  return byte >= 0x20 && byte < 0x7f ? char : `\\x${byte.toString(16).padStart(2, '0')}`;
}
