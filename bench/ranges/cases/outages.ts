/**
 * How long clients cannot write when the node goes that leads their range: by a planned stop (SIGTERM), killed (`kill
 * -9`), or frozen (SIGSTOP); and for how long the masters answer nobody when the node of their leader is killed.
 *
 * The first three: a cluster of one range, one client that writes keys of it. The last one (`master`): a cluster of
 * several ranges, all of whose writes are numbered by the masters. Keys are written in ranges that other nodes lead, so
 * that all that is missing to them are revisions; beside that the masters' leader is asked, through a gateway that
 * stays, for what needs no more than a leader (the cluster's settings; so do lookups of routes) and for what needs its
 * scheduling. What counts is the longest time between two successes. Each time begins when the node of the last one is
 * back.
 *
 * Settings: kinds=shutdown,kill,freeze,master  times=11 (of each kind)  ranges=8 (in the last kind)  writers=4
 * every=4 (ms from the beginning of a writer's put to that of its next, or until it has ended)
 */
import { connect } from 'remora';
import { AdminClient } from 'remora/admin';
import { eventually, pause } from '../../../test/e2e/eventually.ts';
import { median } from '../../../test/support/quantile.ts';
import { type CaseBar, type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, leads, setting, withBed } from '../bed.ts';
import { Prober } from '../prober.ts';
import { Writers } from '../writers.ts';

const KINDS = ['shutdown', 'kill', 'freeze', 'master'] as const;
type Kind = (typeof KINDS)[number];

/** What the project asks for, in the median. */
const OUTAGE_MS_MAX: Readonly<Record<Kind, number>> = { shutdown: 50, kill: 400, freeze: 600, master: 400 };
const FIRST_RANGE = 2;
/** Time for what was just started to come to rest. */
const SETTLE_MS = 2_000;
/** From the signal on; a node is frozen for as long. */
const WATCHED_MS = 2_500;

interface Outage {
  readonly kind: Kind;
  /** What could not be done, and for how long. */
  readonly longestMs: Readonly<Record<string, number>>;
  /** Of writes, by the code of the error. */
  readonly failures: Readonly<Record<string, number>>;
}

export const SETTINGS = ['kinds', 'times', 'ranges', 'writers', 'every'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const wanted = wordsOf(context, 'kinds', KINDS);
  const outages: Outage[] = [];
  const ofOneRange = wanted.filter((kind) => kind !== 'master');
  if (ofOneRange.length > 0) outages.push(...(await withBed({}, (bed) => measureAll(context, bed, ofOneRange))));
  if (wanted.includes('master')) {
    const flags = { 'pre-split-count': String(setting(context, 'ranges', 8)) };
    outages.push(...(await withBed({ flags }, (bed) => measureAll(context, bed, ['master']))));
  }
  return { data: outages, text: render(outages), bars: bars(outages) };
}

async function measureAll(context: CaseContext, bed: Bed, kinds: readonly Kind[]): Promise<readonly Outage[]> {
  const outages: Outage[] = [];
  for (let i = 0; i < setting(context, 'times', 11); i++) {
    for (const kind of kinds) {
      const outage = kind === 'master' ? await withoutMaster(context, bed) : await withoutLeader(context, bed, kind);
      context.progress(`${i + 1}: ${JSON.stringify(outage)}`);
      outages.push(outage);
    }
  }
  return outages;
}

/** A client of its own each time: it begins with no preference. */
async function withoutLeader(context: CaseContext, { cluster }: Bed, kind: Kind): Promise<Outage> {
  await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '30s' });
  const keys = Array.from({ length: setting(context, 'writers', 4) }, (_, i) => `writer/${i}`);
  const load = new Writers(client, keys, setting(context, 'every', 4));
  await pause(SETTLE_MS);
  const leader = await cluster.leader();
  const fromMs = performance.now();
  cluster.kill(leader, kind === 'shutdown' ? 'SIGTERM' : kind === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  await pause(WATCHED_MS);
  const writes = load.longestGap({ fromMs, toMs: performance.now() });
  await load.stop();
  if (kind === 'freeze') cluster.kill(leader, 'SIGCONT');
  else await cluster.restart(leader);
  await cluster.untilReady();
  return { kind, longestMs: { writes }, failures: load.failures };
}

async function withoutMaster(context: CaseContext, { cluster, admin }: Bed): Promise<Outage> {
  const { masterLeader } = await eventually('the masters have a leader', () => admin.nodes());
  const endpoints = cluster.endpoints.filter((_, i) => i + 1 !== masterLeader);
  await using client = await connect({ endpoints, requestTimeout: '30s' });
  const asked = new AdminClient({ endpoints, timeoutMs: 10_000, connectTimeoutMs: 1_000 });
  const everyMs = setting(context, 'every', 4);
  const keys = await keysElsewhere(context, cluster, masterLeader);
  const load = new Writers(client, keys, everyMs);
  const lookups = new Prober(() => asked.settings(), everyMs);
  const scheduling = new Prober(() => asked.schedulers(), everyMs);
  await pause(SETTLE_MS);
  const fromMs = performance.now();
  cluster.kill(masterLeader, 'SIGKILL');
  await pause(WATCHED_MS);
  const during = { fromMs, toMs: performance.now() };
  await Promise.all([load, lookups, scheduling].map((each) => each.stop()));
  asked.close();
  await cluster.restart(masterLeader);
  await cluster.untilReady();
  const longestMs = {
    ...(keys.length > 0 && { revisions: load.longestGap(during) }), // none when that node leads all ranges
    lookups: lookups.longestGap(during),
    scheduling: scheduling.longestGap(during),
  };
  return { kind: 'master', longestMs, failures: load.failures };
}

/** A key of each range that the node does not lead, for as many writers as there are to be. */
async function keysElsewhere(context: CaseContext, cluster: Bed['cluster'], node: number): Promise<readonly Buffer[]> {
  const ranges = setting(context, 'ranges', 8);
  const keys: Buffer[] = [];
  for (let i = 0; i < ranges && keys.length < setting(context, 'writers', 4); i++) {
    if (await leads(cluster, node, FIRST_RANGE + i)) continue;
    const key = Buffer.alloc(4);
    key.writeUInt16BE(Math.ceil((i * 0x1_0000) / ranges));
    keys.push(key);
  }
  return keys;
}

function render(outages: readonly Outage[]): string {
  const rows = measuresOf(outages).map(({ kind, what, all }) => [
    kind,
    what,
    String(all.length),
    ...[median(all), Math.min(...all), Math.max(...all)].map((ms) => ms.toFixed(0)),
    String(failuresOf(outages.filter((one) => one.kind === kind))),
  ]);
  return table(['outage', 'of', 'times', 'median ms', 'least', 'most', 'failed writes'], rows);
}

function failuresOf(outages: readonly Outage[]): number {
  return outages.flatMap(({ failures }) => Object.values(failures)).reduce((sum, count) => sum + count, 0);
}

function measuresOf(outages: readonly Outage[]) {
  return KINDS.flatMap((kind) => {
    const some = outages.filter((one) => one.kind === kind);
    const measured = new Set(some.flatMap(({ longestMs }) => Object.keys(longestMs)));
    return [...measured].map((what) => ({ kind, what, all: some.flatMap(({ longestMs }) => longestMs[what] ?? []) }));
  });
}

function bars(outages: readonly Outage[]): readonly CaseBar[] {
  return measuresOf(outages).map(({ kind, what, all }) => {
    const value = median(all);
    const most = OUTAGE_MS_MAX[kind];
    return {
      text: `outage of ${what} (${kind}): ${most} ms at most, in the median`,
      value,
      unit: ' ms',
      met: value <= most,
    };
  });
}
