/**
 * Writes the keys of a snapshot of etcd into a cluster.
 *
 * IM1. Nothing is written before the whole file was read, and before its keys were compared with those of the cluster:
 *      a key that the cluster has with another value ends the import, unless it may be overwritten.
 * IM2. Keys are written in their order, in transactions that demand that none of theirs exists. Otherwise they are
 *      read, and only those that differ are written. So an import that was interrupted can be repeated, and a second
 *      one changes nothing.
 * IM3. In a cluster without keys, revisions are raised above those of etcd first, as a restore does (restore.ts RS3).
 *      A client that resumes a watch from a revision of etcd then gets COMPACTED, and reads again.
 * IM4. Keys of a lease are written with that lease, which is granted again (lease-keeper.ts). A key whose lease the
 *      file does not have was without a lease in etcd, too.
 */
import { equalBytes, ServiceError } from '@remora/base';
import type { Kv, KvPair, Leases, TxnAnswer } from 'remora';
import type { AdminClient } from 'remora/admin';
import { batches } from '../backup/batches.ts';
import { Progress } from '../backup/progress.ts';
import { REVISIONS_AHEAD } from '../backup/restore.ts';
import { bytesOf } from '../backup/take.ts';
import { CommandError } from '../exit-codes.ts';
import { printable } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import type { EtcdPair } from './etcd-rows.ts';
import type { EtcdSnapshot } from './etcd-snapshot.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import type { IndexEntry } from './runs.ts';

/** How often a batch is tried whose lease ended meanwhile, or whose answer was lost. */
const TRIES_MAX = 4;

/** The part of a cluster that an import uses. */
export interface ImportTarget {
  readonly client: {
    readonly kv: Pick<Kv, 'list' | 'range' | 'txn'>;
    readonly lease: Pick<Leases, 'grant' | 'keepAlive'>;
  };
  readonly admin: Pick<AdminClient, 'beginRestore' | 'endRestore'>;
}

export interface ImportOptions {
  readonly prefix: Uint8Array;
  readonly overwrite: boolean;
  /** Also keys that belong to leases, and their leases. */
  readonly withLeases: boolean;
}

export interface Imported {
  /** Written now. */
  readonly keys: number;
  /** The cluster had them already, with the same value. */
  readonly present: number;
  readonly overwritten: number;
  /** Keys that belonged to leases, which were left out. */
  readonly leftOut: number;
  readonly leases: number;
  /** Leases that ended during the import, with their keys. */
  readonly leasesLost: number;
  /** Keys that named a lease that etcd did not have. */
  readonly unleased: number;
  /** Revisions continue above this; undefined if they were not raised. */
  readonly above: number | undefined;
}

export async function importSnapshot(
  target: ImportTarget,
  {
    snapshot,
    options,
    shell,
  }: { readonly snapshot: EtcdSnapshot; readonly options: ImportOptions; readonly shell: Shell },
): Promise<Imported> {
  const work = new Import(target, snapshot, options);
  const total = await work.compare(new Progress(shell, 'compared', 0)); // IM1
  const above = await work.raiseRevisions(); // IM3
  await work.write(new Progress(shell, 'imported', total));
  if (above !== undefined) await target.admin.endRestore(); // as a restore does (restore.ts RS5)
  return work.result(above);
}

class Import {
  readonly #target: ImportTarget;
  readonly #snapshot: EtcdSnapshot;
  readonly #options: ImportOptions;
  readonly #leases: LeaseKeeper;
  readonly #counts = { keys: 0, present: 0, overwritten: 0, leftOut: 0, unleased: 0 };

  constructor(target: ImportTarget, snapshot: EtcdSnapshot, options: ImportOptions) {
    this.#target = target;
    this.#snapshot = snapshot;
    this.#options = options;
    this.#leases = new LeaseKeeper(target.client.lease, snapshot.leases);
  }

  result(above: number | undefined): Imported {
    return { ...this.#counts, leases: this.#leases.granted, leasesLost: this.#leases.lost, above };
  }

  /** IM1. Returns the number of keys to write. */
  async compare(progress: Progress): Promise<number> {
    const here = pairsOf(this.#target.client.kv, this.#options.prefix);
    let pair = await here.next();
    let [total, differing]: [number, number] = [0, 0];
    let example: Uint8Array | undefined;
    for await (const entry of this.#entries()) {
      total++;
      progress.add(1, 0);
      while (!pair.done && Buffer.compare(pair.value.key, entry.key) < 0) pair = await here.next();
      if (pair.done || !equalBytes(pair.value.key, entry.key)) continue;
      if (isSame(pair.value, await this.#pair(entry))) continue;
      differing++;
      example ??= entry.key;
    }
    if (example === undefined || this.#options.overwrite) return total;
    const others = differing > 1 ? ` and ${differing - 1} more with other values` : ' with another value';
    const message =
      `the cluster already has ${printable(example)}${others}; nothing was written. Add --overwrite to replace them, or ` +
      'import into another cluster';
    throw new CommandError('failed', message);
  }

  /** IM3. An earlier attempt may have done it, or the cluster is in use already. */
  async raiseRevisions(): Promise<number | undefined> {
    const { client, admin } = this.#target;
    const above = this.#snapshot.facts.revision + REVISIONS_AHEAD;
    const { kvs, revision } = await client.kv.range({ prefix: '' }, { limit: 1, keysOnly: true });
    if (revision >= above) return above;
    if (kvs.length > 0) return undefined;
    try {
      await admin.beginRestore(above);
      return above;
    } catch (error) {
      // Sessions exist, or the cluster has several ranges.
      if (error instanceof ServiceError && error.code === 'INVALID_ARGUMENT') return undefined;
      throw error;
    }
  }

  async write(progress: Progress): Promise<void> {
    for await (const batch of batches(this.#pairs())) {
      await this.#writeBatch(batch);
      progress.add(batch.length, bytesOf(batch));
    }
    await this.#leases.finish();
  }

  async *#entries(): AsyncGenerator<IndexEntry> {
    for await (const entry of this.#snapshot.keys()) {
      if (entry.lease === 0n || this.#options.withLeases) yield entry;
    }
  }

  async *#pairs(): AsyncGenerator<EtcdPair> {
    for await (const entry of this.#snapshot.keys()) {
      if (entry.lease !== 0n && !this.#options.withLeases) this.#counts.leftOut++;
      else {
        const pair = await this.#pair(entry);
        if (pair.lease !== entry.lease) this.#counts.unleased++;
        yield pair;
      }
    }
  }

  /** IM4. */
  async #pair(entry: IndexEntry): Promise<EtcdPair> {
    const pair = await this.#snapshot.pair(entry);
    return pair.lease === 0n || this.#leases.has(pair.lease) ? pair : { ...pair, lease: 0n };
  }

  async #writeBatch(batch: readonly EtcdPair[]): Promise<void> {
    const ids = batch.flatMap(({ lease }) => (lease === 0n ? [] : [lease]));
    for (let tries = 1; ; tries++) {
      await this.#leases.prepare(ids);
      try {
        return await this.#tryBatch(batch);
      } catch (error) {
        const code = error instanceof ServiceError ? error.code : undefined;
        const again = code === 'LEASE_NOT_FOUND' || code === 'UNKNOWN_OUTCOME'; // IM2
        if (!again || tries >= TRIES_MAX) throw explained(error, batch);
        if (code === 'LEASE_NOT_FOUND') this.#leases.forget(ids);
      }
    }
  }

  /** IM2. */
  async #tryBatch(batch: readonly EtcdPair[]): Promise<void> {
    const { kv } = this.#target.client;
    const { succeeded, results } = await kv.txn({
      compare: batch.map(({ key }) => ({ key, target: 'createRevision', is: '=', than: 0 })),
      success: batch.map(putOf),
      failure: batch.map(({ key }) => ({ get: key })),
    });
    if (succeeded) {
      this.#counts.keys += batch.length;
      return;
    }
    const found = batch.map((pair, i) => ({ pair, here: pairIn(results[i]) }));
    const missing = found.filter(({ here }) => here === undefined).map(({ pair }) => pair);
    const other = found.filter(({ pair, here }) => here !== undefined && !isSame(here, pair)).map(({ pair }) => pair);
    const [first] = other;
    if (first !== undefined && !this.#options.overwrite) {
      const message = `another client writes to the cluster: ${printable(first.key)} has another value now. Stop it, then run this again`;
      throw new CommandError('failed', message);
    }
    if (missing.length + other.length > 0) await kv.txn({ success: [...missing, ...other].map(putOf) });
    this.#counts.keys += missing.length;
    this.#counts.overwritten += other.length;
    this.#counts.present += batch.length - missing.length - other.length;
  }
}

function putOf({ key, value, lease }: EtcdPair) {
  return { put: key, value, lease };
}

function pairIn(answer: TxnAnswer | undefined): KvPair | undefined {
  return answer?.type === 'get' ? answer.kvs[0] : undefined;
}

function isSame(here: KvPair, pair: EtcdPair): boolean {
  return equalBytes(here.value, pair.value) && here.lease === pair.lease;
}

async function* pairsOf(kv: ImportTarget['client']['kv'], prefix: Uint8Array): AsyncGenerator<KvPair, undefined> {
  yield* kv.list({ prefix });
}

/** Names the key of a value that is too large for the cluster. */
function explained(error: unknown, [pair, ...others]: readonly EtcdPair[]): unknown {
  const tooLarge = error instanceof ServiceError && error.code === 'REQUEST_TOO_LARGE';
  if (!tooLarge || pair === undefined || others.length > 0) return error;
  const message =
    `the value of ${printable(pair.key)} has ${pair.value.length} bytes, more than the cluster accepts. Raise ` +
    '--request-bytes-max of all nodes, then run this again';
  return new CommandError('failed', message, { cause: error });
}
