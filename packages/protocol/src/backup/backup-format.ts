/**
 * The format of a backup file: `magic(8)`, whose last byte is the version of the format, then frames `length(4),
 * checksum(4), body`, each a packed list that begins with its kind: one header, any number of frames of pairs in the
 * order of their keys, one end.
 *
 * BF1. Damage is found before anything is used: every frame has a checksum, the end has one of all frames, and counts
 *      them.
 * BF2. Only files whose end is there are whole: what broke off is refused.
 * BF3. An image from etcd's Snapshot call has padding and a SHA-256 behind the end, by which etcd's clients recognize a
 *      whole file (`SNAPSHOT_BLOCK_BYTES`). The frames have checksums of their own, so a reader does not check it.
 */
import { type Bytes, compareBytes, concatBytes, copyBytes, crc32 } from '@remora/base';
import { packPlain } from '../internal/codec/pack.ts';
import { unpack } from '../internal/codec/unpack.ts';
import { KeyValue } from '../internal/kv-types.ts';
import * as schema from '../schema/index.ts';

export const BACKUP_FORMAT = 1;
const MAGIC = Buffer.from(`remback${String.fromCharCode(BACKUP_FORMAT)}`, 'latin1');
const FRAME_HEADER_BYTES = 8;
/** BF3. The length of such a file without its hash is a multiple of this, as that of etcd's database file. */
export const SNAPSHOT_BLOCK_BYTES = 512;
const SNAPSHOT_HASH_BYTES = 32;
/** A page, one pair above its bound, and room. */
const FRAME_BYTES_MAX = 64 * 1024 * 1024;

const { field, list, ms, struct, text, uint, union, variant } = schema;

const HEADER = {
  clusterId: field(text, 'The cluster that it was taken of.'),
  revision: field(uint, 'The revision of the pairs.'),
  pairs: field(uint, 'How many pairs there are.'),
  takenAtMs: field(ms, 'Wall time in milliseconds, for people.'),
  program: field(text, 'The program that wrote it, for people.'),
};
const HeaderKind = struct('header of a backup', HEADER);
export type BackupHeader = schema.Infer<typeof HeaderKind>;

const Frame = union('part of a backup', 'type', {
  header: variant(0, HEADER),
  pairs: variant(1, { pairs: field(list(KeyValue), 'Pairs in the order of their keys.') }),
  end: variant(2, {
    pairs: field(uint, 'How many pairs there were.'),
    sum: field(uint, 'The checksum of the checksums of all frames.'),
  }),
});
type Frame = schema.Infer<typeof Frame>;
const frames = schema.closedCodec(Frame);

/** The file is not a backup, has another format, is damaged or is incomplete. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Makes the bytes of a backup, piece by piece. */
export class BackupEncoder {
  #pairs = 0;
  #sum = 0;

  begin(header: BackupHeader): Buffer {
    return concatBytes(MAGIC, this.#frame({ type: 'header', ...header }));
  }

  pairs(pairs: readonly KeyValue[]): Buffer {
    this.#pairs += pairs.length;
    return this.#frame({ type: 'pairs', pairs });
  }

  end(): Buffer {
    return this.#frame({ type: 'end', pairs: this.#pairs, sum: this.#sum });
  }

  #frame(content: Frame): Buffer {
    const body = packPlain(frames.encode(content));
    const head = Buffer.alloc(FRAME_HEADER_BYTES);
    const checksum = crc32(body);
    head.writeUInt32BE(body.length);
    head.writeUInt32BE(checksum, 4);
    this.#sum = crc32(head, this.#sum);
    return concatBytes(head, body);
  }
}

export type BackupPart =
  | { readonly type: 'header'; readonly header: BackupHeader }
  | { readonly type: 'pairs'; readonly pairs: readonly BackupPair[] };

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
  checkMagic(await read(MAGIC.length));
  let header: BackupHeader | undefined;
  let last: Bytes | undefined;
  let [pairs, sum] = [0, 0];
  for (;;) {
    const head = await read(FRAME_HEADER_BYTES);
    if (head.length < FRAME_HEADER_BYTES) throw new BackupError('is incomplete: its end is missing');
    const part = await readPart(head, read);
    if (header === undefined) {
      if (part.type !== 'header') throw new BackupError('is damaged: it does not start with a header');
      const { type: _, ...found } = part;
      header = found;
      yield { type: 'header', header };
    } else if (part.type === 'pairs') {
      const page = part.pairs.map(ownPair);
      for (const { key } of page) {
        if (last !== undefined && compareBytes(last, key) >= 0)
          throw new BackupError('is damaged: its keys are out of order');
        last = key;
      }
      pairs += page.length;
      yield { type: 'pairs', pairs: page };
    } else {
      const whole = part.type === 'end' && part.pairs === pairs && part.sum === sum && pairs === header.pairs;
      if (!whole) throw new BackupError('is damaged: its end record counts other parts than the file has');
      const rest = await read(SNAPSHOT_BLOCK_BYTES + SNAPSHOT_HASH_BYTES);
      if (!mayFollow(rest, length)) throw new BackupError('is damaged: data follows its end record');
      return;
    }
    sum = crc32(head, sum);
  }
}

/** BF3. Whether `rest`, the end of a file of `length` bytes, is nothing, or padding and a hash. */
function mayFollow(rest: Buffer, length: number): boolean {
  if (rest.length === 0) return true;
  if (rest.length >= SNAPSHOT_BLOCK_BYTES + SNAPSHOT_HASH_BYTES) return false;
  const padding = rest.subarray(0, -SNAPSHOT_HASH_BYTES);
  return length % SNAPSHOT_BLOCK_BYTES === SNAPSHOT_HASH_BYTES && padding.every((byte) => byte === 0);
}

function checkMagic(bytes: Buffer): void {
  if (bytes.length < MAGIC.length || bytes.compare(MAGIC, 0, MAGIC.length - 1, 0, MAGIC.length - 1) !== 0) {
    throw new BackupError('is not a backup of a cluster');
  }
  const format = bytes[MAGIC.length - 1];
  if (format !== BACKUP_FORMAT)
    throw new BackupError(`has format ${format}; this version of remora reads format ${BACKUP_FORMAT}`);
}

async function readPart(head: Buffer, read: (bytes: number) => Promise<Buffer>): Promise<Frame> {
  const length = head.readUInt32BE(0);
  if (length > FRAME_BYTES_MAX) throw new BackupError('is damaged: a part has an invalid length');
  const body = await read(length);
  if (body.length < length) throw new BackupError('is incomplete: it is truncated');
  if (crc32(body) !== head.readUInt32BE(4)) throw new BackupError('is damaged: a checksum does not match');
  return decoded(() => frames.decode(unpack(body, 0)));
}

/** What is read is a slice of a frame. */
function ownPair(pair: KeyValue): BackupPair {
  return { ...pair, key: copyBytes(pair.key), value: copyBytes(pair.value) };
}

/** Every decoding error means damage. */
function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new BackupError('is damaged: a part cannot be decoded', { cause });
  }
}
