/**
 * Text of unknown origin, in pieces to show. Control characters, bidirectional marks and other invisible characters
 * could hide or reorder what an operator reads, so each becomes a piece with a name of its own.
 */
export type Piece =
  | { readonly kind: 'plain'; readonly text: string }
  | { readonly kind: 'mark'; readonly text: string; readonly meaning: string };

/** First and last code points that are not shown as they are. */
const HIDDEN: readonly (readonly [number, number])[] = [
  ...([
    [0x00, 0x1f],
    [0x7f, 0xa0],
  ] as const), // controls, no-break space
  ...([
    [0xad, 0xad],
    [0x34f, 0x34f],
    [0x61c, 0x61c],
  ] as const), // soft hyphen, grapheme joiner, Arabic letter mark
  ...([
    [0x115f, 0x1160],
    [0x17b4, 0x17b5],
    [0x180b, 0x180f],
  ] as const), // fillers, inherent vowels, selectors
  ...([
    [0x200b, 0x200f],
    [0x2028, 0x202f],
    [0x2060, 0x206f],
  ] as const), // zero width, separators, bidirectional
  ...([
    [0x3164, 0x3164],
    [0xd800, 0xdfff],
    [0xfe00, 0xfe0f],
  ] as const), // filler, lone surrogates, selectors
  ...([
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
    [0xfff9, 0xfffb],
  ] as const), // byte order mark, filler, annotations
  [0xe0000, 0xe0fff], // tags
];

const NAMES: Readonly<Record<number, string>> = {
  0: 'NUL',
  8: 'backspace',
  9: 'tab',
  10: 'line feed',
  13: 'carriage return',
  27: 'escape',
  127: 'delete',
  160: 'no-break space',
  173: 'soft hyphen',
  8203: 'zero-width space',
  8204: 'zero-width non-joiner',
  8205: 'zero-width joiner',
  8206: 'left-to-right mark',
  8207: 'right-to-left mark',
  8234: 'left-to-right embedding',
  8235: 'right-to-left embedding',
  8236: 'pop directional formatting',
  8237: 'left-to-right override',
  8238: 'right-to-left override',
  8294: 'left-to-right isolate',
  8295: 'right-to-left isolate',
  8296: 'first strong isolate',
  8297: 'pop directional isolate',
  65279: 'byte order mark',
};

const SHORT: Readonly<Record<number, string>> = { 9: '\\t', 10: '\\n', 13: '\\r', 27: '\\e', 0: '\\0' };

/** `keepLines`: line feeds and tabs stay as they are, for blocks of text. */
export function piecesOf(text: string, { keepLines = false } = {}): readonly Piece[] {
  const pieces: Piece[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain !== '') pieces.push({ kind: 'plain', text: plain });
    plain = '';
  };
  for (const char of text) {
    if (!isHidden(char) || (keepLines && (char === '\n' || char === '\t'))) {
      plain += char;
      continue;
    }
    flush();
    pieces.push(markOf(char));
  }
  flush();
  return pieces;
}

/** The same as one string, for titles and labels that take no elements. */
export function visibleText(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join('');
}

function isHidden(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  if (code > 0x1f && code < 0x7f) return false;
  return HIDDEN.some(([first, last]) => code >= first && code <= last);
}

function markOf(char: string): Piece {
  const code = char.codePointAt(0) ?? 0;
  const number = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  const name = NAMES[code];
  const short =
    SHORT[code] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`);
  return { kind: 'mark', text: short, meaning: name === undefined ? number : `${name} (${number})` };
}
