import { type FileHandle, open } from 'node:fs/promises';
import type { AuditSink } from '@remora/auth';
import { OWN_FILE_MODE } from '@remora/base';
import { CommandError } from '../../exit-codes.ts';

/**
 * The file of `--audit-log`. It is only appended to, so that a device or a pipe can stand in its place. Writes run in a
 * thread of Node's pool, one at a time: a disk that does not respond holds one of these threads, and never the event
 * loop.
 *
 * @throws CommandError `usage` if it cannot be opened
 */
export async function openAuditFile(path: string): Promise<AuditSink> {
  let file: FileHandle;
  try {
    file = await opened(path);
  } catch (cause) {
    const message = `cannot open --audit-log ${path}: ${(cause as Error).message}`;
    throw new CommandError('usage', message, { cause });
  }
  let isStale = false;
  return {
    async append(text) {
      if (isStale) {
        const next = await opened(path);
        isStale = false;
        const old = file;
        file = next;
        await old.close();
      }
      await file.appendFile(text);
    },
    reopen() {
      isStale = true;
    },
    close: () => file.close(),
  };
}

function opened(path: string): Promise<FileHandle> {
  return open(path, 'a', OWN_FILE_MODE);
}
