/**
 * The position up to which the state of each group on a node is durable outside the log: read from the medium under its
 * engine.
 */
import { asBuffer, assert } from '@remora/base';
import { type LogPosition, MASTER_GROUP } from '@remora/raft';
import { nameOf, rangeOf } from '../../../../packages/dataserver/src/engine/latin1.ts';
import { openRow } from '../../../../packages/dataserver/src/engine/row-checksum.ts';
import { decodeMarker } from '../../../../packages/dataserver/src/install/marker.ts';
import {
  allInstallsSpan,
  installKey,
  masterStateKey,
  stateKey,
} from '../../../../packages/dataserver/src/state/keys.ts';
import { decodeRangeMeta } from '../../../../packages/dataserver/src/state/meta-codec.ts';
import type { MemoryMedium } from '../../../../packages/dataserver/src/testing/memory-store.ts';
import { decodeMasterImage } from '../../../../packages/master/src/metadata/metadata-codec.ts';

interface Known {
  readonly row: Uint8Array;
  readonly position: LogPosition;
}

const NOWHERE: LogPosition = { index: 0, term: 0 };

export class StoredPositions {
  readonly #medium: MemoryMedium;
  /** The last decoded value, by the name of its row. */
  readonly #known = new Map<string, Known>();

  constructor(medium: MemoryMedium) {
    this.#medium = medium;
  }

  of(groupId: number): LogPosition {
    if (groupId === MASTER_GROUP) {
      return this.#read(masterStateKey(groupId), (row) => decodeMasterImage(row).applied) ?? NOWHERE;
    }
    // While a snapshot replaces a replica's rows, its marker stands for their future state.
    return (
      this.#read(installKey(groupId), (row) => decodeMarker(row).applied) ??
      this.#read(stateKey(groupId), (row) => decodeRangeMeta(row).applied) ??
      NOWHERE
    );
  }

  /** Whether there is a replica of the group; that of the masters exists where the node is a master. */
  has(groupId: number): boolean {
    const rows = [installKey(groupId), stateKey(groupId)];
    return groupId === MASTER_GROUP || rows.some((key) => this.#medium.rows.has(nameOf(key)));
  }

  /** Whether a snapshot is replacing a replica's rows. */
  get installing(): boolean {
    const { start, end } = rangeOf(allInstallsSpan());
    const [first] = this.#medium.rows.keys(start);
    return first !== undefined && first < end;
  }

  #read(key: Uint8Array, decode: (row: Uint8Array) => LogPosition): LogPosition | undefined {
    const name = nameOf(key);
    const row = this.#medium.rows.get(name);
    if (row === undefined) return undefined;
    const known = this.#known.get(name);
    if (known?.row === row) return known.position;
    const value = openRow(key, asBuffer(row));
    assert(value !== undefined, 'what a medium holds is intact');
    const position = decode(value);
    this.#known.set(name, { row, position });
    return position;
  }
}

/** A group's replica on a node. */
export class StoredReplica {
  readonly replicaId: number;
  readonly #groupId: number;
  readonly #positions: StoredPositions;

  constructor(groupId: number, replicaId: number, positions: StoredPositions) {
    this.replicaId = replicaId;
    this.#groupId = groupId;
    this.#positions = positions;
  }

  /** Read from the medium, and far more rarely than the identity of the replica. */
  get applied(): LogPosition {
    return this.#positions.of(this.#groupId);
  }
}
