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
    .description(
      'Writes all plain keys, as they are at one revision, into a file with checksums. Clients go on reading and writing ' +
        'meanwhile. Locks, leases and older versions of keys are not part of it.',
    )
    .argument('<file>')
    .addHelpText(
      'after',
      examples('remora admin backup nightly.remora', 'remora admin backup --yes nightly.remora --json'),
    );
  return addConnectionFlags(addYesFlag(command), shell).action(async (file: string, flags: BackupFlags) => {
    if (existsSync(file)) await confirm(`${file} is there already, and is replaced.`, flags.yes, shell);
    await withClient(flags, async (client) => {
      const { clusterId, revision, pairs } = await takeBackup(client, file, shell);
      const text = `${counted(pairs, 'key')} of cluster ${clusterId} at revision ${revision} are in ${file}`;
      print({ text, json: { file, cluster: clusterId, revision, keys: pairs } }, flags, shell);
    });
  });
}

export function restoreCommand(shell: Shell): Command {
  const command = new Command('restore')
    .description(
      'Writes the keys of a backup into an empty cluster, after all of the file was verified. Keys that belonged to leases ' +
        'are left out: sessions end with a restore. Revisions go on above all that the old cluster can have used. One that ' +
        'broke off is gone on with by doing it again. Let clients in when it is done.',
    )
    .argument('<file>')
    .addHelpText('after', examples('remora admin restore nightly.remora --endpoints 10.0.0.9:7480'));
  return addConnectionFlags(command, shell).action((file: string, flags: ConnectionFlags) =>
    withAdmin(flags, (admin) =>
      withClient(flags, async (client) => {
        const { pairs, leftOut, before, above } = await restoreBackup({ client, admin }, backupFile(file), shell);
        const notes = [
          ...(before > 0 ? [`${before} were there from an earlier attempt`] : []),
          ...(leftOut > 0 ? [`${leftOut} that belonged to leases were left out`] : []),
          `revisions go on above ${above}`,
        ];
        const json = { file, keys: pairs, before, leftOut, above };
        print({ text: `${counted(pairs, 'key')} restored from ${file}; ${notes.join('; ')}`, json }, flags, shell);
      }),
    ),
  );
}
