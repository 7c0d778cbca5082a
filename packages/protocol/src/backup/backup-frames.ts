/** The parts of a backup file, in both of its formats, and how a part is framed. */
import { concatBytes, crc32 } from '@remora/base';
import { Role } from '../internal/auth-api.ts';
import { packPlain } from '../internal/codec/pack.ts';
import { unpack } from '../internal/codec/unpack.ts';
import { KeyValue } from '../internal/kv-types.ts';
import * as schema from '../schema/index.ts';

/** All keys at one revision, and nothing else. Every version of remora reads it. */
export const PLAIN_FORMAT = 1;
/** May be incremental, and may have users and roles. */
export const BACKUP_FORMAT = 2;

export const FRAME_HEADER_BYTES = 8;
/** A page, one pair above its bound, and room. */
const FRAME_BYTES_MAX = 64 * 1024 * 1024;

const { bool, bytes, field, list, maybe, ms, struct, text, uint, union, variant, yes } = schema;

const HEADER = {
  clusterId: field(text, 'The cluster that it was taken of.'),
  revision: field(uint, 'The revision of the pairs.'),
  pairs: field(uint, 'How many pairs the cluster had at that revision.'),
  takenAtMs: field(ms, 'Wall time in milliseconds, for people.'),
  program: field(text, 'The program that wrote it, for people.'),
};
const PAIRS = variant(1, { pairs: field(list(KeyValue), 'Pairs in the order of their keys.') });
const END = {
  pairs: field(uint, 'How many pairs there were.'),
  sum: field(uint, 'The checksum of the checksums of all frames.'),
};

const PlainFrame = union('part of a backup', 'type', {
  header: variant(0, HEADER),
  pairs: PAIRS,
  end: variant(2, END),
});

const BackupUser = struct('user in a backup', {
  name: field(text, 'Its name.'),
  passwordHash: field(text, 'The hash of its password; empty: no password fits.'),
  roles: field(list(text), 'Its roles.'),
});
const BackupUsers = struct('users and roles in a backup', {
  enabled: field(bool, 'Whether authentication was on.'),
  users: field(list(BackupUser), 'In the order of their names.'),
  roles: field(list(Role), 'In the order of their names.'),
});
export type BackupUser = schema.Infer<typeof BackupUser>;
export interface BackupUsers extends schema.Infer<typeof BackupUsers> {}

const HEADER_2 = {
  ...HEADER,
  since: maybe(uint, 'The revision of the backup that this one continues; absent: it has all pairs.'),
  withUsers: maybe(yes, 'It has users and roles.'),
};
const HeaderKind = struct('header of a backup', HEADER_2);
export type BackupHeader = schema.Infer<typeof HeaderKind>;

const FullFrame = union('part of a backup of format 2', 'type', {
  header: variant(0, HEADER_2),
  pairs: PAIRS,
  end: variant(2, { ...END, deleted: field(uint, 'How many deleted keys there were.') }),
  deleted: variant(3, { keys: field(list(bytes), 'Keys that were deleted, in their order.') }),
  users: variant(4, { content: field(BackupUsers, 'Users and roles.') }),
});
export type Frame = schema.Infer<typeof FullFrame>;

const plain = schema.closedCodec(PlainFrame);
const full = schema.closedCodec(FullFrame);

/** The file is not a backup, has another format, is damaged or is incomplete. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** A frame: `length(4), checksum(4), body`. */
export function encodeFrame(frame: Frame, format: number): Buffer {
  const body = packPlain(format === PLAIN_FORMAT ? plain.encode(asPlain(frame)) : full.encode(frame));
  const head = Buffer.alloc(FRAME_HEADER_BYTES);
  head.writeUInt32BE(body.length);
  head.writeUInt32BE(crc32(body), 4);
  return concatBytes(head, body);
}

function asPlain(frame: Frame): schema.Infer<typeof PlainFrame> {
  if (frame.type === 'deleted' || frame.type === 'users') throw new Error(`format 1 has no part ${frame.type}`);
  return frame;
}

/** Reads the rest of a frame whose head was read. @throws BackupError when it is damaged. */
export async function readFrame(
  head: Buffer,
  { format, read }: { readonly format: number; readonly read: (bytes: number) => Promise<Buffer> },
): Promise<Frame> {
  const length = head.readUInt32BE(0);
  if (length > FRAME_BYTES_MAX) throw new BackupError('is damaged: a part has an invalid length');
  const body = await read(length);
  if (body.length < length) throw new BackupError('is incomplete: it is truncated');
  if (crc32(body) !== head.readUInt32BE(4)) throw new BackupError('is damaged: a checksum does not match');
  return decoded(() => (format === PLAIN_FORMAT ? fromPlain(body) : full.decode(unpack(body, 0))));
}

function fromPlain(body: Buffer): Frame {
  const frame = plain.decode(unpack(body, 0));
  return frame.type === 'end' ? { ...frame, deleted: 0 } : frame;
}

/** Every decoding error means damage. */
function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new BackupError('is damaged: a part cannot be decoded', { cause });
  }
}
