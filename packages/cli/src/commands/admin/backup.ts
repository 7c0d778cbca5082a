import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { durationMs, int } from '@remora/base';
import { Command } from 'commander';
import type { RemoraClient } from 'remora';
import type { AdminClient } from 'remora/admin';
import { backupFile, writeBackupFile, writeBackupStream } from '../../backup/backup-file.ts';
import { headerOf } from '../../backup/chain.ts';
import { backupName, backupsIn, deleteExpired } from '../../backup/retention.ts';
import { type TakenBackup, type TakeOptions, takeBackup } from '../../backup/take.ts';
import { exportUsers } from '../../backup/users.ts';
import { CommandError } from '../../exit-codes.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, flagReader, withClient } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';
import { verifyFiles } from './verify-backup.ts';

interface BackupFlags extends ConnectionFlags {
  readonly yes?: true;
  readonly verify?: true;
  readonly since?: string;
  readonly sinceRevision?: number;
  readonly withUsers?: true;
  readonly keep?: number;
  readonly keepFor?: number;
}

const FOREVER_MS = Number.MAX_SAFE_INTEGER;

export function backupCommand(shell: Shell): Command {
  const command = new Command('backup')
    .summary('Writes all plain keys to a file, or checks such files.')
    .description(
      'Writes all plain keys, as of one revision, to a file with checksums. Clients keep reading and writing ' +
        'meanwhile. The backup contains no locks, no leases and no older versions of keys. With --since it contains only ' +
        'what changed after an earlier backup, and is restored together with that one. With --keep or --keep-for, the ' +
        'argument is a directory: the backup gets a name with its time, and older ones of this cluster are deleted. - ' +
        'stands for standard output.',
    )
    .argument('<file...>')
    .option('--verify', 'check files instead, and show what is in them; several files are one chain')
    .option('--since <file>', 'write only what changed after this backup; of a directory, after the newest in it')
    .option('--since-revision <number>', 'write only what changed after this revision', flagReader(int({ min: 1 })))
    .option('--with-users', 'also write users, hashes of passwords, and roles')
    .option('--keep <number>', 'keep this many backups in the directory', flagReader(int({ min: 1, max: 100_000 })))
    .option(
      '--keep-for <duration>',
      'keep backups in the directory that are at most this old',
      flagReader(durationMs({ min: 1_000, max: FOREVER_MS })),
    )
    .addHelpText(
      'after',
      examples(
        'remora admin backup nightly.remora',
        'remora admin backup --yes nightly.remora --json',
        'remora admin backup --verify nightly.remora',
        'remora admin backup --since nightly.remora noon.remora',
        'remora admin backup --keep 14 --keep-for 720h /var/backups/remora',
        'remora admin backup - | gzip > nightly.remora.gz',
      ),
    );
  return addConnectionFlags(addYesFlag(command), shell).action(async (files: readonly string[], flags: BackupFlags) => {
    if (flags.verify) return verifyFiles(files, flags, shell);
    const [file = '', ...others] = files;
    if (others.length > 0) throw new CommandError('usage', 'only --verify takes several files');
    await backup(file, flags, shell);
  });
}

async function backup(path: string, flags: BackupFlags, shell: Shell): Promise<void> {
  const toDirectory = flags.keep !== undefined || flags.keepFor !== undefined;
  checkTarget(path, toDirectory, flags, shell);
  if (!toDirectory && path !== '-' && existsSync(path)) {
    await confirm(`${path} exists and will be replaced.`, flags.yes, shell);
  }
  await withAdmin(flags, (admin) =>
    withClient(flags, async (client) => {
      const options = await optionsOf(flags, { admin, client });
      const name = backupName(Date.now(), options.since !== undefined);
      const file = toDirectory ? join(path, name) : path;
      const write: Parameters<typeof takeBackup>[1]['write'] =
        path === '-'
          ? (content) => writeBackupStream(process.stdout, content)
          : (content) => writeBackupFile(file, content);
      const taken = await takeBackup(client, { ...options, write }, shell);
      const { clusterId } = taken.header;
      const retention = { keep: flags.keep, keepForMs: flags.keepFor };
      const deleted = toDirectory ? await deleteExpired(path, { clusterId, retention, nowMs: Date.now() }) : [];
      report({ file, taken, deleted }, flags, shell);
    }),
  );
}

function checkTarget(path: string, toDirectory: boolean, flags: BackupFlags, shell: Shell): void {
  if (flags.since !== undefined && flags.sinceRevision !== undefined) {
    throw new CommandError('usage', 'give --since or --since-revision, not both');
  }
  const isDirectory = isDirectoryAt(path);
  if (toDirectory && !isDirectory) {
    throw new CommandError('usage', `${path} is not a directory; --keep and --keep-for need one`);
  }
  if (isDirectory && !toDirectory) {
    throw new CommandError(
      'usage',
      `${path} is a directory; add --keep or --keep-for to write into it, or name a file`,
    );
  }
  if (path !== '-' || !shell.shown) return;
  throw new CommandError('usage', 'a backup is not written to a terminal; redirect the output, or name a file');
}

async function optionsOf(
  { since, sinceRevision, withUsers }: BackupFlags,
  { admin, client }: { readonly admin: AdminClient; readonly client: RemoraClient },
): Promise<TakeOptions> {
  const users = withUsers ? await exportUsers(admin) : undefined;
  if (sinceRevision !== undefined) return { since: { revision: sinceRevision }, users };
  return { since: since === undefined ? undefined : await sinceBackup(since, client), users };
}

/** A backup, or a directory that has some. */
async function sinceBackup(path: string, client: RemoraClient): Promise<{ revision: number; clusterId: string }> {
  if (!isDirectoryAt(path)) return headerOf(backupFile(path));
  const { clusterId } = (await client.status()).view;
  const [newest] = await backupsIn(path, clusterId);
  if (newest === undefined) {
    throw new CommandError('failed', `${path} has no backup of cluster ${clusterId}; take a whole backup first`);
  }
  return newest.header;
}

function isDirectoryAt(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function report(
  { file, taken, deleted }: { readonly file: string; readonly taken: TakenBackup; readonly deleted: readonly string[] },
  flags: BackupFlags,
  shell: Shell,
): void {
  const { clusterId, revision, since, withUsers = false } = taken.header;
  const what =
    since === undefined
      ? `${counted(taken.pairs, 'key')} of cluster ${clusterId} at revision ${revision}`
      : `${counted(taken.pairs, 'changed key')} and ${counted(taken.deleted, 'deleted key')} of cluster ${clusterId} ` +
        `from revision ${since} to ${revision}`;
  const notes = [
    ...(withUsers ? ['with users, HASHES OF PASSWORDS and roles: keep the file secret'] : []),
    ...(deleted.length > 0 ? [`deleted ${counted(deleted.length, 'older backup')}`] : []),
  ];
  const text = [`wrote ${what} to ${file === '-' ? 'standard output' : file}`, ...notes].join('; ');
  const json = {
    ...{ file, cluster: clusterId, revision, keys: taken.pairs },
    ...(since === undefined ? {} : { since, deletedKeys: taken.deleted }),
    ...{ withUsers, deleted },
  };
  // Standard output has the backup.
  const reader = file === '-' ? { ...shell, out: shell.err } : shell;
  print({ text, json }, flags, reader);
}
