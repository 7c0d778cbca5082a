/**
 * What a terminal acts upon instead of showing it, or does not show at all: controls of both sets, marks that change
 * the direction of text, characters without width, tags, halves of surrogate pairs, private characters, and the
 * separators that end a line of Unicode.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Text of others as it may reach a terminal: nothing in it moves the cursor, forges a line or hides from the reader.
 *
 * @param text what others said.
 * @param kept characters that stay as they are, such as the line ends of a text of several lines.
 * @param written writes one character; by default as JSON does, so that JSON stays what it was.
 */
export function escapeHidden(text: string, kept = '', written: (char: string) => string = unicodeEscape): string {
  return text.replace(HIDDEN, (char) => (kept.includes(char) ? char : written(char)));
}

function unicodeEscape(char: string): string {
  return Array.from({ length: char.length }, (_, i) => {
    return `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`;
  }).join('');
}
