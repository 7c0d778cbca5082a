/**
 * Checks that replicas of a group at the same position of its log have the same state: everything that a master knows;
 * for a range every row, and every outcome that a retry may still ask for.
 *
 * State that replicas keep in their own way is not compared: the pages of outcomes, and older versions of compacted
 * keys, which each replica removes in its own time. At rest all have removed them, and everything is compared.
 *
 * The number of plain keys that a range counts is compared with its rows, unless the count is marked as an estimate
 * (dataserver/state/range-stats.ts LN3) or another range has the keys by now.
 */

import type { Engine, Row } from '@remora/base';
import { KV_SPACE } from '@remora/protocol';
import { MASTER_GROUP } from '@remora/raft';
import { parseHistoryKey } from '../../../../packages/dataserver/src/state/keys.ts';
import { valueOfRow } from '../../../../packages/dataserver/src/state/kv/record.ts';
import { encodeRangeMeta } from '../../../../packages/dataserver/src/state/meta-codec.ts';
import { encodeOutcomePage } from '../../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import type { RangeState } from '../../../../packages/dataserver/src/state/range-state.ts';
import type { MasterState } from '../../../../packages/master/src/metadata/master-state.ts';
import { encodeMasterImage } from '../../../../packages/master/src/metadata/metadata-codec.ts';
import { hashOfBytes } from '../../common/hash.ts';
import { Violation } from '../../common/violation.ts';

const HISTORY_SPACE = 4;

export interface Replica {
  readonly nodeId: number;
  readonly engine: Pick<Engine, 'view'>;
  readonly state: RangeState;
}

/** Represents a replica's state: text where it is short, so that a difference can be read, and a hash of the rows. */
export interface StateSum {
  readonly nodeId: number;
  readonly groupId: number;
  /** The position of the state; sums at different positions cannot be compared. */
  readonly position: string;
  readonly text: string;
  /** A false statement of the state about itself; empty: none. */
  readonly wrong: string;
}

/** Everything is read in the step of the call; the sum comes later, because rows are read from a disk. */
export async function sumOf({ nodeId, engine, state }: Replica, atRest: boolean): Promise<StateSum> {
  const { rangeId, bounds, applied, appliedAhead, revision, compactRevision, keys, bytes } = state;
  const { rangeTimeMs, wallMs } = state;
  const isExact = state.estimatedSince === 0 && state.merging.seal === undefined;
  // If the first command of an entry waits for a row from disk, the entry has only moved the times on so far.
  const times = `${rangeTimeMs} ms, wall ${wallMs}`;
  // A replica that has applied nothing is as it was created: with the membership of that time (store.ts T4).
  const created = applied.index === 0 ? `, of membership ${state.descriptor.epoch.confVersion}` : '';
  const position = `(${applied.index}, term ${applied.term}) and ${appliedAhead} more, at ${times}${created}`;
  let outcomes = 0;
  for (const entry of state.outcomes.askable(rangeTimeMs))
    outcomes = mix(outcomes, hashOfBytes(encodeOutcomePage([entry])));
  const meta = hashOfBytes(encodeRangeMeta(state));
  const text = `revision ${revision}, compacted to ${compactRevision}, ${keys} keys of ${bytes} bytes, meta ${meta}, outcomes ${outcomes}`;
  const view = engine.view();
  try {
    let rows = 0;
    let hash = 0;
    const live = { keys: 0, bytes: 0 };
    // Without the range's own rows: those differ between replicas.
    for (const span of [bounds.routed, ...(bounds.history === undefined ? [] : [bounds.history])]) {
      for await (const batch of view.scan(span)) {
        for (const row of batch) {
          if (!atRest && isClearedUp(row, compactRevision)) continue;
          rows++;
          if (row.key[0] === KV_SPACE) {
            live.keys++;
            live.bytes += row.key.length - 1 + valueOfRow(row.value).length;
          }
          hash = mix(mix(hash, hashOfBytes(row.key)), hashOfBytes(row.value));
        }
      }
    }
    const isRight = !isExact || (live.keys === keys && live.bytes === bytes);
    const wrong = isRight ? '' : `it counts ${keys} keys of ${bytes} bytes, and has ${live.keys} of ${live.bytes}`;
    return { nodeId, groupId: rangeId, position, text: `${text}, ${rows} rows ${hash}`, wrong };
  } finally {
    view.release();
  }
}

/** The sum of a master's state. */
export function masterSumOf(nodeId: number, state: MasterState): StateSum {
  const image = state.image();
  const { index, term } = image.applied;
  const text = `${image.nodes.length} nodes, ${image.ranges.length} ranges, all ${hashOfBytes(encodeMasterImage(image))}`;
  return { nodeId, groupId: MASTER_GROUP, position: `(${index}, term ${term})`, text, wrong: '' };
}

function isClearedUp({ key }: Row, compactRevision: number): boolean {
  return key[0] === HISTORY_SPACE && parseHistoryKey(key).revision <= compactRevision;
}

function mix(hash: number, value: number): number {
  return (Math.imul(hash ^ value, 0x01000193) ^ (hash >>> 15)) >>> 0;
}

/** The differences between replicas that should be at rest at the same position; empty if they agree. */
export function differences(sums: readonly StateSum[]): string {
  const first = new Map<number, StateSum>();
  for (const sum of sums) {
    const other = first.get(sum.groupId);
    if (other === undefined) first.set(sum.groupId, sum);
    else if (other.position !== sum.position || other.text !== sum.text) {
      return `group ${sum.groupId}: ${[other, sum].map(({ nodeId, position, text }) => `node ${nodeId} at ${position}: ${text}`).join(' / ')}`;
    }
  }
  const wrong = sums.find((sum) => sum.wrong !== '');
  if (wrong !== undefined) return `group ${wrong.groupId}: node ${wrong.nodeId} at ${wrong.position}: ${wrong.wrong}`;
  return first.size === 0 ? 'there is no range' : '';
}

/** Sums that were taken while the cluster works, by range and position. */
export class StateSums {
  readonly #known = new Map<string, StateSum>();
  /** Pairs that were compared. */
  compared = 0;

  add(sum: StateSum): void {
    const key = `${sum.groupId} ${sum.position}`;
    const known = this.#known.get(key) ?? sum;
    this.#known.set(key, known);
    if (known.nodeId !== sum.nodeId) this.compared++;
    if (known.text === sum.text) return isRight(sum);
    throw new Violation(
      'replicas agree',
      `group ${sum.groupId} at ${sum.position}: node ${known.nodeId} has ${known.text}; node ${sum.nodeId} has ${sum.text}`,
    );
  }
}

function isRight({ nodeId, groupId, position, wrong }: StateSum): void {
  if (wrong !== '')
    throw new Violation('keys are counted', `group ${groupId} at ${position}: node ${nodeId}: ${wrong}`);
}
