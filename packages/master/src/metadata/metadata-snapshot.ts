import { assert, type Bytes, copyBytes, crc32 } from '@remora/base';
import type { SnapshotMeta, SnapshotReceiver } from '@remora/raft';
import type { MasterImage } from './master-state.ts';
import { decodeMasterImage, encodeMasterImage } from './metadata-codec.ts';

/**
 * The master's state in transfer to another master: `magic(8), length(4), checksum(4), image`. The last byte of the
 * magic is the version of the format. The state is small and in memory anyway, so the receiver collects it in memory
 * and checks it as a whole before it replaces anything. One row of the engine holds it, so it becomes durable
 * atomically.
 */
const FORMAT = 1;
const MAGIC = Buffer.from(`remmast${String.fromCharCode(FORMAT)}`, 'latin1');
const HEADER_BYTES = MAGIC.length + 8;
const IMAGE_BYTES_MAX = 64 * 1024 * 1024;

/** The received bytes are not the announced snapshot; none of them were used. */
export class MasterSnapshotError extends Error {
  override readonly name = 'MasterSnapshotError';
}

export function encodeMasterSnapshot(image: MasterImage): Buffer {
  const body = encodeMasterImage(image);
  assert(
    body.length <= IMAGE_BYTES_MAX,
    `the master's state has ${body.length} bytes; a snapshot holds at most ${IMAGE_BYTES_MAX}`,
  );
  const header = Buffer.alloc(HEADER_BYTES);
  MAGIC.copy(header);
  header.writeUInt32BE(body.length, MAGIC.length);
  header.writeUInt32BE(crc32(body), MAGIC.length + 4);
  return Buffer.concat([header, body]);
}

/** Collects the chunks; calls `install` with the result once it is complete and correct. */
export function receiveMasterSnapshot(
  meta: SnapshotMeta,
  install: (image: MasterImage) => Promise<void>,
): SnapshotReceiver {
  let parts: Bytes[] = [];
  let bytes = 0;
  return {
    async chunk(piece) {
      bytes += piece.length;
      if (bytes > HEADER_BYTES + IMAGE_BYTES_MAX) throw broken(`is larger than ${IMAGE_BYTES_MAX} bytes`);
      parts.push(copyBytes(piece));
    },
    async finish() {
      const image = decode(Buffer.concat(parts));
      parts = [];
      if (image.applied.index !== meta.index || image.applied.term !== meta.term) {
        throw broken('has another log position than its header says');
      }
      await install(image);
    },
    abort() {
      parts = [];
    },
  };
}

function decode(stream: Buffer): MasterImage {
  if (stream.length < HEADER_BYTES) throw broken('ends too early');
  if (MAGIC.compare(stream, 0, MAGIC.length - 1, 0, MAGIC.length - 1) !== 0)
    throw broken('is not a snapshot of a master');
  const version = stream[MAGIC.length - 1];
  if (version !== FORMAT) throw broken(`has format ${version}; this version reads ${FORMAT}`);
  const body = stream.subarray(HEADER_BYTES);
  if (body.length !== stream.readUInt32BE(MAGIC.length)) throw broken('is truncated, or has data after its end');
  if (crc32(body) !== stream.readUInt32BE(MAGIC.length + 4)) throw broken('is damaged: its checksum does not match');
  try {
    return decodeMasterImage(body);
  } catch (error) {
    throw broken(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function broken(what: string): MasterSnapshotError {
  return new MasterSnapshotError(`the snapshot ${what}`);
}
