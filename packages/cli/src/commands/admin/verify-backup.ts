import { type BackupContents, backupFile, verifyBackup } from '../../backup/backup-file.ts';
import { chainOf } from '../../backup/chain.ts';
import { Progress } from '../../backup/progress.ts';
import { counted, sizeText } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import type { ConnectionFlags } from '../connection.ts';
import { print } from './run.ts';

/** Checks backups, without a cluster: each by itself, and several as a chain. */
export async function verifyFiles(files: readonly string[], flags: ConnectionFlags, shell: Shell): Promise<void> {
  const progress = new Progress(shell, 'verified', 0);
  const found: BackupContents[] = [];
  for (const file of files) found.push(await verifyBackup(backupFile(file), (pairs) => progress.add(pairs, 0)));
  if (files.length > 1) await verifyBackup(await chainOf(files.map(backupFile)), (pairs) => progress.add(pairs, 0));
  const texts = found.map((contents, i) => textOf(files[i] ?? '', contents));
  if (files.length > 1) texts.push(`these ${files.length} backups are a chain, which can be restored`);
  const json = found.map((contents, i) => jsonOf(files[i] ?? '', contents));
  print({ text: texts.join('\n\n'), json: files.length > 1 ? json : json[0] }, flags, shell);
}

function textOf(file: string, { header, pairs, keysOfLeases, deleted, bytes, users }: BackupContents): string {
  const { clusterId, revision, since, takenAtMs, program } = header;
  const what = since === undefined ? 'a whole backup' : `incremental: continues the backup of revision ${since}`;
  const changes = since === undefined ? '' : `, and ${counted(deleted, 'deleted key')}`;
  const rows: readonly (readonly [string, string])[] = [
    ['is', what],
    ['cluster', clusterId],
    ['revision', String(revision)],
    ['taken', `${timeOf(takenAtMs)}, by remora ${program}`],
    ['keys', `${pairs}, ${sizeText(bytes)}; ${keysOfLeases} belong to leases${changes}`],
    ['users', users === undefined ? 'none' : usersText(users)],
  ];
  return [`${file} is complete`, ...rows.map(([name, text]) => `  ${name.padEnd(10)}${text}`)].join('\n');
}

function usersText({ enabled, users, roles }: NonNullable<BackupContents['users']>): string {
  const counts = `${counted(users.length, 'user')} with HASHES OF PASSWORDS, ${counted(roles.length, 'role')}`;
  return `${counts}; authentication was ${enabled ? 'on' : 'off'}`;
}

function timeOf(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? 'at an unknown time' : time.toISOString();
}

function jsonOf(file: string, { header, pairs, keysOfLeases, deleted, bytes, users }: BackupContents) {
  const { clusterId: cluster, revision, since = null, takenAtMs, program } = header;
  const auth = users && { enabled: users.enabled, users: users.users.length, roles: users.roles.length };
  return {
    file,
    cluster,
    revision,
    since,
    takenAtMs,
    program,
    keys: pairs,
    keysOfLeases,
    deletedKeys: deleted,
    bytes,
    users: auth ?? null,
  };
}
