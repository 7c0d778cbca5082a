import type { Bytes, Engine, Row } from '@remora/base';
import { schema, storedRow } from '@remora/protocol';
import { MASTER_GROUP } from '@remora/raft';
import { allHeldSpan, heldFloorKey, heldKey, rangeIdOfOwnKey, stateKey } from '../state/keys.ts';

/** The replica of a range that a node holds, or held last. */
export interface HeldReplica {
  readonly replicaId: number;
  /** The replica was removed from its range: none of its data may be used, and it never runs again. */
  readonly ended: boolean;
}

const { bool, field, struct, uint } = schema;

const HELD_ROW = storedRow(
  'which replica of a range is held',
  struct('held replica', {
    replicaId: field(uint, 'The replica.'),
    ended: field(bool, 'It is held no longer.'),
  }),
  { 1: 2 },
);

export const ENDED_MAX = 10_000;

/**
 * Records which replica a node holds of each range that it ever held: a row each, which outlives the replica.
 *
 * HR1. Replica ids grow (master/src/metadata/master-state.ts M1). For a range that it knows, a node accepts no replica
 *      below the one it holds, and once that has ended only higher ones: a removed replica never comes back under its
 *      id with an empty log and without its promises (traps 10).
 * HR2. Checkpoints carry the rows together with the states that they describe: the beginning of a replica with its
 *      first state, its end with its last.
 * HR3. Among the ended replicas, the `ENDED_MAX` rows with the highest ids are kept. The highest id of the others stays
 *      as a floor for ranges without a row. Ids are allocated in ascending order over all ranges. So a replica that the
 *      floor refuses got its id so many replicas ago that nothing waits for it any more; if something does, the range
 *      gets a replica with a new id. Thus ranges that were merged away, or have left the node, do not leave rows for
 *      ever.
 */
export class HeldReplicas {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  of(rangeId: number): HeldReplica | undefined {
    const row = this.#engine.get(heldKey(rangeId));
    return row === undefined ? undefined : decodeHeld(row);
  }

  /** HR1. */
  accepts(rangeId: number, replicaId: number): boolean {
    const held = this.of(rangeId);
    if (held === undefined) return replicaId > this.#floor;
    return replicaId > held.replicaId || (replicaId === held.replicaId && !held.ended);
  }

  /** HR3. Called when the node starts. */
  forget(keep = ENDED_MAX): void {
    const ended: { readonly key: Bytes; readonly replicaId: number }[] = [];
    for (const { key, value } of this.#engine.scanResident(allHeldSpan())) {
      const held = decodeHeld(value);
      if (held.ended && !this.#isKept(rangeIdOfOwnKey(key))) ended.push({ key, replicaId: held.replicaId });
    }
    ended.sort((a, b) => a.replicaId - b.replicaId);
    const gone = ended.slice(0, Math.max(0, ended.length - keep));
    const last = gone.at(-1);
    if (last === undefined) return;
    for (const { key } of gone) this.#engine.delete(key);
    const replicaId = Math.max(last.replicaId, this.#floor);
    this.#engine.put(heldFloorKey(), HELD_ROW.encode({ replicaId, ended: true }));
  }

  /** The state row is deleted last (HR4). The rows of the masters' group and of the floor always stay. */
  #isKept(rangeId: number): boolean {
    return rangeId <= MASTER_GROUP || this.#engine.get(stateKey(rangeId)) !== undefined;
  }

  get #floor(): number {
    const row = this.#engine.get(heldFloorKey());
    return row === undefined ? 0 : decodeHeld(row).replicaId;
  }

  begins(rangeId: number, replicaId: number): void {
    this.#put(rangeId, { replicaId, ended: false });
  }

  ends(rangeId: number, replicaId: number): void {
    this.#put(rangeId, { replicaId, ended: true });
  }

  /** The row that `ends` stores. */
  endedRow(rangeId: number, replicaId: number): Row {
    return rowOf(rangeId, { replicaId, ended: true });
  }

  #put(rangeId: number, held: HeldReplica): void {
    const { key, value } = rowOf(rangeId, held);
    this.#engine.put(key, value);
  }
}

function rowOf(rangeId: number, { replicaId, ended }: HeldReplica): Row {
  return { key: heldKey(rangeId), value: HELD_ROW.encode({ replicaId, ended }) };
}

/** Throws an `InvariantError` for anything else. */
function decodeHeld(row: Bytes): HeldReplica {
  return HELD_ROW.decode(row);
}
