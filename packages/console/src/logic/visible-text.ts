/**
 * Text of unknown origin, in pieces to show. Control characters, bidirectional marks and other invisible characters
 * could hide or reorder what an operator reads, so each becomes a piece with a name of its own.
 */
export type Piece =
  | { readonly kind: 'plain'; readonly text: string }
  | { readonly kind: 'mark'; readonly text: string; readonly meaning: string };

/** C0 and C1 controls, soft hyphen, zero-width and bidirectional characters, separators, tags, lone surrogates. */
const HIDDEN =
  /[\u0000-\u001F\u007F-\u00A0\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202F\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]|\p{Surrogate}/gu;

const NAMES: Readonly<Record<number, string>> = {
  0x00: 'NUL',
  0x08: 'backspace',
  0x09: 'tab',
  0x0a: 'line feed',
  0x0d: 'carriage return',
  0x1b: 'escape',
  0x7f: 'delete',
  0xa0: 'no-break space',
  0xad: 'soft hyphen',
  0x200b: 'zero-width space',
  0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner',
  0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark',
  0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding',
  0x202c: 'pop directional formatting',
  0x202d: 'left-to-right override',
  0x202e: 'right-to-left override',
  0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate',
  0x2069: 'pop directional isolate',
  0xfeff: 'byte order mark',
};

const SHORT: Readonly<Record<number, string>> = { 0x09: '\\t', 0x0a: '\\n', 0x0d: '\\r', 0x1b: '\\e', 0x00: '\\0' };

/** `keepLines`: line feeds and tabs stay as they are, for blocks of text. */
export function piecesOf(text: string, { keepLines = false } = {}): readonly Piece[] {
  const pieces: Piece[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain !== '') pieces.push({ kind: 'plain', text: plain });
    plain = '';
  };
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    plain += text.slice(from, match.index);
    from = match.index + match[0].length;
    if (keepLines && (match[0] === '\n' || match[0] === '\t')) {
      plain += match[0];
      continue;
    }
    flush();
    pieces.push(markOf(match[0]));
  }
  plain += text.slice(from);
  flush();
  return pieces;
}

/** The same as one string, for titles and labels that take no elements. */
export function visibleText(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join('');
}

function markOf(char: string): Piece {
  const code = char.codePointAt(0) ?? 0;
  const number = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  const name = NAMES[code];
  const short = SHORT[code] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`);
  return { kind: 'mark', text: short, meaning: name === undefined ? number : `${name} (${number})` };
}
