/**
 * Characters that a terminal obeys instead of showing, or does not show at all: controls of both sets, marks that
 * change the direction of text, characters without width, tags, halves of surrogate pairs, private characters, and the
 * line separators of Unicode.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Makes text from others safe for a terminal: nothing in it moves the cursor, forges a line or hides from the reader.
 *
 * @param text the text.
 * @param kept characters that stay as they are, such as the line ends of a text of several lines.
 * @param written escapes one character; by default as JSON does, so that JSON keeps its meaning.
 */
export function escapeHidden(text: string, kept = '', written: (char: string) => string = unicodeEscape): string {
  return text.replace(HIDDEN, (char) => (kept.includes(char) ? char : written(char)));
}

function unicodeEscape(char: string): string {
  return Array.from({ length: char.length }, (_, i) => {
    return `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`;
  }).join('');
}
