import { ServiceError } from '@remora/base';
import { BackupEncoder, type BackupHeader } from '@remora/protocol';
import type { Kv, KvPair, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { VERSION } from '../version.ts';
import { writeBackupFile } from './backup-file.ts';
import { Progress } from './progress.ts';

/** All plain keys. */
export const EVERYTHING = { start: '' } as const;

/** Writes all plain keys at one revision into a file. */
export async function takeBackup(client: RemoraClient, path: string, shell: Shell): Promise<BackupHeader> {
  const { count, revision } = await countKeys(client, new Progress(shell, 'counted', 0));
  const { view } = await client.status();
  const header = { clusterId: view.clusterId, revision, pairs: count, takenAtMs: Date.now(), program: VERSION };
  const progress = new Progress(shell, 'backed up', count);
  await writeBackupFile(path, async (put) => {
    const encoder = new BackupEncoder();
    await put(encoder.begin(header));
    for await (const { kvs } of pagesAt(client, revision)) {
      await put(encoder.pairs(kvs));
      progress.add(kvs.length, bytesOf(kvs));
    }
    if (progress.pairs !== count) {
      throw new CommandError(
        'internal',
        `the cluster counted ${count} keys at revision ${revision} but returned ${progress.pairs}`,
      );
    }
    await put(encoder.end());
  });
  return header;
}

/** The number of plain keys, and its revision. Counted in pages, because a single answer must not take that long. */
export async function countKeys(
  { kv }: { readonly kv: Pick<Kv, 'pages'> },
  progress?: Progress,
): Promise<{ readonly count: number; readonly revision: number }> {
  let [count, at] = [0, 0];
  for await (const { kvs, revision } of kv.pages(EVERYTHING)) {
    progress?.add(kvs.length, 0);
    count += kvs.length;
    at = revision;
  }
  return { count, revision: at };
}

export function bytesOf(pairs: readonly KvPair[]): number {
  return pairs.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}

async function* pagesAt(client: RemoraClient, revision: number) {
  try {
    yield* client.kv.pages(EVERYTHING, { revision });
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause.code !== 'COMPACTED') throw cause;
    const message =
      `revision ${revision} was compacted while the backup read it. Try again; if this recurs, ` +
      'raise --compaction-retention of the nodes above the duration of a backup';
    throw new CommandError('failed', message, { cause });
  }
}
