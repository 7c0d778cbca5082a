/** The status codes of gRPC. */
export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

const PERCENT = 0x25;
const SPACE = 0x20;

/** Text that stands for itself, and has no space at an end: a field cannot have one there (RFC 9113 §8.2.1). */
const PLAIN = /^(?:[\x21-\x24\x26-\x7e](?:[\x20-\x24\x26-\x7e]*[\x21-\x24\x26-\x7e])?)?$/;

/** Encodes the text of `grpc-message`: UTF-8, with octets other than visible ASCII, and `%`, as `%XX`. */
export function percentEncoded(text: string): string {
  if (PLAIN.test(text)) return text;
  const octets = Buffer.from(text);
  let encoded = '';
  octets.forEach((octet, index) => {
    const isEdge = octet === SPACE && (index === 0 || index === octets.length - 1);
    encoded +=
      octet >= SPACE && octet <= 0x7e && octet !== PERCENT && !isEdge
        ? String.fromCharCode(octet)
        : `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
  });
  return encoded;
}
