/**
 * Two clusters that differ in one thing: how many ranges they have. What they answer must be the same, but for gaps
 * between revisions; so revisions are compared by their order.
 */
import { Cluster } from '../harness.ts';

export interface Twins {
  readonly one: Cluster;
  readonly many: Cluster;
  stop(): Promise<void>;
}

/** `borders`: plain keys at which ranges of the second cluster begin, as text. */
export async function startTwins(borders: readonly string[]): Promise<Twins> {
  const [one, many] = await Promise.all([
    Cluster.start({ nodes: 1 }),
    Cluster.start({ nodes: 1, flags: { 'pre-split': borders.join(',') } }),
  ]);
  return { one, many, stop: async () => void (await Promise.all([one.stop(), many.stop()])) };
}

/** Fields that hold revisions, in both spellings of etcd's messages as JSON. */
const REVISIONS: ReadonlySet<string> = new Set([
  ...['createRevision', 'modRevision', 'revision'],
  ...['create_revision', 'mod_revision', 'compact_revision'],
]);

/** The same with each revision replaced by its place among all of them. */
export function ranked(told: unknown): unknown {
  const seen = new Set<number>();
  walk(told, (revision) => {
    seen.add(revision);
    return revision;
  });
  const places = new Map([...seen].sort((a, b) => a - b).map((revision, place) => [revision, place]));
  return walk(told, (revision) => `#${places.get(revision)}`);
}

function walk(value: unknown, each: (revision: number) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => walk(item, each));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [
    name,
    REVISIONS.has(name) && typeof field === 'number' ? each(field) : walk(field, each),
  ]);
  return Object.fromEntries(entries);
}
