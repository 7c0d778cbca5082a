import { Command } from 'commander';
import { importUsers } from '../../backup/users.ts';
import type { EtcdSnapshot } from '../../etcd-import/etcd-snapshot.ts';
import { importSnapshot } from '../../etcd-import/import.ts';
import { usersNotes, usersOf } from '../../etcd-import/import-users.ts';
import { withSnapshotFile } from '../../etcd-import/snapshot-file.ts';
import { importedNotes, summaryJson, summaryOf, summaryText } from '../../etcd-import/summary.ts';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, withClient } from '../connection.ts';
import { print, withAdmin } from './run.ts';

interface ImportFlags extends ConnectionFlags {
  readonly prefix: string;
  readonly overwrite?: true;
  readonly leases: boolean;
  readonly dryRun?: true;
  readonly skipHashCheck?: true;
  readonly withUsers?: true;
}

export function importEtcdCommand(shell: Shell): Command {
  const command = new Command('import-etcd')
    .summary('Writes the keys of a snapshot of etcd to the cluster.')
    .description(
      'Reads a file that `etcdctl snapshot save` wrote (etcd 3.4 to 3.6) and writes its keys to the cluster, each with ' +
        'its newest value. Leases are granted again with their ids and TTLs. Nothing is written before the whole file ' +
        'was verified and compared with the cluster. If an import is interrupted, run it again. History, members and ' +
        'alarms are ignored. Large snapshots are sorted in temporary files (TMPDIR).',
    )
    .argument('<file>')
    .option('--prefix <key>', 'import only keys that begin with this', '')
    .option('--overwrite', 'replace keys that the cluster has with another value')
    .option('--no-leases', 'skip keys that belong to leases')
    .option('--with-users', 'also import users, without their passwords, and roles; authentication stays as it is')
    .option('--dry-run', 'show what is in the file, without a cluster')
    .option(
      '--skip-hash-check',
      'accept a file without a SHA-256 at its end: member/snap/db of an etcd that was stopped',
    )
    .addHelpText(
      'after',
      examples(
        'remora admin import-etcd --dry-run snapshot.db',
        'remora admin import-etcd snapshot.db',
        'remora admin import-etcd --prefix /registry/ --overwrite snapshot.db',
      ),
    );
  return addConnectionFlags(command, shell).action((file: string, flags: ImportFlags) => {
    const options = { prefix: Buffer.from(flags.prefix), checkHash: flags.skipHashCheck !== true };
    return withSnapshotFile(file, { options, shell }, (snapshot) =>
      flags.dryRun ? show(snapshot, flags, shell) : write(snapshot, { file, flags, shell }),
    );
  });
}

async function show(snapshot: EtcdSnapshot, flags: ImportFlags, shell: Shell): Promise<void> {
  const summary = await summaryOf(snapshot);
  print({ text: summaryText(snapshot, summary), json: summaryJson(snapshot, summary) }, flags, shell);
}

function write(
  snapshot: EtcdSnapshot,
  { file, flags, shell }: { readonly file: string; readonly flags: ImportFlags; readonly shell: Shell },
): Promise<void> {
  const { prefix, overwrite = false, leases: withLeases } = flags;
  const options = { prefix: Buffer.from(prefix), overwrite, withLeases };
  return withAdmin(flags, (admin) =>
    withClient(flags, async (client) => {
      const imported = await importSnapshot({ client, admin }, { snapshot, options, shell });
      const users = flags.withUsers ? await importUsers(admin, usersOf(snapshot)) : undefined;
      const notes = [...importedNotes(snapshot, imported), ...usersNotes(snapshot, users)];
      const text = `imported ${counted(imported.keys, 'key')} from ${file}; ${notes.join('; ')}`;
      const json = { file, revision: snapshot.facts.revision, ...imported, users: users ?? null };
      print({ text, json }, flags, shell);
    }),
  );
}
