import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { backupFile } from '../../backup/backup-file.ts';
import { restoreBackup } from '../../backup/restore.ts';
import { takeBackup } from '../../backup/take.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, withClient } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';

interface BackupFlags extends ConnectionFlags {
  readonly yes?: true;
}

export function backupCommand(shell: Shell): Command {
  const command = new Command('backup')
    .summary('Writes all plain keys to a file.')
    .description(
      'Writes all plain keys, as of one revision, to a file with checksums. Clients keep reading and writing ' +
        'meanwhile. The backup contains no locks, no leases and no older versions of keys.',
    )
    .argument('<file>')
    .addHelpText(
      'after',
      examples('remora admin backup nightly.remora', 'remora admin backup --yes nightly.remora --json'),
    );
  return addConnectionFlags(addYesFlag(command), shell).action(async (file: string, flags: BackupFlags) => {
    if (existsSync(file)) await confirm(`${file} exists and will be replaced.`, flags.yes, shell);
    await withClient(flags, async (client) => {
      const { clusterId, revision, pairs } = await takeBackup(client, file, shell);
      const text = `wrote ${counted(pairs, 'key')} of cluster ${clusterId} at revision ${revision} to ${file}`;
      print({ text, json: { file, cluster: clusterId, revision, keys: pairs } }, flags, shell);
    });
  });
}

export function restoreCommand(shell: Shell): Command {
  const command = new Command('restore')
    .summary('Writes the keys of a backup to an empty cluster.')
    .description(
      'Verifies a backup file, then writes its keys to an empty cluster. Keys that belonged to leases ' +
        'are skipped: sessions do not survive a restore. Revisions continue above every revision of the old cluster. If a ' +
        'restore is interrupted, run it again: it resumes. Admit clients only after it has finished.',
    )
    .argument('<file>')
    .addHelpText('after', examples('remora admin restore nightly.remora --endpoints 10.0.0.9:7480'));
  return addConnectionFlags(command, shell).action((file: string, flags: ConnectionFlags) =>
    withAdmin(flags, (admin) =>
      withClient(flags, async (client) => {
        const { pairs, leftOut, before, above } = await restoreBackup({ client, admin }, backupFile(file), shell);
        const notes = [
          ...(before > 0 ? [`${before} were already present from an earlier attempt`] : []),
          ...(leftOut > 0 ? [`skipped ${leftOut} that belonged to leases`] : []),
          `revisions continue above ${above}`,
        ];
        const json = { file, keys: pairs, before, leftOut, above };
        print({ text: `restored ${counted(pairs, 'key')} from ${file}; ${notes.join('; ')}`, json }, flags, shell);
      }),
    ),
  );
}
