import type { Bytes, Engine, Row } from '@remora/base';
import { asBool, asCount, decodeStored, encodeStored, type StoredFormat } from '@remora/protocol';
import { heldKey } from '../state/keys.ts';

/** The replica of a range that a node holds, or held last. */
export interface HeldReplica {
  readonly replicaId: number;
  /** It was removed from its range: nothing of it may be used, and it never runs again. */
  readonly ended: boolean;
}

const HELD: StoredFormat = { what: 'which replica of a range is held', version: 1, fields: 2 };

/**
 * Which replica a node holds of each range that it ever held: a row each, which outlives the replica.
 *
 * HR1. Replica ids grow (master/src/state.ts M1). Of a range that it knows, a node accepts no replica below the one it
 *      holds, and once that has ended only higher ones: a replica that was removed never comes back under its id, with
 *      an empty log and its promises forgotten (traps 10).
 * HR2. The rows are carried by checkpoints, each with what it says: the beginning of a replica with its first state, its
 *      end with its last.
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
    return held === undefined || replicaId > held.replicaId || (replicaId === held.replicaId && !held.ended);
  }

  begins(rangeId: number, replicaId: number): void {
    this.#put(rangeId, { replicaId, ended: false });
  }

  ends(rangeId: number, replicaId: number): void {
    this.#put(rangeId, { replicaId, ended: true });
  }

  /** What `ends` puts down. */
  endedRow(rangeId: number, replicaId: number): Row {
    return rowOf(rangeId, { replicaId, ended: true });
  }

  #put(rangeId: number, held: HeldReplica): void {
    const { key, value } = rowOf(rangeId, held);
    this.#engine.put(key, value);
  }
}

function rowOf(rangeId: number, { replicaId, ended }: HeldReplica): Row {
  return { key: heldKey(rangeId), value: encodeStored(HELD, [replicaId, ended]) };
}

/** Throws an `InvariantError` for anything else. */
function decodeHeld(row: Bytes): HeldReplica {
  return decodeStored(HELD, row, ([replicaId, ended]) => ({
    replicaId: asCount(replicaId, 'replicaId'),
    ended: asBool(ended, 'ended'),
  }));
}
