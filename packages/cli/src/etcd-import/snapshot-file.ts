import { Progress } from '../backup/progress.ts';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { withFile } from './byte-source.ts';
import { EtcdFileError } from './etcd-file-error.ts';
import { EtcdSnapshot, type SnapshotOptions } from './etcd-snapshot.ts';

/** Reads a snapshot file of etcd. @throws CommandError that says what is wrong with the file. */
export async function withSnapshotFile<T>(
  path: string,
  { options, shell }: { readonly options: SnapshotOptions; readonly shell: Shell },
  use: (snapshot: EtcdSnapshot) => Promise<T>,
): Promise<T> {
  const [hashing, scanning] = [new Progress(shell, 'verified', 0), new Progress(shell, 'read', 0, 'changes')];
  const progress = {
    hashed: (bytes: number) => hashing.add(0, bytes),
    scanned: (changes: number) => scanning.add(changes, 0),
  };
  try {
    return await withFile(path, (source) => EtcdSnapshot.with(source, { options, progress }, use));
  } catch (error) {
    if (error instanceof EtcdFileError) throw new CommandError('failed', `${path} ${error.message}`, { cause: error });
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new CommandError('failed', `cannot read ${path}: ${error.message}`, { cause: error });
  }
}
