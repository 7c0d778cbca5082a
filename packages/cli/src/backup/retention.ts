/**
 * Deletes old backups from a directory.
 *
 * RE1. Only files that this program named, and whose header says that they are of this cluster, are deleted. Anything
 *      else in the directory stays, also a backup that cannot be read: somebody should look at it.
 * RE2. The newest backup is never deleted, however old it is.
 * RE3. A backup stays while an incremental one that is kept continues it, directly or through others.
 * RE4. A backup that either of the two limits keeps, stays.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackupHeader } from '@remora/protocol';
import { CommandError } from '../exit-codes.ts';
import { backupFile } from './backup-file.ts';
import { headerOf } from './chain.ts';

export interface Retention {
  /** Keep so many of the newest backups. */
  readonly keep?: number | undefined;
  /** Keep backups that are at most so old. */
  readonly keepForMs?: number | undefined;
}

export interface NamedBackup {
  readonly name: string;
  readonly header: BackupHeader;
}

/** `remora-<time in UTC>.remora`; sorted by name, backups are sorted by time. */
const NAME = /^remora-\d{8}T\d{9}Z(-incremental)?\.remora$/;
const UNFINISHED = /^remora-\d{8}T\d{9}Z(-incremental)?\.remora\.unfinished$/;
/** A backup that takes longer is a failure of its own. */
const UNFINISHED_MS = 24 * 3_600_000;

/** The name of a backup that begins now. */
export function backupName(nowMs: number, incremental: boolean): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:.]/g, '');
  return `remora-${time}${incremental ? '-incremental' : ''}.remora`;
}

/** The backups of a cluster in a directory, newest first. */
export async function backupsIn(dir: string, clusterId: string): Promise<readonly NamedBackup[]> {
  const names = await readdir(dir).catch((cause: Error) => {
    throw new CommandError('failed', `cannot read the directory ${dir}: ${cause.message}`, { cause });
  });
  const found: NamedBackup[] = [];
  for (const name of names
    .filter((each) => NAME.test(each))
    .sort()
    .reverse()) {
    const header = await headerOf(backupFile(join(dir, name))).catch(() => undefined); // RE1
    if (header?.clusterId === clusterId) found.push({ name, header });
  }
  return found;
}

/** The names of those that the limits do not keep. `backups`: newest first. */
export function expiredBackups(
  backups: readonly NamedBackup[],
  { keep, keepForMs }: Retention,
  nowMs: number,
): readonly string[] {
  if (keep === undefined && keepForMs === undefined) return [];
  const kept = new Set<NamedBackup>();
  /** The revisions that kept ones continue, without a kept backup so far. */
  const continued = new Set<number>();
  for (const [i, backup] of backups.entries()) {
    const byCount = i < (keep ?? 1); // RE2
    const byAge = keepForMs !== undefined && nowMs - backup.header.takenAtMs <= keepForMs;
    const { revision, since } = backup.header;
    const isBase = continued.has(revision); // RE3
    if (!(byCount || byAge || isBase)) continue; // RE4
    kept.add(backup);
    continued.delete(revision);
    if (since !== undefined) continued.add(since);
  }
  return backups.filter((backup) => !kept.has(backup)).map(({ name }) => name);
}

/** Deletes what the limits do not keep, and remains of backups that were killed. Returns the names. */
export async function deleteExpired(
  dir: string,
  {
    clusterId,
    retention,
    nowMs,
  }: { readonly clusterId: string; readonly retention: Retention; readonly nowMs: number },
): Promise<readonly string[]> {
  const expired = expiredBackups(await backupsIn(dir, clusterId), retention, nowMs);
  const remains: string[] = [];
  for (const name of (await readdir(dir)).filter((each) => UNFINISHED.test(each))) {
    const { mtimeMs } = await stat(join(dir, name));
    if (nowMs - mtimeMs > UNFINISHED_MS) remains.push(name);
  }
  for (const name of [...expired, ...remains]) await rm(join(dir, name), { force: true });
  return expired;
}
