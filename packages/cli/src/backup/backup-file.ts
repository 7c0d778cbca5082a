import { type FileHandle, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { OWN_FILE_MODE } from '@remora/base';
import { BackupError, type BackupHeader, type BackupPart, type BackupUsers, decodeBackup } from '@remora/protocol';
import { CommandError } from '../exit-codes.ts';
import { syncDirectory } from '../node/files/atomic-file.ts';
import { bytesOf } from './take.ts';

/**
 * Writes a file under another name, makes it durable and only then renames it: so a file with that name is always a
 * complete backup, the previous one or this one.
 * @throws {CommandError} `failed` if it cannot be written, also if something other than a file has that name: the
 * rename would replace a device.
 */
export async function writeBackupFile(
  path: string,
  write: (put: (bytes: Buffer) => Promise<void>) => Promise<void>,
): Promise<void> {
  const there = await stat(path).catch(() => undefined); // what prevents looking at it also prevents writing it
  if (there?.isFile() === false) throw cannot('write', path, 'it exists and is not a regular file');
  const unfinished = `${path}.unfinished`;
  const file = await open(unfinished, 'w', OWN_FILE_MODE).catch((cause: unknown) => {
    throw cannot('write', unfinished, cause);
  });
  try {
    await file.chmod(OWN_FILE_MODE); // A file from an earlier run may be accessible to others.
    await write((bytes) =>
      file.writeFile(bytes).catch((cause: unknown) => {
        throw cannot('write', unfinished, cause);
      }),
    );
    await file.sync();
    await file.close();
    await rename(unfinished, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await file.close().catch(() => {}); // already closed
    await rm(unfinished, { force: true });
    throw isSystemError(error) ? cannot('write', path, error) : error;
  }
}

/** A backup that can be read, more than once. */
export interface BackupSource {
  /** For messages. */
  readonly name: string;
  /** Reads from the beginning. */
  parts(): AsyncGenerator<BackupPart>;
}

/** `parts` throws a CommandError that says what is wrong with the file. */
export function backupFile(path: string): BackupSource {
  return { name: path, parts: () => readParts(path) };
}

async function* readParts(path: string, name = path): AsyncGenerator<BackupPart> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw cannot('read', path, cause);
  });
  try {
    yield* decodeBackup((bytes) => readExactly(file, bytes));
  } catch (error) {
    if (error instanceof BackupError) throw new CommandError('failed', `${name} ${error.message}`, { cause: error });
    throw isSystemError(error) ? cannot('read', path, error) : error;
  } finally {
    await file.close();
  }
}

/**
 * Copies a backup from a stream into a temporary file, because it is read more than once, and removes the file after
 * `use`.
 */
export async function withSpooled<T>(
  input: AsyncIterable<Uint8Array>,
  use: (backup: BackupSource) => Promise<T>,
): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'remora-restore-'));
  try {
    const path = join(dir, 'backup');
    const file = await open(path, 'wx', OWN_FILE_MODE);
    try {
      for await (const piece of input) await file.writeFile(piece);
    } finally {
      await file.close();
    }
    return await use({ name: 'standard input', parts: () => readParts(path, 'standard input') });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Writes a backup to a stream, and waits whenever the reader is slower. */
export async function writeBackupStream(
  output: NodeJS.WritableStream,
  write: (put: (bytes: Buffer) => Promise<void>) => Promise<void>,
): Promise<void> {
  await write(
    (bytes) =>
      new Promise((resolve, reject) => {
        output.write(bytes, (error) => (error ? reject(cannot('write', 'standard output', error)) : resolve()));
      }),
  );
}

/** What a whole backup holds. */
export interface BackupContents {
  readonly header: BackupHeader;
  readonly pairs: number;
  readonly keysOfLeases: number;
  readonly deleted: number;
  readonly bytes: number;
  readonly users: BackupUsers | undefined;
}

/** Checks a whole backup. @throws CommandError if it is incomplete, and the errors of `parts`. */
export async function verifyBackup(backup: BackupSource, onPairs: (pairs: number) => void): Promise<BackupContents> {
  let header: BackupHeader | undefined;
  let users: BackupUsers | undefined;
  let [pairs, keysOfLeases, deleted, bytes] = [0, 0, 0, 0];
  for await (const part of backup.parts()) {
    if (part.type === 'header') header = part.header;
    else if (part.type === 'users') users = part.content;
    else if (part.type === 'deleted') deleted += part.keys.length;
    else {
      pairs += part.pairs.length;
      bytes += bytesOf(part.pairs);
      keysOfLeases += part.pairs.filter(({ lease }) => lease !== 0n).length;
      onPairs(part.pairs.length);
    }
  }
  if (header === undefined) throw new CommandError('failed', `${backup.name} is incomplete`);
  return { header, pairs, keysOfLeases, deleted, bytes, users };
}

/** Returns fewer bytes only at the end of the file. */
async function readExactly(file: FileHandle, bytes: number): Promise<Buffer> {
  const out = Buffer.allocUnsafe(bytes);
  let length = 0;
  while (length < bytes) {
    const { bytesRead } = await file.read(out, length, bytes - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return out.subarray(0, length);
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

function cannot(what: string, path: string, cause: unknown): CommandError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new CommandError('failed', `cannot ${what} ${path}: ${message}`, { cause });
}
