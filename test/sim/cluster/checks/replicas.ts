/** Whether all replicas of a range hold the same, once nothing changes any more. */
import { hashOfBytes } from '../../common/hash.ts';
import type { World } from '../world.ts';

/** Leases and locks, which are always in memory. */
const RESIDENT = { start: Buffer.from([1]), end: Buffer.from([3]) };

/** What they differ in; empty when they agree. */
export function differences(world: World): string {
  const states = new Map<number, string>();
  for (const node of world.nodes) {
    for (const replica of node.roles?.store?.replicas() ?? []) {
      const { state, rangeId } = replica;
      const rows = node.roles?.engine.scanResident(RESIDENT) ?? [];
      const sums = rows.map(({ key, value }) => hashOfBytes(key) ^ Math.imul(hashOfBytes(value), 31));
      const hash = sums.reduce((sum, one) => (Math.imul(sum, 33) ^ one) >>> 0, rows.length);
      const text = `revision ${state.revision}, ${state.keys} keys of ${state.bytes} bytes, at ${JSON.stringify(state.applied)}, rows ${hash}`;
      const other = states.get(rangeId);
      if (other === undefined) states.set(rangeId, text);
      else if (other !== text) return `range ${rangeId}: ${other} / node ${node.id}: ${text}`;
    }
  }
  return states.size === 0 ? 'there is no range' : '';
}
