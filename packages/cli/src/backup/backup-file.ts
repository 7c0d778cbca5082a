import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OWN_FILE_MODE } from '@remora/base';
import { BackupError, type BackupHeader, type BackupPart, decodeBackup } from '@remora/protocol';
import { CommandError } from '../exit-codes.ts';
import { syncDirectory } from '../node/files/atomic-file.ts';

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

async function* readParts(path: string): AsyncGenerator<BackupPart> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw cannot('read', path, cause);
  });
  try {
    yield* decodeBackup((bytes) => readExactly(file, bytes));
  } catch (error) {
    if (error instanceof BackupError) throw new CommandError('failed', `${path} ${error.message}`, { cause: error });
    throw isSystemError(error) ? cannot('read', path, error) : error;
  } finally {
    await file.close();
  }
}

/** Checks a whole backup. @throws CommandError if it is incomplete, and the errors of `parts`. */
export async function verifyBackup(backup: BackupSource, onPairs: (pairs: number) => void): Promise<BackupHeader> {
  let header: BackupHeader | undefined;
  for await (const part of backup.parts()) {
    if (part.type === 'header') header = part.header;
    else onPairs(part.pairs.length);
  }
  if (header === undefined) throw new CommandError('failed', `${backup.name} is incomplete`);
  return header;
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
