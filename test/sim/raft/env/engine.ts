/**
 * The durable store of a node apart from its log: one record per replica. Each change is atomic, and durable at once.
 */
import type { ConfState, LogPosition } from '@remora/raft';

/**
 * A state of the replicated machine. `values` is shared and append-only; `count` says how many of them belong to this
 * state.
 */
export interface MachineState {
  readonly applied: LogPosition;
  readonly conf: ConfState;
  readonly checksum: number;
  readonly values: number[];
  readonly count: number;
}

export interface EngineRecord extends MachineState {
  readonly replicaId: number;
}

export class Engine {
  readonly #records = new Map<number, EngineRecord>();

  groups(): readonly number[] {
    return [...this.#records.keys()];
  }

  record(groupId: number): EngineRecord | undefined {
    return this.#records.get(groupId);
  }

  /** Stores a state, unless the replica is gone or a newer state is stored. Returns true if it was stored. */
  store(groupId: number, replicaId: number, state: MachineState): boolean {
    const known = this.#records.get(groupId);
    if (known?.replicaId !== replicaId || known.applied.index > state.applied.index) return false;
    this.#records.set(groupId, { ...state, replicaId });
    return true;
  }

  create(groupId: number, replicaId: number, conf: ConfState): void {
    const applied = { index: 0, term: 0 };
    this.#records.set(groupId, { replicaId, applied, conf, checksum: 0, values: [], count: 0 });
  }

  remove(groupId: number): void {
    this.#records.delete(groupId);
  }
}
