import { Command } from 'commander';
import type { AdminClient } from 'remora/admin';
import { type BackupSource, backupFile, withSpooled } from '../../backup/backup-file.ts';
import { chainOf } from '../../backup/chain.ts';
import { type Restored, restoreBackup } from '../../backup/restore.ts';
import { importUsers, type UsersImported } from '../../backup/users.ts';
import { CommandError } from '../../exit-codes.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, withClient } from '../connection.ts';
import { print, withAdmin } from './run.ts';

interface RestoreFlags extends ConnectionFlags {
  readonly withUsers?: true;
}

export function restoreCommand(shell: Shell): Command {
  const command = new Command('restore')
    .summary('Writes the keys of a backup to an empty cluster.')
    .description(
      'Verifies a backup, then writes its keys to an empty cluster. Name a whole backup first, and the incremental ones ' +
        'that continue it after it; - stands for standard input. Keys that belonged to leases ' +
        'are skipped: sessions do not survive a restore. Revisions continue above every revision of the old cluster. If a ' +
        'restore is interrupted, run it again: it resumes. Admit clients only after it has finished.',
    )
    .argument('<file...>')
    .option(
      '--with-users',
      'also restore users and roles, if the backup has them, and switch authentication on if it was on',
    )
    .addHelpText(
      'after',
      examples(
        'remora admin restore nightly.remora --endpoints 10.0.0.9:7480',
        'remora admin restore nightly.remora noon.remora',
        'gunzip -c nightly.remora.gz | remora admin restore -',
      ),
    );
  return addConnectionFlags(command, shell).action((files: readonly string[], flags: RestoreFlags) => {
    if (!files.includes('-')) return restore(files.map(backupFile), { files, flags, shell });
    if (files.length > 1) throw new CommandError('usage', 'standard input cannot be a part of a chain');
    return withSpooled(process.stdin, (source) => restore([source], { files, flags, shell }));
  });
}

interface RestoreRun {
  readonly files: readonly string[];
  readonly flags: RestoreFlags;
  readonly shell: Shell;
}

async function restore(sources: readonly BackupSource[], { files, flags, shell }: RestoreRun): Promise<void> {
  const backup = await chainOf(sources);
  await withAdmin(flags, (admin) =>
    withClient(flags, async (client) => {
      const restored = await restoreBackup({ client, admin }, backup, shell);
      const users = flags.withUsers ? await restoreUsers(admin, restored, backup.name) : undefined;
      const { enabled } = users ?? (await admin.exportUsers());
      const { pairs, leftOut, before, above } = restored;
      const notes = [
        ...(before > 0 ? [`${before} were already present from an earlier attempt`] : []),
        ...(leftOut > 0 ? [`skipped ${leftOut} that belonged to leases`] : []),
        `revisions continue above ${above}`,
        ...usersNotes(restored, users),
        `authentication is ${enabled ? 'on' : 'off'}`,
      ];
      const json = {
        file: files.join(', '),
        keys: pairs,
        before,
        leftOut,
        above,
        users: users ?? null,
        authentication: enabled,
      };
      print({ text: `restored ${counted(pairs, 'key')} from ${backup.name}; ${notes.join('; ')}`, json }, flags, shell);
    }),
  );
}

function restoreUsers(admin: AdminClient, { users }: Restored, name: string): Promise<UsersImported> {
  if (users === undefined) {
    throw new CommandError(
      'failed',
      `the keys were restored, but ${name} has no users: it was taken without --with-users`,
    );
  }
  return importUsers(admin, users);
}

function usersNotes({ users }: Restored, imported: UsersImported | undefined): readonly string[] {
  if (imported !== undefined) {
    const { addedUsers, addedRoles, presentUsers } = imported;
    const kept = presentUsers > 0 ? [`${counted(presentUsers, 'user')} existed and kept their passwords`] : [];
    return [`added ${counted(addedUsers, 'user')} and ${counted(addedRoles, 'role')}`, ...kept];
  }
  return users === undefined
    ? []
    : [`its ${counted(users.users.length, 'user')} and roles were not restored (--with-users)`];
}
