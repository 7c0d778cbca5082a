import { compareBytes } from '@remora/base';
import type { KvPair } from 'remora';

/** What changed between two revisions, in the order of the keys. A group has one kind of change. */
export type ChangeGroup =
  | { readonly type: 'pairs'; readonly pairs: readonly KvPair[] }
  | { readonly type: 'deleted'; readonly keys: readonly Buffer[] };

type Change = { readonly pair: KvPair; readonly deleted: boolean };

/** A group has at most so many keys, or one pair above so many bytes. */
const GROUP_KEYS = 1_000;
const GROUP_BYTES = 512 * 1024;

/**
 * Compares the pairs of an older revision with those of a newer one, both in the order of their keys, and returns what
 * changed. A pair is unchanged if it has the same mod revision.
 */
export async function* changesBetween(
  before: AsyncGenerator<KvPair, undefined>,
  now: AsyncGenerator<KvPair, undefined>,
): AsyncGenerator<ChangeGroup> {
  let group: Change[] = [];
  let bytes = 0;
  for await (const change of changes(before, now)) {
    const [first] = group;
    const full = group.length >= GROUP_KEYS || bytes >= GROUP_BYTES;
    if (first !== undefined && (full || first.deleted !== change.deleted)) {
      yield groupOf(group);
      [group, bytes] = [[], 0];
    }
    group.push(change);
    bytes += change.pair.key.length + (change.deleted ? 0 : change.pair.value.length);
  }
  if (group.length > 0) yield groupOf(group);
}

async function* changes(
  before: AsyncGenerator<KvPair, undefined>,
  now: AsyncGenerator<KvPair, undefined>,
): AsyncGenerator<Change> {
  let [old, current] = [await before.next(), await now.next()];
  while (!old.done || !current.done) {
    const order = old.done ? 1 : current.done ? -1 : compareBytes(old.value.key, current.value.key);
    if (order < 0 && !old.done) yield { pair: old.value, deleted: true };
    if (order >= 0 && !current.done) {
      const same = order === 0 && !old.done && old.value.modRevision === current.value.modRevision;
      if (!same) yield { pair: current.value, deleted: false };
    }
    if (order <= 0) old = await before.next();
    if (order >= 0) current = await now.next();
  }
}

function groupOf(group: readonly Change[]): ChangeGroup {
  const pairs = group.map(({ pair }) => pair);
  return group[0]?.deleted === true ? { type: 'deleted', keys: pairs.map(({ key }) => key) } : { type: 'pairs', pairs };
}
