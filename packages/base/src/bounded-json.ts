/** Deeper than anything that is sent here, and shallow enough for code that walks a value by recursion. */
export const JSON_DEPTH_MAX = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses JSON of strangers, whose length the caller has bounded. Deep nesting is refused by a scan before anything is
 * built: 256 KiB of brackets hold up everything else for some tens of ms or more.
 *
 * @throws SyntaxError for what is no JSON, or is nested deeper than `depthMax`.
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
 * Where a string that begins here has its last quote; the end of the text when it has none, which `JSON.parse` refuses.
 */
function endOfString(text: string, begin: number): number {
  for (let at = begin + 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === BACKSLASH) at++;
    else if (char === QUOTE) return at;
  }
  return text.length;
}
