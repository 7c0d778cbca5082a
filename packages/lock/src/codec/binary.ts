/** Numbers and short text in records and keys, without the overhead of Buffer's own methods: the hot path of a lock. */
import type { Bytes } from '@remora/base';

const SHORT_TEXT = 64;

let lastBuffer: ArrayBufferLike = new ArrayBuffer(0);
let lastView: DataView = new DataView(lastBuffer);

/** A view of the whole memory that contains `bytes`: add `byteOffset`. Created once for all slices of one pool. */
export function viewAround(bytes: Bytes): DataView {
  const { buffer } = bytes;
  if (buffer !== lastBuffer) {
    lastBuffer = buffer;
    lastView = new DataView(buffer);
  }
  return lastView;
}

/** Writes text of `byteLength` bytes of UTF-8; returns where it ends. */
export function writeText(out: Buffer, text: string, at: number, byteLength: number): number {
  if (byteLength === text.length && byteLength <= SHORT_TEXT) {
    // As many bytes as characters: ASCII.
    for (let i = 0; i < byteLength; i++) out[at + i] = text.charCodeAt(i);
  } else out.write(text, at);
  return at + byteLength;
}
