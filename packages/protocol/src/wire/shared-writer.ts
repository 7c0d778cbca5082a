import { BinaryWriter } from '@bufbuild/protobuf/wire';

/** Generated code encodes messages with this, and uses one empty `Buffer` (scripts/lighten.mjs). */

/** A writer that has grown beyond this is not kept. */
const WRITER_BYTES_MAX = 64 << 10;

export const EMPTY_BYTES = Buffer.alloc(0);

let writer: BinaryWriter | undefined;

/** Encodes a message. A new writer for each would cost two more pieces of memory outside V8's heap. */
export function written<Message>(
  type: { encode(message: Message, writer: BinaryWriter): BinaryWriter },
  message: Message,
): Buffer {
  const mine = writer ?? new BinaryWriter();
  writer = undefined; // It is not kept if encoding throws.
  const bytes = type.encode(message, mine).finish();
  if (bytes.length <= WRITER_BYTES_MAX) writer = mine;
  return Buffer.from(bytes.buffer);
}
