import { crc32 } from '@remora/base';
import { BackupEncoder, BackupError, decodeBackup } from '@remora/protocol';
import type { Target } from '../target.ts';

// Backup files: as they are on a disk, and with a part that has a correct checksum and arbitrary content.

const HEADER = { clusterId: 'c', revision: 40, pairs: 2, takenAtMs: 1_700_000_000_000, program: '0.1.0' };
const PAIRS = ['a', 'b'].map((key) => ({
  key: Buffer.from(key),
  value: Buffer.from(`value of ${key}`),
  ...{ createRevision: 3, modRevision: 5, version: 2, lease: 7n },
}));
const FRAME_HEADER_BYTES = 8;

const USERS = {
  enabled: true,
  users: [{ name: 'root', passwordHash: 'hash', roles: ['root'] }],
  roles: [
    {
      name: 'reader',
      keys: [{ access: 'read' as const, key: Buffer.from('a'), end: Buffer.from('b') }],
      locks: [{ namespace: '', name: Buffer.from('l'), isPrefix: true, verb: 'read' as const }],
    },
  ],
};

function parts(): readonly Buffer[] {
  const encoder = new BackupEncoder();
  return [encoder.begin(HEADER), encoder.pairs(PAIRS), encoder.end()];
}

/** Incremental, with users: format 2. */
function fullParts(): readonly Buffer[] {
  const encoder = new BackupEncoder();
  const begin = encoder.begin({ ...HEADER, since: 30, withUsers: true });
  return [begin, encoder.pairs(PAIRS), encoder.deleted([Buffer.from('c')]), encoder.users(USERS), encoder.end()];
}

async function decode(file: Uint8Array): Promise<void> {
  let at = 0;
  const read = async (bytes: number): Promise<Buffer> => {
    const piece = Buffer.from(file.subarray(at, at + bytes));
    at += piece.length;
    return piece;
  };
  for await (const part of decodeBackup(read)) void part;
}

const expected = (error: unknown): boolean => error instanceof BackupError;

const files: Target = {
  name: 'backup',
  corpus: () => [
    Buffer.concat(parts()),
    Buffer.concat([...parts().slice(0, 1), ...parts().slice(2)]),
    Buffer.concat(fullParts()),
  ],
  decode,
  expected,
};

/** Parts that have a correct checksum, in a file that begins like `whole`. */
function bodiesOf(name: string, whole: () => readonly Buffer[]): Target {
  return {
    name,
    corpus: () => whole().map((part, i) => part.subarray((i === 0 ? FRAME_HEADER_BYTES : 0) + FRAME_HEADER_BYTES)),
    async decode(body) {
      const frame = Buffer.alloc(FRAME_HEADER_BYTES + body.length);
      frame.writeUInt32BE(body.length);
      frame.writeUInt32BE(crc32(body), 4);
      frame.set(body, FRAME_HEADER_BYTES);
      const [begin = Buffer.of()] = whole();
      const magic = begin.subarray(0, FRAME_HEADER_BYTES);
      // Replaces the header, and separately what follows it: an invalid part must not prevent the test of the other
      // one.
      await decode(Buffer.concat([magic, frame])).catch((error: unknown) => {
        if (!expected(error)) throw error;
      });
      await decode(Buffer.concat([begin, frame]));
    },
    expected,
  };
}

export const BACKUP_TARGETS: readonly Target[] = [
  files,
  bodiesOf('backup-part', parts),
  bodiesOf('backup-part-2', fullParts),
];
