/**
 * Reads of earlier revisions, and compactions, which end them (design §7).
 *
 * H1. The state at a revision does not change: a read of that revision returns the same as a read when it was current.
 *     That also holds for a read in pages while ranges change, as in a backup.
 * H2. The alternative answer is that the revision is compacted, if it may be by now (known-revisions.ts, F2).
 */
import type { KeySelector, KvPair } from 'remora';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import { LEASED } from './leases.ts';
import { CLEARS, LISTS_PREFIX } from './list-view.ts';
import { REGISTERS } from './registers.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const SELECTORS: readonly KeySelector[] = [
  { prefix: '' },
  { prefix: REGISTERS },
  { prefix: LISTS_PREFIX },
  { prefix: LEASED },
  CLEARS,
];
/** A few pairs. */
const PAGE_BYTES = 256;
const SNAPSHOTS_MAX = 40;
/** A compaction keeps at least this many revisions, and at most this many more. */
const KEPT_MIN = 100;
const KEPT_SPREAD = 400;
/** How much less often than others this workload acts. */
const SELDOM = 4;

interface Snapshot {
  readonly selector: KeySelector;
  readonly revision: number;
  readonly text: string;
}

export const history: MakeWorkload = (world) => new HistoryLoad(world);

class HistoryLoad implements Workload {
  readonly name = 'history';
  readonly #world: World;
  /** The latest reads of all clients. */
  readonly #snapshots: Snapshot[] = [];
  /** Half of the runs compact by request; the run's retention time decides whether it compacts by age. */
  readonly #compacts: boolean;
  #readInPages = 0;

  constructor(world: World) {
    this.#world = world;
    this.#compacts = world.seed % 2 === 0;
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, 1, async () => {
      await think(this.#world, life, SELDOM);
      const kind = life.random.int(10);
      if (kind === 0 && this.#compacts) await this.#compact(life);
      else if (kind < 4) await this.#take(life);
      else await this.#compare(life);
    });
  }

  check(): void {}

  figures(): Readonly<Record<string, number>> {
    return { 'read in pages': this.#readInPages };
  }

  async #take(life: ClientLife): Promise<void> {
    const selector = SELECTORS[life.random.int(SELECTORS.length)] ?? '';
    const asked = await ask({ world: this.#world, life, what: 'snapshot' }, () =>
      this.#world.revisions.current(() => life.remora.kv.range(selector)),
    );
    if (asked.type !== 'answer') return;
    const { revision, kvs } = asked.value;
    this.#snapshots.push({ selector, revision, text: textOf(kvs) });
    if (this.#snapshots.length > SNAPSHOTS_MAX) this.#snapshots.shift();
  }

  async #compare(life: ClientLife): Promise<void> {
    const snapshot = this.#snapshots[life.random.int(SNAPSHOTS_MAX)];
    if (snapshot === undefined) return;
    const { selector, revision, text } = snapshot;
    // In pages, as a backup: ranges may change between two of them.
    const inPages = this.#world.options.steered && life.random.int(2) === 0;
    const question = inPages
      ? () => life.remora.kv.list(selector, { revision, pageBytes: PAGE_BYTES }).toArray()
      : async () => (await life.remora.kv.range(selector, { revision })).kvs;
    const asked = await ask({ world: this.#world, life, what: 'read of a revision' }, question, ['COMPACTED']);
    if (asked.type === 'answer') {
      if (inPages) this.#readInPages++;
      const now = textOf(asked.value);
      if (now !== text) throw new Violation('history stays', `at ${revision} there was\n${text}\nand now\n${now}`); // H1
    } else if (asked.type === 'refused' && asked.code === 'COMPACTED') {
      if (this.#world.revisions.mayBeCompacted(revision + 1)) return;
      throw new Violation('history is kept', `a read of ${revision}: ${asked.error.message}`); // H2
    }
  }

  async #compact(life: ClientLife): Promise<void> {
    const { revisions } = this.#world;
    const revision = revisions.newest - KEPT_MIN - life.random.int(KEPT_SPREAD);
    if (revision < 1) return;
    revisions.compactionAsked(revision);
    await ask({ world: this.#world, life, what: 'compact' }, () => life.remora.kv.compact(revision), ['COMPACTED']);
  }
}

/** Everything about these pairs. */
export function textOf(kvs: readonly KvPair[]): string {
  return kvs
    .map(({ key, value, createRevision, modRevision, version, lease }) =>
      [key, value, createRevision, modRevision, version, lease].join(' '),
    )
    .join('\n');
}
