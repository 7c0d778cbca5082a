/** A header field. Both parts are latin1 strings: one character for each octet. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/**
 * A field out of a header block. References to one table entry return one object, so what a caller works out about a
 * field may be kept by the object's identity.
 */
export interface DecodedField extends HeaderField {
  /** The name or the value contains an octet that RFC 9113 §8.2.1 forbids. The stream must be refused. */
  readonly malformed: boolean;
}

/** A block that cannot be decoded, nor those after it: the connection error COMPRESSION_ERROR (RFC 9113 §4.3). */
export class HpackError extends Error {
  override readonly name = 'HpackError';
}

/** What a field counts for beside its octets, in a table (RFC 7541 §4.1) and in a list (RFC 9113 §6.5.2). */
const FIELD_OVERHEAD_BYTES = 32;

/** The least that an entry of a table takes. */
export const ENTRY_BYTES_MIN = FIELD_OVERHEAD_BYTES;

/** The capacity of a dynamic table before any setting is agreed on (RFC 9113 §6.5.2). */
export const TABLE_BYTES_INITIAL = 4_096;

export function fieldBytes(field: HeaderField): number {
  return field.name.length + field.value.length + FIELD_OVERHEAD_BYTES;
}

export function decodedField(name: string, value: string): DecodedField {
  return { name, value, malformed: !isName(name) || !isValue(value) };
}

/**
 * Lower case and visible ASCII, and a colon as the first octet only. RFC 9113 §8.2.1 asks for this minimum, not for a
 * token of HTTP.
 */
function isName(name: string): boolean {
  if (name.length === 0) return false;
  for (let at = 0; at < name.length; at++) {
    const octet = name.charCodeAt(at);
    if (octet <= 0x20 || octet >= 0x7f || (octet >= 0x41 && octet <= 0x5a) || (octet === 0x3a && at > 0)) return false;
  }
  return true;
}

/** No NUL, CR or LF anywhere, no space or tab at an end. */
function isValue(value: string): boolean {
  const { length } = value;
  for (let at = 0; at < length; at++) {
    const octet = value.charCodeAt(at);
    if (octet > 0x20) continue;
    if (octet === 0 || octet === 0x0a || octet === 0x0d) return false;
    if ((octet === 0x20 || octet === 0x09) && (at === 0 || at === length - 1)) return false;
  }
  return true;
}
