/** Bytes as a terminal can show them: text where they are text, `\xNN` for the rest. */
export function printable(bytes: Uint8Array): string {
  const text = utf8OrUndefined(bytes);
  if (text !== undefined) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these must not reach a terminal.
    return text.replace(/[\u0000-\u001f\u007f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  }
  return Array.from(bytes, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  ).join('');
}

/** Bytes for JSON: text as it is, anything else as `{ "base64": "..." }`. */
export function jsonBytes(bytes: Uint8Array): string | { readonly base64: string } {
  return utf8OrUndefined(bytes) ?? { base64: Buffer.from(bytes).toString('base64') };
}

function utf8OrUndefined(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
