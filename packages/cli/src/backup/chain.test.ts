import { SeededRandom } from '@remora/base';
import { BackupEncoder, type BackupHeader, decodeBackup } from '@remora/protocol';
import { KvPair } from 'remora';
import { describe, expect, test } from 'vitest';
import { type BackupSource, verifyBackup } from './backup-file.ts';
import { chainOf } from './chain.ts';
import { changesBetween } from './changes.ts';

const HEADER = { clusterId: 'c', takenAtMs: 0, program: '1' };

/** The pairs of a cluster at one revision. */
interface State {
  readonly revision: number;
  readonly pairs: readonly KvPair[];
}

function pair(key: string, modRevision: number): KvPair {
  const bytes = { key: Buffer.from(key), value: Buffer.from(`${key} at ${modRevision}`) };
  return new KvPair({ ...bytes, modRevision, createRevision: 1, version: 1, lease: 0n });
}

/** States that follow each other, each after some puts and deletes. */
function history(seed: number, length: number): readonly State[] {
  const random = new SeededRandom(seed);
  const now = new Map<string, KvPair>();
  let revision = 1;
  return Array.from({ length }, () => {
    for (let i = random.int(60); i > 0; i--) {
      const key = `k${random.int(50)}`;
      revision++;
      if (random.int(3) === 0) now.delete(key);
      else now.set(key, pair(key, revision));
    }
    return { revision, pairs: [...now.values()].sort((a, b) => Buffer.compare(a.key, b.key)) };
  });
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T, undefined> {
  yield* items;
}

function sourceOf(name: string, file: Buffer): BackupSource {
  const parts = () => {
    let at = 0;
    return decodeBackup(async (bytes) => {
      const piece = file.subarray(at, at + bytes);
      at += piece.length;
      return piece;
    });
  };
  return { name, parts };
}

async function backup({ revision, pairs }: State, before?: State, header: Partial<BackupHeader> = {}) {
  const encoder = new BackupEncoder();
  const since = before === undefined ? {} : { since: before.revision };
  const pieces = [encoder.begin({ ...HEADER, revision, pairs: pairs.length, ...since, ...header })];
  if (before === undefined) pieces.push(encoder.pairs(pairs));
  else {
    for await (const group of changesBetween(each(before.pairs), each(pairs))) {
      pieces.push(group.type === 'pairs' ? encoder.pairs(group.pairs) : encoder.deleted(group.keys));
    }
  }
  return sourceOf(`${revision}`, Buffer.concat([...pieces, encoder.end()]));
}

test('a chain has the pairs of its last backup, whatever changed between them (CH2, CH3)', async () => {
  for (let seed = 0; seed < 30; seed++) {
    const states = history(seed, 5);
    const sources = await Promise.all(states.map((state, i) => backup(state, states[i - 1])));
    const last = states.at(-1);
    const found: unknown[] = [];
    for await (const part of (await chainOf(sources)).parts()) if (part.type === 'pairs') found.push(...part.pairs);
    expect(found).toEqual(last?.pairs);
  }
});

describe('refused is', () => {
  const [first, second, third] = history(3, 3) as [State, State, State];
  const missing = { ...third, pairs: third.pairs.slice(1) };
  const rows: readonly {
    readonly name: string;
    readonly sources: () => Promise<readonly BackupSource[]>;
    readonly says: string;
  }[] = [
    { name: 'an incremental one alone', sources: () => all(backup(second, first)), says: 'is incremental, since' },
    {
      name: 'one that is left out (CH1)',
      sources: () => all(backup(first), backup(third, second)),
      says: `continues revision ${second.revision}; it cannot follow ${first.revision}`,
    },
    {
      name: 'a whole one behind another',
      sources: () => all(backup(first), backup(second)),
      says: 'is a whole backup',
    },
    {
      name: 'one of another cluster (CH1)',
      sources: () => all(backup(first), backup(second, first, { clusterId: 'd' })),
      says: 'is of cluster d',
    },
    {
      name: 'one with another number of keys (CH3)',
      sources: () => all(backup(first), backup(missing, first, { pairs: third.pairs.length })),
      says: 'keys together',
    },
  ];
  test.each(rows)('$name', async ({ sources, says }) => {
    const read = async () => verifyBackup(await chainOf(await sources()), () => {});
    await expect(read()).rejects.toThrow(says);
  });
});

function all(...sources: readonly Promise<BackupSource>[]): Promise<readonly BackupSource[]> {
  return Promise.all(sources);
}
