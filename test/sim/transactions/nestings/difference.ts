/** Runs transactions over one range and over several, and reports the differences. */
import type { KeyValue, KvEvent, Txn } from '@remora/protocol';
import { put } from '../../../../packages/dataserver/test/support/state-bed.ts';
import { KEYS, VALUE_BEFORE } from './nestings.ts';
import { type Answer, SmallCluster } from './small-cluster.ts';

interface Cluster {
  readonly name: string;
  readonly borders: readonly string[];
  cluster: SmallCluster;
}

/** The history grows, because nothing is compacted. */
const CASES_OF_A_CLUSTER = 500;

/**
 * One cluster for each way to split the keys. All of them receive the same requests, and stay equal as long as there is
 * no difference.
 */
export class Differences {
  readonly #clusters: readonly Cluster[];
  #cases = 0;
  executed = 0;
  refused = 0;
  readonly found: string[] = [];

  /** The range borders in each of the clusters. An empty list means one range. */
  constructor(borders: readonly (readonly string[])[]) {
    this.#clusters = borders.map((keys) => ({
      name: keys.length === 0 ? 'in one range' : `split at ${keys.join()}`,
      borders: keys,
      cluster: new SmallCluster(keys),
    }));
  }

  async compare(name: string, txn: Txn): Promise<void> {
    if (++this.#cases % CASES_OF_A_CLUSTER === 0) this.#beginAnew();
    const seen: string[] = [];
    let refused = false;
    for (const { cluster } of this.#clusters) {
      const outcome = await outcomeIn(cluster, txn);
      seen.push(outcome.seen);
      refused = outcome.refused;
    }
    if (refused) this.refused++;
    else this.executed++;
    if (new Set(seen).size === 1) return;
    const each = this.#clusters.map((one, i) => `  ${one.name}: ${seen[i]}`);
    this.found.push([`${name}: ${shown(txn)}`, ...each].join('\n'));
    this.#beginAnew();
  }

  #beginAnew(): void {
    for (const one of this.#clusters) one.cluster = new SmallCluster(one.borders);
  }
}

/** `seen`: the answer, the remaining keys, and the watch events. Revisions are replaced by their order. */
async function outcomeIn(
  cluster: SmallCluster,
  txn: Txn,
): Promise<{ readonly seen: string; readonly refused: boolean }> {
  await restore(cluster);
  const answer = await cluster.txn(txn);
  const events = [...cluster.takeEvents()].sort(byKey);
  const seen = seenOf(answer, cluster.pairs(KEYS), events);
  const left = cluster.left === 0 ? '' : `, and ${cluster.left} parts or records are left`;
  cluster.timePasses();
  return { seen: seen + left, refused: answer.error !== undefined };
}

/** Restores all keys to the values that comparisons expect. */
async function restore(cluster: SmallCluster): Promise<void> {
  const there = new Map(cluster.pairs(KEYS).map(({ key, value }) => [Buffer.from(key).toString(), Buffer.from(value)]));
  for (const key of KEYS) {
    if (there.get(key)?.toString() !== VALUE_BEFORE) await cluster.kv(put(key, VALUE_BEFORE));
  }
  cluster.takeEvents();
}

function byKey(a: KvEvent, b: KvEvent): number {
  return Buffer.compare(a.kv.key, b.kv.key);
}

/** Replaces revisions by their rank, because the revisions themselves differ. */
function seenOf({ error, result, revision }: Answer, pairs: readonly KeyValue[], events: readonly KvEvent[]): string {
  const revisions = new Set<number>();
  // A request that changed nothing is answered with the revision of one range, or with the one at which several were
  // read.
  const header = events.length === 0 ? {} : { modRevision: revision };
  const whole = { header, answer: error === undefined ? result : `${error.code}: ${error.message}`, pairs, events };
  shown(whole, (found) => revisions.add(found));
  const order = new Map([...revisions].sort((a, b) => a - b).map((found, place) => [found, place]));
  return shown(whole, (found) => order.get(found));
}

const REVISIONS: ReadonlySet<string> = new Set(['createRevision', 'modRevision']);

function shown(what: unknown, revision: (found: number) => unknown = (found) => found): string {
  return JSON.stringify(what, (name, value) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (value?.type === 'Buffer') return Buffer.from(value.data).toString('latin1');
    if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
    return REVISIONS.has(name) ? revision(value) : value;
  });
}
