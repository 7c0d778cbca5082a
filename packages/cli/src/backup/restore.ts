import { equalBytes } from '@remora/base';
import type { BackupUsers } from '@remora/protocol';
import type { Kv, KvFields } from 'remora';
import type { AdminClient } from 'remora/admin';
import { CommandError } from '../exit-codes.ts';
import { printable } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import { type BackupSource, verifyBackup } from './backup-file.ts';
import { batches } from './batches.ts';
import { Progress } from './progress.ts';
import { bytesOf, countKeys, EVERYTHING } from './take.ts';

/**
 * The distance between the revision of the backup and the first one after the restore: more than the old cluster can
 * have used since. At ten thousand changes per second that takes three years, and there is room for two thousand
 * successive restores.
 */
export const REVISIONS_AHEAD = 1_000_000_000_000;

/** The part of a cluster that a restore uses. */
export interface RestoreTarget {
  readonly client: { readonly kv: Pick<Kv, 'list' | 'txn'> };
  readonly admin: Pick<AdminClient, 'beginRestore' | 'endRestore'>;
}

export interface Restored {
  readonly pairs: number;
  /** Keys that belonged to leases, which a restore ends. */
  readonly leftOut: number;
  /** Written by an earlier attempt. */
  readonly before: number;
  /** Everything written has revisions above this. */
  readonly above: number;
  /** The users and roles of the backup, which are not restored here. */
  readonly users?: BackupUsers;
}

/**
 * Writes the pairs of a backup into an empty cluster.
 *
 * RS1. The whole file is verified before anything is written.
 * RS2. Pairs are written in the order of the file, one transaction after the other, each only if none of its keys
 *      exists. So an interrupted restore leaves the beginning of the file, and the next one continues behind it. A
 *      cluster with any other contents is refused, and a concurrent writer is noticed.
 * RS3. Revisions are raised before the first pair is written, and only in an empty cluster. So restored data is newer
 *      than everything that clients of the old cluster remember, and a client that asks for what it saw gets COMPACTED.
 * RS4. Leases are not restored: all sessions have ended, and their keys are gone, as if they had expired.
 * RS5. The cluster reports the restore as a condition from its beginning (RS3) to its end, also while it is
 *      interrupted.
 */
export async function restoreBackup(
  { client, admin }: RestoreTarget,
  backup: BackupSource,
  shell: Shell,
): Promise<Restored> {
  const verifying = new Progress(shell, 'verified', 0);
  const { header, users } = await verifyBackup(backup, (pairs) => verifying.add(pairs, 0)); // RS1
  const { count: present } = await countKeys(client);
  const above = header.revision + REVISIONS_AHEAD;
  if (present === 0) await admin.beginRestore(above); // RS3
  const counts = { leftOut: 0 };
  const pairs = withoutLeases(backup, () => counts.leftOut++);
  const progress = new Progress(shell, 'restored', header.pairs - present);
  try {
    if (present > 0) await skipPresent(client, pairs, { name: backup.name, present, above });
    for await (const batch of batches(pairs)) {
      await writeBatch(client, batch);
      progress.add(batch.length, bytesOf(batch));
    }
  } finally {
    await pairs.return(undefined); // closes the file
  }
  const restored: Restored = {
    ...{ pairs: progress.pairs, leftOut: counts.leftOut, before: present, above },
    ...(users === undefined ? {} : { users }),
  };
  const { count } = await countKeys(client);
  if (count !== present + progress.pairs) {
    const message = `the cluster has ${count} keys after the restore, not ${present + progress.pairs}: another client writes to it`;
    throw new CommandError('failed', message);
  }
  await admin.endRestore(); // RS5
  return restored;
}

/** RS4. */
async function* withoutLeases(backup: BackupSource, leaveOut: () => void): AsyncGenerator<KvFields, undefined> {
  for await (const part of backup.parts()) {
    if (part.type !== 'pairs') continue;
    for (const pair of part.pairs) {
      if (pair.lease === 0n) yield pair;
      else leaveOut();
    }
  }
}

/** RS2. Compares the contents of the cluster with the beginning of the file, and skips that part of the file. */
async function skipPresent(
  client: RestoreTarget['client'],
  pairs: AsyncGenerator<KvFields, undefined>,
  { name, present, above }: { readonly name: string; readonly present: number; readonly above: number },
): Promise<void> {
  for await (const { key, value, createRevision, version } of client.kv.list(EVERYTHING)) {
    const { value: expected } = await pairs.next();
    const same = expected !== undefined && equalBytes(key, expected.key) && equalBytes(value, expected.value);
    if (same && version === 1 && createRevision > above) continue;
    const message =
      `the cluster already has ${present} keys, and they are not from ${name}: ${printable(key)} is not in it. ` +
      'Restore into an empty cluster: start one with a new --cluster-token and empty data directories';
    throw new CommandError('failed', message);
  }
}

async function writeBatch(client: RestoreTarget['client'], batch: readonly KvFields[]): Promise<void> {
  const { succeeded } = await client.kv.txn({
    compare: batch.map(({ key }) => ({ key, target: 'createRevision', is: '=', than: 0 })),
    success: batch.map(({ key, value }) => ({ put: key, value })),
  });
  if (succeeded) return;
  const keys = `${printable(batch[0]?.key ?? Buffer.of())} to ${printable(batch.at(-1)?.key ?? Buffer.of())}`;
  throw new CommandError(
    'failed',
    `one of the keys from ${keys} already exists: another client writes to the cluster. Stop it, then run this again`,
  );
}
