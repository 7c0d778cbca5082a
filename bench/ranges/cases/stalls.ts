/**
 * Which work holds the event loop of a node, and for how long.
 *
 * The loads run one after the other on a cluster of three nodes: puts, lists of many keys, watches that catch up,
 * splits and merges, scrapes of the metrics, the end of a lease with many keys, the end of a session with many locks,
 * a compaction, and a snapshot for a node that gets a replica. Checkpoints run meanwhile. The long sections of work
 * (5 ms or more, without garbage collection) are read from the metrics of the nodes after each load. Each load names
 * its own longest section: exactly if no earlier load had a longer one, otherwise by the bucket of the histogram. The
 * times include those for which the machine ran other processes: only an idle machine shows what the work itself takes.
 *
 * Settings: rows=100000 (keys of the lease, and locks of the session, that end)  mib=32 (in the cluster before)
 * loads=… (some of them)
 */
import { join } from 'node:path';
import { kvRoutingKey } from '@remora/protocol';
import { pause } from '../../../test/e2e/eventually.ts';
import { startHolders } from '../../locks/holders.ts';
import { type CaseBar, type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, changeRange, fill, setting, withBed } from '../bed.ts';
import { Writers } from '../writers.ts';

const LOADS = [
  'puts',
  'lists',
  'watches',
  'changes',
  'scrapes',
  'leaseEnd',
  'sessionEnd',
  'compaction',
  'snapshot',
] as const;
type Load = (typeof LOADS)[number];

export const SETTINGS = ['rows', 'mib', 'loads'];

/** What the project asks for. */
const SECTION_MS_MAX = 20;
const AT_ONCE = 128;
const TTL_MS = 10_000;
/** Longer than a checkpoint waits, and than the metrics lag behind. */
const AFTER_MS = 4_000;
const WATCHES = 16;
const MIDDLE = kvRoutingKey(Buffer.from('n'));

interface Section {
  readonly load: Load;
  readonly name: string;
  readonly count: number;
  /** Sections above SECTION_MS_MAX. */
  readonly tooLong: number;
  /** The longest one took more than `aboveMs`, and at most `longestMs`; both are the same if it is known exactly. */
  readonly aboveMs: number;
  readonly longestMs: number;
}

interface Loaded extends Bed {
  readonly rows: number;
  readonly dir: string;
}

export async function run(context: CaseContext): Promise<CaseResult> {
  const loads = wordsOf(context, 'loads', LOADS);
  const sections = await withBed({ flags: { 'auto-split': 'false' } }, async (bed) => {
    const loaded = { ...bed, rows: setting(context, 'rows', 100_000), dir: join(context.dir, 'holders') };
    await fill(bed.client, setting(context, 'mib', 32), (n) => `${n % 2 === 0 ? 'a' : 'n'}/fill/${n}`);
    const found: Section[] = [];
    await pause(AFTER_MS);
    let before = await sectionsOf(bed);
    for (const load of loads) {
      await carryOut(load, loaded);
      await pause(AFTER_MS);
      const after = await sectionsOf(bed);
      found.push(...grown(load, before, after));
      before = after;
      context.progress(`${load}: ${JSON.stringify(found.filter((one) => one.load === load))}`);
    }
    return found;
  });
  return { data: sections, text: render(sections), bars: bars(sections) };
}

function carryOut(load: Load, loaded: Loaded): Promise<void> {
  switch (load) {
    case 'puts':
      return puts(loaded);
    case 'lists':
      return lists(loaded);
    case 'watches':
      return watches(loaded);
    case 'changes':
      return changes(loaded);
    case 'scrapes':
      return scrapes(loaded);
    case 'leaseEnd':
      return leaseEnd(loaded);
    case 'sessionEnd':
      return sessionEnd(loaded);
    case 'compaction':
      return compaction(loaded);
    case 'snapshot':
      return snapshot(loaded);
  }
}

async function puts({ client }: Loaded): Promise<void> {
  const load = new Writers(
    client,
    Array.from({ length: AT_ONCE }, (_, i) => `a/put/${i}`),
  );
  await pause(2 * AFTER_MS);
  await load.stop();
}

async function lists({ client }: Loaded): Promise<void> {
  for (let i = 0; i < 5; i++) for (const prefix of ['a/', 'n/']) await client.kv.range({ prefix });
}

/** Watches that begin in the past read all that was written since. */
async function watches({ client }: Loaded): Promise<void> {
  const open = Array.from({ length: WATCHES }, () => client.kv.watch({ prefix: 'n/' }, { startRevision: 1 }));
  const reading = open.map(async (watch) => {
    for await (const _ of watch);
  });
  await pause(2 * AFTER_MS);
  await Promise.all(open.map((watch) => watch.close()));
  await Promise.allSettled(reading);
}

async function changes({ admin }: Loaded): Promise<void> {
  const ids = async () => (await admin.ranges({ pageSize: 2 }).page()).items.map(({ id }) => id);
  for (let i = 0; i < 3; i++) {
    const [first = 0] = await ids();
    await changeRange(admin, first, { $case: 'split', value: { at: MIDDLE } });
    const [, second = 0] = await ids();
    await changeRange(admin, first, { $case: 'merge', value: { source: BigInt(second) } });
  }
}

async function scrapes({ cluster }: Loaded): Promise<void> {
  for (let i = 0; i < 20; i++) for (const node of cluster.nodes) await node.metrics('remora_range_leader');
}

async function leaseEnd({ client, rows }: Loaded): Promise<void> {
  const { id: lease } = await client.lease.grant('10m');
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < rows) await client.kv.put(`a/leased/${next++}`, 'x', { lease });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await client.lease.revoke(lease);
  await pause(AFTER_MS);
}

async function sessionEnd({ cluster, rows, dir }: Loaded): Promise<void> {
  const { endpoints } = cluster;
  const holders = await startHolders({ endpoints, sessions: 1, ttlMs: TTL_MS, locks: rows, waiters: 0 }, dir);
  holders.signal('SIGKILL');
  await holders.exit;
  await pause(TTL_MS + 2 * AFTER_MS);
}

async function compaction({ client }: Loaded): Promise<void> {
  const { revision } = await client.kv.put('a/last', 'x');
  await client.kv.compact(revision);
  await pause(AFTER_MS);
}

/** A replica moves to a node that has none, which gets a snapshot. */
async function snapshot({ admin, cluster }: Loaded): Promise<void> {
  const fourth = await cluster.addJoining({ roles: 'data' });
  fourth.start();
  await fourth.untilReady();
  const [id = 0] = (await admin.ranges({ pageSize: 1 }).page()).items.map((range) => range.id);
  const { leaderNode, replicas } = await admin.range(id);
  const { nodes } = await admin.nodes();
  const to = nodes.find(({ id }) => replicas.every(({ nodeId }) => nodeId !== id))?.id;
  const from = replicas.find(({ nodeId }) => nodeId !== leaderNode)?.nodeId;
  if (from === undefined || to === undefined) throw new Error('there is a node without a replica');
  await changeRange(admin, id, { $case: 'move', value: { fromNode: BigInt(from), toNode: BigInt(to) } });
}

/** What the nodes have counted since they started; the sum and the maximum over all of them. */
interface Counted {
  /** By the upper bound of the bucket, ascending: how many sections took at most so many milliseconds. */
  readonly within: Map<number, number>;
  longestMs: number;
}

type Known = ReadonlyMap<string, Counted>;

/** By the name of the section. */
async function sectionsOf({ cluster }: Bed): Promise<Known> {
  const known = new Map<string, Counted>();
  for (const node of cluster.nodes) {
    const longest = await node.metrics('remora_loop_section_longest_seconds');
    for (const [labels, count] of await node.metrics('remora_loop_section_seconds_bucket')) {
      const name = label(labels, 'section');
      const one = known.get(name) ?? { within: new Map(), longestMs: 0 };
      const bound = label(labels, 'le');
      const boundMs = bound === '+Inf' ? Number.POSITIVE_INFINITY : Math.round(1_000 * Number(bound));
      one.within.set(boundMs, (one.within.get(boundMs) ?? 0) + count);
      one.longestMs = Math.max(one.longestMs, 1_000 * (longest.get(`section="${name}"`) ?? 0));
      known.set(name, one);
    }
  }
  return known;
}

function label(labels: string, name: string): string {
  const value = new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1];
  if (value === undefined) throw new Error(`the metric has no label ${name}: ${labels}`);
  return value;
}

function grown(load: Load, before: Known, after: Known): readonly Section[] {
  return [...after].flatMap(([name, { within, longestMs }]) => {
    const earlier = before.get(name);
    const more = [...within].map(([boundMs, count]) => [boundMs, count - (earlier?.within.get(boundMs) ?? 0)] as const);
    const count = Math.max(...more.map(([, upTo]) => upTo));
    if (count === 0) return [];
    const tooLong = count - (more.find(([boundMs]) => boundMs === SECTION_MS_MAX)?.[1] ?? 0);
    return [
      { load, name, count, tooLong, ...longestOf(more, count, { longestMs, earlierMs: earlier?.longestMs ?? 0 }) },
    ];
  });
}

function longestOf(
  more: readonly (readonly [number, number])[],
  count: number,
  { longestMs, earlierMs }: { readonly longestMs: number; readonly earlierMs: number },
): Pick<Section, 'aboveMs' | 'longestMs'> {
  if (longestMs > earlierMs) return { aboveMs: longestMs, longestMs };
  const at = more.findIndex(([, upTo]) => upTo === count);
  return { aboveMs: more[at - 1]?.[0] ?? 0, longestMs: Math.min(more[at]?.[0] ?? longestMs, longestMs) };
}

function render(sections: readonly Section[]): string {
  const rows = sections.map(({ load, name, count, tooLong, aboveMs, longestMs }) => [
    ...[load, name, String(count), String(tooLong)],
    aboveMs === longestMs ? longestMs.toFixed(1) : `${aboveMs.toFixed(0)} to ${longestMs.toFixed(0)}`,
  ]);
  return table(['load', 'section', 'of 5 ms or more', `above ${SECTION_MS_MAX} ms`, 'longest, ms'], rows);
}

function bars(sections: readonly Section[]): readonly CaseBar[] {
  const value = Math.max(0, ...sections.map(({ longestMs }) => longestMs));
  const text = `no section of work holds the event loop for more than ${SECTION_MS_MAX} ms`;
  return [{ text, value, unit: ' ms', met: value <= SECTION_MS_MAX }];
}
