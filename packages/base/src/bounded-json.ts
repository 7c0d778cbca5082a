/** Deeper than anything that clients send, and shallow enough for code that walks a value by recursion. */
export const JSON_DEPTH_MAX = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses JSON from strangers. The caller has bounded the length. A scan refuses deep nesting before anything is built:
 * 256 KiB of brackets would block everything else for some tens of ms or more.
 *
 * @throws SyntaxError for text that is not JSON, or is nested deeper than `depthMax`.
 */
export function parseBoundedJson(text: string, depthMax = JSON_DEPTH_MAX): unknown {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === 0x5b || char === 0x7b) depth++;
    else if (char === 0x5d || char === 0x7d) depth--;
    if (depth > depthMax)
      throw new SyntaxError(`the JSON is nested more than ${depthMax} levels deep; reduce its depth`);
  }
  return JSON.parse(text);
}

/**
 * Returns the place of the last quote of a string that begins here; the end of the text if there is none, which
 * `JSON.parse` refuses.
 */
function endOfString(text: string, begin: number): number {
  for (let at = begin + 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === BACKSLASH) at++;
    else if (char === QUOTE) return at;
  }
  return text.length;
}
