import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BackupEncoder } from '@remora/protocol';
import { type KvPage, KvPair, Listing, type TxnRequest } from 'remora';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Shell } from '../shell.ts';
import { backupFile } from './backup-file.ts';
import { REVISIONS_AHEAD, restoreBackup } from './restore.ts';

const REVISION = 40;
const ABOVE = REVISION + REVISIONS_AHEAD;
const shell: Shell = {
  env: {},
  out() {},
  raw() {},
  err() {},
  shown: false,
  terminal: false,
  ask: async () => undefined,
  askSecret: async () => undefined,
  input: async () => '',
};

function pair(key: string, value: string, lease = 0n): KvPair {
  const revisions = { createRevision: 3, modRevision: 5, version: 2 };
  return new KvPair({ key: Buffer.from(key), value: Buffer.from(value), ...revisions, lease });
}

/** 200 keys, of which every tenth belongs to a lease: more than two transactions. */
const PAIRS = Array.from({ length: 200 }, (_, i) => pair(`k${1_000 + i}`, `v${i}`, i % 10 === 9 ? 7n : 0n));
const KEPT = PAIRS.filter(({ lease }) => lease === 0n);

/** A cluster's plain keys in memory. */
class FakeCluster {
  readonly pairs = new Map<string, KvPair>();
  readonly raised: number[] = [];
  revision = 1;
  isRestoring = false;
  /** Transactions until the process is killed. */
  patience = Number.POSITIVE_INFINITY;

  put(key: Uint8Array, value: Uint8Array): void {
    this.revision++;
    const text = Buffer.from(key).toString('latin1');
    const known = this.pairs.get(text);
    const createRevision = known?.createRevision ?? this.revision;
    const version = (known?.version ?? 0) + 1;
    this.pairs.set(text, new KvPair({ key, value, lease: 0n, modRevision: this.revision, createRevision, version }));
  }

  get contents(): readonly string[] {
    return this.#sorted().map(({ key, value }) => `${key}=${value}`);
  }

  #sorted(): readonly KvPair[] {
    return [...this.pairs.values()].sort((a, b) => Buffer.compare(a.key, b.key));
  }

  readonly admin = {
    beginRestore: async (to: number) => {
      this.raised.push(to);
      this.revision = Math.max(this.revision, to);
      this.isRestoring = true;
      return { revision: this.revision };
    },
    endRestore: async () => {
      this.isRestoring = false;
    },
  };

  readonly client = {
    kv: {
      list: (): Listing<KvPair, KvPage> => new Listing((cursor) => this.#page(Number(cursor ?? 0))),
      txn: async ({ compare = [], success = [] }: TxnRequest) => {
        if (this.patience-- <= 0) throw new Error('killed');
        const keys = compare.flatMap((one) =>
          'key' in one ? [Buffer.from(one.key as Uint8Array).toString('latin1')] : [],
        );
        const succeeded = keys.every((key) => !this.pairs.has(key));
        for (const op of success) {
          if (succeeded && 'put' in op) this.put(op.put as Uint8Array, op.value as Uint8Array);
        }
        return { succeeded, results: [], revision: this.revision };
      },
    },
  };

  async #page(at: number): Promise<KvPage> {
    const all = this.#sorted();
    const next = at + 50;
    return {
      items: all.slice(at, next),
      cursor: next < all.length ? String(next) : undefined,
      revision: this.revision,
    };
  }
}

let dir: string;
let file: string;
let cluster: FakeCluster;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-restore-'));
  file = join(dir, 'b.remora');
  const encoder = new BackupEncoder();
  const header = { clusterId: 'c', revision: REVISION, pairs: PAIRS.length, takenAtMs: 0, program: '0.1.0' };
  const pages = [PAIRS.slice(0, 77), PAIRS.slice(77)].map((page) => encoder.pairs.bind(encoder, page));
  writeFileSync(file, Buffer.concat([encoder.begin(header), ...pages.map((page) => page()), encoder.end()]));
  cluster = new FakeCluster();
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const restore = () => restoreBackup(cluster, backupFile(file), shell);
const WHOLE = KEPT.map(({ key, value }) => `${key}=${value}`);

describe('a restore', () => {
  test('raises revisions before it writes, and leaves out what belonged to leases (RS3, RS4)', async () => {
    expect(await restore()).toEqual({ pairs: 180, leftOut: 20, before: 0, above: ABOVE });
    expect(cluster.contents).toEqual(WHOLE);
    expect(cluster.raised).toEqual([ABOVE]);
    expect(Math.min(...[...cluster.pairs.values()].map(({ createRevision }) => createRevision))).toBe(ABOVE + 1);
  });

  test('that is killed after any transaction is gone on with by the next one (RS2)', async () => {
    for (let patience = 0; patience < 3; patience++) {
      cluster = new FakeCluster();
      cluster.patience = patience;
      await expect(restore()).rejects.toThrow('killed');
      expect(cluster.isRestoring).toBe(true); // RS5
      cluster.patience = Number.POSITIVE_INFINITY;
      const before = cluster.pairs.size;
      expect(await restore()).toMatchObject({ before, pairs: 180 - before, leftOut: 20 });
      expect(cluster.contents).toEqual(WHOLE);
      expect(cluster.isRestoring).toBe(false);
    }
  });

  test('of a damaged file changes nothing (RS1)', async () => {
    const bytes = readFileSync(file);
    bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await expect(restore()).rejects.toThrow('is damaged');
    expect([cluster.raised, cluster.contents]).toEqual([[], []]);
  });

  const others: readonly { name: string; given: (cluster: FakeCluster) => void }[] = [
    { name: 'a key that is not in the file', given: (c) => c.put(Buffer.from('a'), Buffer.from('x')) },
    {
      name: 'a key of the file with another value',
      given: (c) => c.put(PAIRS[0]?.key ?? Buffer.of(), Buffer.from('x')),
    },
    {
      name: 'the first key of the file, which no restore wrote',
      given: (c) => c.put(PAIRS[0]?.key ?? Buffer.of(), PAIRS[0]?.value ?? Buffer.of()),
    },
    {
      name: 'a later key of the file',
      given: (c) => c.put(PAIRS[5]?.key ?? Buffer.of(), PAIRS[5]?.value ?? Buffer.of()),
    },
  ];
  test.each(others)('into a cluster that has $name is refused', async ({ given }) => {
    given(cluster);
    const before = cluster.contents;
    await expect(restore()).rejects.toThrow('and they are not from');
    expect([cluster.raised, cluster.contents]).toEqual([[], before]);
  });

  test('that was written to since is refused when it is gone on with', async () => {
    cluster.patience = 2;
    await expect(restore()).rejects.toThrow('killed');
    const [first] = KEPT;
    cluster.put(first?.key ?? Buffer.of(), first?.value ?? Buffer.of());
    cluster.patience = Number.POSITIVE_INFINITY;
    await expect(restore()).rejects.toThrow('and they are not from');
  });

  test('notices who writes meanwhile', async () => {
    const { txn } = cluster.client.kv;
    let calls = 0;
    cluster.client.kv.txn = (request) => {
      if (++calls === 2) cluster.put(KEPT[100]?.key ?? Buffer.of(), Buffer.from('mine'));
      return txn(request);
    };
    await expect(restore()).rejects.toThrow('already exists: another client writes');
    expect(cluster.pairs.get(String(KEPT[100]?.key))?.value.toString()).toBe('mine');
  });
});
