/**
 * The format of a backup file: `magic(8)`, whose last byte is the version of the format, then frames
 * (backup-frames.ts): one header; pairs in the order of their keys; one end. Format 2 may also have deleted keys, in
 * one order with the pairs, and users and roles. A backup that needs nothing of format 2 is written in format 1.
 *
 * BF1. Damage is found before anything is used: every frame has a checksum, the end has one of all frames, and counts
 *      them.
 * BF2. Only files whose end is there are whole: what broke off is refused.
 * BF3. An image from etcd's Snapshot call has padding and a SHA-256 behind the end, by which etcd's clients recognize
 *      a whole file (`SNAPSHOT_BLOCK_BYTES`). The frames have checksums of their own, so a reader does not check it.
 * BF4. A backup without `since` has all pairs of its header. One with `since` has the pairs that changed after that
 *      revision, and the keys that were deleted after it.
 */
import { type Bytes, compareBytes, concatBytes, copyBytes, crc32 } from '@remora/base';
import type { KeyValue } from '../internal/kv-types.ts';
import {
  BACKUP_FORMAT,
  BackupError,
  type BackupHeader,
  type BackupUsers,
  encodeFrame,
  FRAME_HEADER_BYTES,
  type Frame,
  PLAIN_FORMAT,
  readFrame,
} from './backup-frames.ts';

const MAGIC = Buffer.from('remback', 'latin1');
/** BF3. The length of such a file without its hash is a multiple of this, as that of etcd's database file. */
export const SNAPSHOT_BLOCK_BYTES = 512;
const SNAPSHOT_HASH_BYTES = 32;

/** Makes the bytes of a backup, piece by piece. */
export class BackupEncoder {
  #format = PLAIN_FORMAT;
  #pairs = 0;
  #deleted = 0;
  #sum = 0;

  begin(header: BackupHeader): Buffer {
    if (header.since !== undefined || header.withUsers) this.#format = BACKUP_FORMAT;
    return concatBytes(MAGIC, Buffer.of(this.#format), this.#frame({ type: 'header', ...header }));
  }

  pairs(pairs: readonly KeyValue[]): Buffer {
    this.#pairs += pairs.length;
    return this.#frame({ type: 'pairs', pairs });
  }

  /** Of an incremental backup. Pairs and deleted keys come in one order of keys. */
  deleted(keys: readonly Bytes[]): Buffer {
    this.#deleted += keys.length;
    return this.#frame({ type: 'deleted', keys });
  }

  users(content: BackupUsers): Buffer {
    return this.#frame({ type: 'users', content });
  }

  end(): Buffer {
    return this.#frame({ type: 'end', pairs: this.#pairs, sum: this.#sum, deleted: this.#deleted });
  }

  #frame(content: Frame): Buffer {
    const frame = encodeFrame(content, this.#format);
    this.#sum = crc32(frame.subarray(0, FRAME_HEADER_BYTES), this.#sum);
    return frame;
  }
}

export type BackupPart =
  | { readonly type: 'header'; readonly header: BackupHeader }
  | { readonly type: 'pairs'; readonly pairs: readonly BackupPair[] }
  | { readonly type: 'deleted'; readonly keys: readonly Buffer[] }
  | { readonly type: 'users'; readonly content: BackupUsers };

export interface BackupPair extends KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
}

/**
 * Reads the parts of a backup; throws a `BackupError`, at the end at the latest, unless the whole backup is valid (BF1,
 * BF2).
 */
export async function* decodeBackup(readSome: (bytes: number) => Promise<Buffer>): AsyncGenerator<BackupPart> {
  let length = 0;
  const read = async (bytes: number): Promise<Buffer> => {
    const piece = await readSome(bytes);
    length += piece.length;
    return piece;
  };
  const format = formatOf(await read(MAGIC.length + 1));
  const order = new Order();
  let sum = 0;
  for (;;) {
    const head = await read(FRAME_HEADER_BYTES);
    if (head.length < FRAME_HEADER_BYTES) throw new BackupError('is incomplete: its end is missing');
    const frame = await readFrame(head, { format, read });
    const part = order.next(frame, sum);
    if (part === undefined) {
      const rest = await read(SNAPSHOT_BLOCK_BYTES + SNAPSHOT_HASH_BYTES);
      if (!mayFollow(rest, length)) throw new BackupError('is damaged: data follows its end record');
      return;
    }
    yield part;
    sum = crc32(head, sum);
  }
}

/** Checks which parts follow each other, and counts them. */
class Order {
  #header: BackupHeader | undefined;
  #last: Bytes | undefined;
  #pairs = 0;
  #deleted = 0;
  #users = 0;

  /** Returns undefined for a valid end. `sum`: the checksum of all frames before. */
  next(frame: Frame, sum: number): BackupPart | undefined {
    const header = this.#header;
    if (header === undefined) {
      if (frame.type !== 'header') throw new BackupError('is damaged: it does not start with a header');
      const { type: _, ...found } = frame;
      this.#header = found;
      return { type: 'header', header: found };
    }
    switch (frame.type) {
      case 'pairs': {
        const pairs = frame.pairs.map(ownPair);
        this.#pairs += pairs.length;
        for (const { key } of pairs) this.#ascend(key);
        return { type: 'pairs', pairs };
      }
      case 'deleted': {
        const keys = frame.keys.map(copyBytes);
        this.#deleted += keys.length;
        for (const key of keys) this.#ascend(key);
        return { type: 'deleted', keys };
      }
      case 'users':
        this.#users++;
        return frame;
      default:
        if (frame.type === 'end' && frame.sum === sum && this.#isWhole(header, frame)) return undefined;
        throw new BackupError('is damaged: its end record counts other parts than the file has');
    }
  }

  /** BF4. */
  #isWhole(header: BackupHeader, end: Extract<Frame, { type: 'end' }>): boolean {
    const counted = end.pairs === this.#pairs && end.deleted === this.#deleted;
    const complete = header.since !== undefined || (this.#pairs === header.pairs && this.#deleted === 0);
    return counted && complete && this.#users === (header.withUsers ? 1 : 0);
  }

  #ascend(key: Bytes): void {
    if (this.#last !== undefined && compareBytes(this.#last, key) >= 0) {
      throw new BackupError('is damaged: its keys are out of order');
    }
    this.#last = key;
  }
}

/** BF3. Whether `rest`, the end of a file of `length` bytes, is nothing, or padding and a hash. */
function mayFollow(rest: Buffer, length: number): boolean {
  if (rest.length === 0) return true;
  if (rest.length >= SNAPSHOT_BLOCK_BYTES + SNAPSHOT_HASH_BYTES) return false;
  const padding = rest.subarray(0, -SNAPSHOT_HASH_BYTES);
  return length % SNAPSHOT_BLOCK_BYTES === SNAPSHOT_HASH_BYTES && padding.every((byte) => byte === 0);
}

function formatOf(bytes: Buffer): number {
  if (bytes.length <= MAGIC.length || bytes.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) {
    throw new BackupError('is not a backup of a cluster');
  }
  const format = bytes[MAGIC.length] ?? 0;
  if (format >= PLAIN_FORMAT && format <= BACKUP_FORMAT) return format;
  throw new BackupError(`has format ${format}; this version of remora reads formats up to ${BACKUP_FORMAT}`);
}

/** What is read is a slice of a frame. */
function ownPair(pair: KeyValue): BackupPair {
  return { ...pair, key: copyBytes(pair.key), value: copyBytes(pair.value) };
}
