import { createHash } from 'node:crypto';
import type { ByteSource } from './byte-source.ts';
import { damaged, EtcdFileError } from './etcd-file-error.ts';

const HASH_BYTES = 32;
/** The size of a database is a multiple of this, so a hash behind it is recognized by the size, as etcd does. */
const BLOCK_BYTES = 512;
const PIECE_BYTES = 1024 * 1024;

/** Whether the file has the size of a database with a SHA-256 behind it. */
function hasHash({ size }: ByteSource): boolean {
  return size > HASH_BYTES && size % BLOCK_BYTES === HASH_BYTES;
}

/**
 * Compares the SHA-256 at the end of a snapshot with the bytes before it. `onBytes` is called with the size of each
 * piece that was read.
 *
 * @throws EtcdFileError when there is none, or when it does not match.
 */
export async function verifyHash(source: ByteSource, onBytes: (bytes: number) => void): Promise<void> {
  if (!hasHash(source)) {
    throw new EtcdFileError(
      'has no SHA-256 at its end: it is truncated, or was not written by `etcdctl snapshot save`. For the file ' +
        'member/snap/db of an etcd that was stopped, add --skip-hash-check',
    );
  }
  const length = source.size - HASH_BYTES;
  const sum = createHash('sha256');
  for (let at = 0; at < length; at += PIECE_BYTES) {
    const piece = await source.read(at, Math.min(PIECE_BYTES, length - at));
    sum.update(piece);
    onBytes(piece.length);
  }
  const expected = await source.read(length, HASH_BYTES);
  if (!sum.digest().equals(expected)) throw damaged('its SHA-256 does not match its contents');
}
