/**
 * The file that a backup is: `magic(8)`, whose last byte is the format, then frames `length(4), checksum(4), body`, each a
 * packed list that begins with its kind: one header, any number of frames of pairs in the order of their keys, one end.
 *
 * BF1. Damage is found before anything is used: every frame has a checksum, the end has one of all frames, and counts them.
 * BF2. Only files whose end is there are whole: what broke off is refused.
 */
import { type Bytes, compareBytes, concatBytes, copyBytes } from '@remora/base';
import {
  asBytes,
  asCount,
  asFields,
  asLease,
  asList,
  asMs,
  asText,
  leaseToWire,
  packPlain,
  unpack,
} from '@remora/protocol';
import { crc32 } from '@remora/raft';
import type { KvPair } from 'remora';

export const BACKUP_FORMAT = 1;
const MAGIC = Buffer.from(`remback${String.fromCharCode(BACKUP_FORMAT)}`, 'latin1');
const FRAME_HEADER_BYTES = 8;
/** A page, one pair above its bound, and room. */
export const FRAME_BYTES_MAX = 64 * 1024 * 1024;

const HEADER = 0;
const PAIRS = 1;
const END = 2;

export interface BackupHeader {
  readonly clusterId: string;
  /** What the pairs are as of. */
  readonly revision: number;
  readonly pairs: number;
  /** Wall time in ms, for people. */
  readonly takenAtMs: number;
  /** Of the program that wrote it, for people. */
  readonly program: string;
}

/** The file is no backup, of another format, damaged or not complete. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Makes the bytes of a backup, piece by piece. */
export class BackupEncoder {
  #pairs = 0;
  #sum = 0;

  begin(header: BackupHeader): Buffer {
    const { clusterId, revision, pairs, takenAtMs, program } = header;
    return concatBytes(MAGIC, this.#frame([HEADER, clusterId, revision, pairs, takenAtMs, program]));
  }

  pairs(pairs: readonly KvPair[]): Buffer {
    this.#pairs += pairs.length;
    const rows = pairs.map((kv) => [
      kv.key,
      kv.value,
      kv.createRevision,
      kv.modRevision,
      kv.version,
      leaseToWire(kv.lease),
    ]);
    return this.#frame([PAIRS, rows]);
  }

  end(): Buffer {
    return this.#frame([END, this.#pairs, this.#sum]);
  }

  #frame(content: readonly unknown[]): Buffer {
    const body = packPlain(content);
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
  | { readonly type: 'pairs'; readonly pairs: readonly KvPair[] };

/** Reads the parts of a backup; throws a `BackupError`, at the end at the latest, unless all of it is right (BF1, BF2). */
export async function* decodeBackup(read: (bytes: number) => Promise<Buffer>): AsyncGenerator<BackupPart> {
  checkMagic(await read(MAGIC.length));
  let header: BackupHeader | undefined;
  let last: Bytes | undefined;
  let [pairs, sum] = [0, 0];
  for (;;) {
    const head = await read(FRAME_HEADER_BYTES);
    if (head.length < FRAME_HEADER_BYTES) throw new BackupError('is incomplete: its end is missing');
    const [kind, ...fields] = await readBody(head, read);
    if (header === undefined) {
      if (kind !== HEADER) throw new BackupError('is damaged: it does not start with a header');
      header = decoded(() => decodeHeader(fields));
      yield { type: 'header', header };
    } else if (kind === PAIRS) {
      const page = decoded(() => asList(fields[0], 'pairs', decodePair));
      for (const { key } of page) {
        if (last !== undefined && compareBytes(last, key) >= 0)
          throw new BackupError('is damaged: its keys are out of order');
        last = key;
      }
      pairs += page.length;
      yield { type: 'pairs', pairs: page };
    } else {
      const whole = kind === END && fields[0] === pairs && fields[1] === sum && pairs === header.pairs;
      if (!whole) throw new BackupError('is damaged: its end record counts other parts than the file has');
      if ((await read(1)).length > 0) throw new BackupError('is damaged: data follows its end record');
      return;
    }
    sum = crc32(head, sum);
  }
}

function checkMagic(bytes: Buffer): void {
  if (bytes.length < MAGIC.length || bytes.compare(MAGIC, 0, MAGIC.length - 1, 0, MAGIC.length - 1) !== 0) {
    throw new BackupError('is not a backup of a cluster');
  }
  const format = bytes[MAGIC.length - 1];
  if (format !== BACKUP_FORMAT)
    throw new BackupError(`has format ${format}; this version of remora reads format ${BACKUP_FORMAT}`);
}

async function readBody(head: Buffer, read: (bytes: number) => Promise<Buffer>): Promise<readonly unknown[]> {
  const length = head.readUInt32BE(0);
  if (length > FRAME_BYTES_MAX) throw new BackupError('is damaged: a part has an invalid length');
  const body = await read(length);
  if (body.length < length) throw new BackupError('is incomplete: it is truncated');
  if (crc32(body) !== head.readUInt32BE(4)) throw new BackupError('is damaged: a checksum does not match');
  const content = decoded(() => unpack(body, 0));
  if (!Array.isArray(content)) throw new BackupError('is damaged: a part has an unexpected type');
  return content;
}

function decodeHeader(fields: readonly unknown[]): BackupHeader {
  const f = asFields(fields, 5, 'header');
  return {
    clusterId: asText(f[0], 'clusterId'),
    revision: asCount(f[1], 'revision'),
    pairs: asCount(f[2], 'pairs'),
    takenAtMs: asMs(f[3], 'takenAtMs'),
    program: asText(f[4], 'program'),
  };
}

function decodePair(raw: unknown): KvPair {
  const f = asFields(raw, 6, 'pair');
  return {
    key: copyBytes(asBytes(f[0], 'key')),
    value: copyBytes(asBytes(f[1], 'value')),
    createRevision: asCount(f[2], 'createRevision'),
    modRevision: asCount(f[3], 'modRevision'),
    version: asCount(f[4], 'version'),
    lease: asLease(f[5], 'lease'),
  };
}

/** Whatever the codec does not like is damage. */
function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new BackupError('is damaged: a part cannot be decoded', { cause });
  }
}
