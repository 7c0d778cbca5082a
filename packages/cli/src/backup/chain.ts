/**
 * A whole backup and the incremental ones that follow it, read as one backup.
 *
 * CH1. Each backup continues the one before it: of the same cluster, from exactly its revision. Anything else is
 *      refused before a pair is read.
 * CH2. The newest backup that mentions a key decides about it. All are read side by side in the order of keys, so only
 *      a part of each is in memory.
 * CH3. The result has as many pairs as the cluster had at the last revision.
 */
import { compareBytes } from '@remora/base';
import type { BackupHeader, BackupPair, BackupPart, BackupUsers } from '@remora/protocol';
import { CommandError } from '../exit-codes.ts';
import type { BackupSource } from './backup-file.ts';
import { batches } from './batches.ts';

/** @throws CommandError when the backups do not follow each other (CH1), and the errors of `parts`. */
export async function chainOf(sources: readonly BackupSource[]): Promise<BackupSource> {
  const headers = await Promise.all(sources.map(headerOf));
  for (const [i, header] of headers.entries()) checkLink(sources, headers, { i, header });
  const [first] = sources;
  const last = headers.at(-1);
  if (first === undefined || last === undefined) throw new CommandError('usage', 'no backup is given');
  if (sources.length === 1) return first;
  const name = sources.map((source) => source.name).join(', ');
  return { name, parts: () => merged(sources, last, name) };
}

/** The header of a backup; the rest is not read. */
export async function headerOf(source: BackupSource): Promise<BackupHeader> {
  for await (const part of source.parts()) if (part.type === 'header') return part.header;
  throw new CommandError('failed', `${source.name} is incomplete`);
}

/** CH1. */
function checkLink(
  sources: readonly BackupSource[],
  headers: readonly BackupHeader[],
  { i, header }: { readonly i: number; readonly header: BackupHeader },
): void {
  const [name, before, previous] = [sources[i]?.name, sources[i - 1]?.name, headers[i - 1]];
  if (previous === undefined) {
    if (header.since === undefined) return;
    const message = `${name} is incremental, since revision ${header.since}: name the backup of that revision before it`;
    throw new CommandError('failed', message);
  }
  if (header.clusterId !== previous.clusterId) {
    const message = `${name} is of cluster ${header.clusterId}, and ${before} is of cluster ${previous.clusterId}`;
    throw new CommandError('failed', message);
  }
  if (header.since === previous.revision) return;
  const it = header.since === undefined ? 'is a whole backup' : `continues revision ${header.since}`;
  throw new CommandError(
    'failed',
    `${name} ${it}; it cannot follow ${before}, which is of revision ${previous.revision}`,
  );
}

async function* merged(
  sources: readonly BackupSource[],
  { since: _, ...header }: BackupHeader,
  name: string,
): AsyncGenerator<BackupPart> {
  yield { type: 'header', header };
  const changes = sources.map((source) => new Changes(source));
  let pairs = 0;
  try {
    for await (const batch of batches(newest(changes))) {
      pairs += batch.length;
      yield { type: 'pairs', pairs: batch };
    }
  } finally {
    for (const each of changes) await each.close();
  }
  if (pairs !== header.pairs) {
    const message = `${name} have ${pairs} keys together, and the cluster had ${header.pairs}: one of them is not of this chain`;
    throw new CommandError('failed', message); // CH3
  }
  const users = changes.at(-1)?.users;
  if (users !== undefined) yield { type: 'users', content: users };
}

/** CH2. */
async function* newest(changes: readonly Changes[]): AsyncGenerator<BackupPair> {
  for (const each of changes) await each.advance();
  for (;;) {
    let found: Change | undefined;
    for (const { head } of changes) {
      if (head !== undefined && (found === undefined || compareBytes(head.key, found.key) <= 0)) found = head;
    }
    if (found === undefined) return;
    if (found.pair !== undefined) yield found.pair;
    for (const each of changes) {
      if (each.head !== undefined && compareBytes(each.head.key, found.key) === 0) await each.advance();
    }
  }
}

/** `pair` is undefined for a deleted key. */
interface Change {
  readonly key: Buffer;
  readonly pair: BackupPair | undefined;
}

/** Reads the pairs and the deleted keys of one backup. */
class Changes {
  /** Undefined before the first `advance`, and after the last change. */
  head: Change | undefined;
  users: BackupUsers | undefined;
  readonly #parts: AsyncGenerator<BackupPart>;
  #part: readonly Change[] = [];
  #at = 0;

  constructor(source: BackupSource) {
    this.#parts = source.parts();
  }

  async advance(): Promise<void> {
    while (this.#at >= this.#part.length) {
      const { value, done } = await this.#parts.next();
      if (done) {
        this.head = undefined;
        return;
      }
      if (value.type === 'users') this.users = value.content;
      this.#part = changesOf(value);
      this.#at = 0;
    }
    this.head = this.#part[this.#at++];
  }

  async close(): Promise<void> {
    await this.#parts.return(undefined);
  }
}

function changesOf(part: BackupPart): readonly Change[] {
  if (part.type === 'pairs') return part.pairs.map((pair) => ({ key: pair.key, pair }));
  return part.type === 'deleted' ? part.keys.map((key) => ({ key, pair: undefined })) : [];
}
