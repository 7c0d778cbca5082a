/**
 * A snapshot of etcd: what is in it, and its live keys.
 *
 * ES1. The SHA-256 of the whole file is verified before anything of it is used, unless that is switched off.
 * ES2. Only the newest version of each key counts, and only if it is not a deletion. The rest is history.
 * ES3. Memory is bounded by the index of keys (key-index.ts), the largest page, and `LEASES_MAX`, `USERS_MAX` and
 *      `ROLES_MAX`.
 */
import { BoltFile } from './bolt-file.ts';
import type { ByteSource } from './byte-source.ts';
import { damaged, EtcdFileError } from './etcd-file-error.ts';
import {
  type EtcdLease,
  type EtcdPair,
  type EtcdRole,
  type EtcdUser,
  leaseOf,
  pairOf,
  revisionOf,
  roleOf,
  userOf,
} from './etcd-rows.ts';
import { KeyIndex } from './key-index.ts';
import { type IndexEntry, Runs } from './runs.ts';
import { verifyHash } from './snapshot-hash.ts';

/** Each lease has to be renewed while keys are written. */
const LEASES_MAX = 200_000;
/** Remora's limits on users and roles. */
const [USERS_MAX, ROLES_MAX] = [10_000, 1_000];

export interface SnapshotOptions {
  /** Only keys that begin with this. */
  readonly prefix: Uint8Array;
  readonly checkHash: boolean;
}

/** Learns how far a long step has got. */
export interface SnapshotProgress {
  hashed(bytes: number): void;
  scanned(changes: number): void;
}

export interface SnapshotFacts {
  /** As the file says, such as `3.6.0`; undefined for etcd 3.5 and older, which do not write it. */
  readonly storageVersion: string | undefined;
  /** The newest revision. */
  readonly revision: number;
  /** History before this was compacted; 0: none was. */
  readonly compacted: number;
  readonly authEnabled: boolean;
  readonly members: number;
  readonly alarms: number;
}

export class EtcdSnapshot {
  readonly facts: SnapshotFacts;
  readonly leases: ReadonlyMap<bigint, EtcdLease>;
  readonly users: readonly EtcdUser[];
  readonly roles: readonly EtcdRole[];
  readonly #source: ByteSource;
  readonly #index: KeyIndex;

  private constructor(
    source: ByteSource,
    index: KeyIndex,
    contents: Pick<EtcdSnapshot, 'facts' | 'leases' | 'users' | 'roles'>,
  ) {
    this.#source = source;
    this.#index = index;
    this.facts = contents.facts;
    this.leases = contents.leases;
    this.users = contents.users;
    this.roles = contents.roles;
  }

  /**
   * Reads a whole snapshot, and removes temporary files after `use`.
   *
   * @throws EtcdFileError when it is no snapshot of etcd, or is damaged.
   */
  static async with<T>(
    source: ByteSource,
    { options, progress }: { readonly options: SnapshotOptions; readonly progress: SnapshotProgress },
    use: (snapshot: EtcdSnapshot) => Promise<T>,
  ): Promise<T> {
    if (options.checkHash) await verifyHash(source, (bytes) => progress.hashed(bytes)); // ES1
    const file = await BoltFile.open(source);
    if (!file.has('key') || !file.has('meta')) {
      throw new EtcdFileError('is not a snapshot of etcd: it is a bbolt database without the buckets of etcd');
    }
    const runs = new Runs();
    try {
      const index = new KeyIndex(runs);
      const revision = await indexKeys(file, index, { prefix: options.prefix, progress });
      const contents = {
        facts: await factsOf(file, revision),
        leases: new Map(
          (await collect(file, 'lease', { max: LEASES_MAX, decode: leaseOf })).map((one) => [one.id, one]),
        ),
        users: await collect(file, 'authUsers', { max: USERS_MAX, decode: userOf }),
        roles: await collect(file, 'authRoles', { max: ROLES_MAX, decode: roleOf }),
      };
      return await use(new EtcdSnapshot(source, index, contents));
    } finally {
      await runs.close();
    }
  }

  /** The live keys in their order, without their values. */
  keys(): AsyncGenerator<IndexEntry> {
    return this.#index.live();
  }

  /** Reads the pair of a key. */
  async pair({ key, at, length }: IndexEntry): Promise<EtcdPair> {
    const row = await this.#source.read(at, length);
    const pair = row.length === length ? pairOf(row) : undefined;
    if (!pair?.key.equals(key)) throw damaged('it was changed while it was read');
    return pair;
  }
}

/** ES2. Returns the newest revision. */
async function indexKeys(
  file: BoltFile,
  index: KeyIndex,
  { prefix, progress }: { readonly prefix: Uint8Array; readonly progress: SnapshotProgress },
): Promise<number> {
  let newest = 1; // etcd's revision before the first change
  for await (const rows of file.rows('key')) {
    const entries: IndexEntry[] = [];
    for (const { key: revisionKey, value, valueAt } of rows) {
      const { main, deleted } = revisionOf(revisionKey);
      newest = main;
      const { key, lease } = pairOf(value);
      if (!key.subarray(0, prefix.length).equals(prefix)) continue;
      entries.push({ key: Buffer.from(key), deleted, lease, at: valueAt, length: value.length });
    }
    await index.add(entries);
    progress.scanned(rows.length);
  }
  return newest;
}

async function factsOf(file: BoltFile, newest: number): Promise<SnapshotFacts> {
  let [storageVersion, compacted]: [string | undefined, number] = [undefined, 0];
  for await (const rows of file.rows('meta')) {
    for (const { key, value } of rows) {
      const name = key.toString('latin1');
      if (name === 'storageVersion') storageVersion = value.toString('utf8', 0, 32);
      if (name.endsWith('CompactRev')) compacted = Math.max(compacted, revisionOf(value).main);
    }
  }
  let authEnabled = false;
  for await (const rows of file.rows('auth')) {
    for (const { key, value } of rows) if (key.toString('latin1') === 'authEnabled') authEnabled = value[0] === 1;
  }
  const [members, alarms] = [await countRows(file, 'members'), await countRows(file, 'alarm')];
  return { storageVersion, revision: Math.max(newest, compacted), compacted, authEnabled, members, alarms };
}

async function countRows(file: BoltFile, bucket: string): Promise<number> {
  let count = 0;
  for await (const rows of file.rows(bucket)) count += rows.length;
  return count;
}

/** ES3. */
async function collect<T>(
  file: BoltFile,
  bucket: string,
  { max, decode }: { readonly max: number; readonly decode: (row: Buffer) => T },
): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const rows of file.rows(bucket)) {
    found.push(...rows.map(({ value }) => decode(value)));
    if (found.length > max) throw new EtcdFileError(`has more than ${max} rows in the bucket ${bucket}`);
  }
  return found;
}
