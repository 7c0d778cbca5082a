import { ServiceError } from '@remora/base';
import { BackupEncoder, type BackupHeader, type BackupUsers } from '@remora/protocol';
import type { Kv, KvFields, KvPair, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { VERSION } from '../version.ts';
import { changesBetween } from './changes.ts';
import { Progress } from './progress.ts';

/** All plain keys. */
export const EVERYTHING = { start: '' } as const;

export interface TakeOptions {
  /** Only what changed after this revision, of this cluster if it is given. */
  readonly since?: { readonly revision: number; readonly clusterId?: string } | undefined;
  readonly users?: BackupUsers | undefined;
}

export interface TakenBackup {
  readonly header: BackupHeader;
  /** Pairs in the file. */
  readonly pairs: number;
  /** Deleted keys in an incremental backup. */
  readonly deleted: number;
}

/** Where the bytes of a backup go; returns when it is complete. */
export type WriteBackup = (write: (put: (bytes: Buffer) => Promise<void>) => Promise<void>) => Promise<void>;

/** Writes all plain keys at one revision, or what changed of them since an earlier one. */
export async function takeBackup(
  client: RemoraClient,
  { since, users, write }: TakeOptions & { readonly write: WriteBackup },
  shell: Shell,
): Promise<TakenBackup> {
  const { count, revision } = await countKeys(client, new Progress(shell, 'counted', 0));
  const { clusterId } = (await client.status()).view;
  if (since !== undefined) checkSince(since, { revision, clusterId });
  const header: BackupHeader = {
    ...{ clusterId, revision, pairs: count, takenAtMs: Date.now(), program: VERSION },
    ...(since === undefined ? {} : { since: since.revision }),
    ...(users === undefined ? {} : { withUsers: true }),
  };
  const progress = new Progress(shell, 'backed up', since === undefined ? count : 0);
  let deleted = 0;
  await write(async (put) => {
    const encoder = new BackupEncoder();
    await put(encoder.begin(header));
    for await (const group of since === undefined ? allAt(client, revision) : changesSince(client, since, revision)) {
      if (group.type === 'pairs') {
        await put(encoder.pairs(group.pairs));
        progress.add(group.pairs.length, bytesOf(group.pairs));
      } else {
        await put(encoder.deleted(group.keys));
        deleted += group.keys.length;
      }
    }
    if (since === undefined && progress.pairs !== count) {
      const message = `the cluster counted ${count} keys at revision ${revision} but returned ${progress.pairs}`;
      throw new CommandError('internal', message);
    }
    if (users !== undefined) await put(encoder.users(users));
    await put(encoder.end());
  });
  return { header, pairs: progress.pairs, deleted };
}

/** The number of plain keys, and its revision. Counted in pages, because a single answer must not take that long. */
export async function countKeys(
  { kv }: { readonly kv: Pick<Kv, 'list'> },
  progress?: Progress,
): Promise<{ readonly count: number; readonly revision: number }> {
  let [count, at] = [0, 0];
  for await (const { items, revision } of kv.list(EVERYTHING).pages()) {
    progress?.add(items.length, 0);
    count += items.length;
    at = revision;
  }
  return { count, revision: at };
}

export function bytesOf(pairs: readonly Pick<KvFields, 'key' | 'value'>[]): number {
  return pairs.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}

function checkSince(
  since: { readonly revision: number; readonly clusterId?: string },
  cluster: { readonly revision: number; readonly clusterId: string },
): void {
  if (since.clusterId !== undefined && since.clusterId !== cluster.clusterId) {
    const message = `the earlier backup is of cluster ${since.clusterId}, and this is cluster ${cluster.clusterId}; take a whole backup`;
    throw new CommandError('failed', message);
  }
  if (since.revision <= cluster.revision) return;
  const message = `revision ${since.revision} is newer than the cluster, which is at revision ${cluster.revision}`;
  throw new CommandError('failed', message);
}

async function* allAt(client: RemoraClient, revision: number) {
  for await (const { items } of pagesAt(client, revision, DURING)) yield { type: 'pairs' as const, pairs: items };
}

function changesSince(client: RemoraClient, { revision: since }: { readonly revision: number }, revision: number) {
  return changesBetween(pairsAt(client, since, BEFORE), pairsAt(client, revision, DURING));
}

async function* pairsAt(client: RemoraClient, revision: number, why: string): AsyncGenerator<KvPair, undefined> {
  for await (const { items } of pagesAt(client, revision, why)) yield* items;
}

const DURING =
  'was compacted while the backup read it. Try again; if this recurs, raise --compaction-retention of the nodes above ' +
  'the duration of a backup';
const BEFORE =
  'was compacted, so what changed since then is not known. Take a whole backup; for incremental ones, raise ' +
  '--compaction-retention of the nodes above the time between two backups';

async function* pagesAt(client: RemoraClient, revision: number, why: string) {
  try {
    yield* client.kv.list(EVERYTHING, { revision }).pages();
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause.code !== 'COMPACTED') throw cause;
    throw new CommandError('failed', `revision ${revision} ${why}`, { cause });
  }
}
