/**
 * How precisely locks of a dead holder are granted onward. A process holds a lock in each of its sessions, another one
 * waits for all of them; the first is killed. What counts is the time from the last heartbeat of a session that was
 * acknowledged, as its holder knew it, to the grant, less the session's TTL. With `leader` the node that leads is
 * killed at the same moment: its successor gives every session a full TTL again.
 *
 * Settings: kinds=holder,leader  ttls=2000,5000 (ms)  sessions=20  times=3 (of each kind and TTL)
 */
import { connect, type HeldLock, type RemoraClient } from 'remora';
import { eventually } from '../../../test/e2e/eventually.ts';
import { type Cluster, withCluster } from '../../../test/e2e/harness.ts';
import { median } from '../../../test/support/quantile.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf, wordsOf } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';
import { lockName, startHolders } from '../holders.ts';

const KINDS = ['holder', 'leader'] as const;
type Kind = (typeof KINDS)[number];

const LATE_MS_MAX = 500;

interface Deaths {
  readonly kind: Kind;
  readonly ttlMs: number;
  /** From the end of each session's TTL to the grant; below 0 it was freed too early. */
  readonly lateMs: readonly number[];
}

export const SETTINGS = ['kinds', 'ttls', 'sessions', 'times'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured = await withCluster({}, async (cluster) => {
    const all: Deaths[] = [];
    for (const kind of wordsOf(context, 'kinds', KINDS)) {
      for (const ttlMs of numbersOf(context, 'ttls', [2_000, 5_000])) {
        const lateMs: number[] = [];
        for (let i = 0; i < setting(context, 'times', 3); i++)
          lateMs.push(...(await measureDeath(context, cluster, { kind, ttlMs })));
        all.push({ kind, ttlMs, lateMs });
      }
    }
    return all;
  });
  return { data: measured, text: render(measured), bars: measured.flatMap(bars) };
}

async function measureDeath(
  context: CaseContext,
  cluster: Cluster,
  { kind, ttlMs }: { readonly kind: Kind; readonly ttlMs: number },
): Promise<readonly number[]> {
  const sessions = setting(context, 'sessions', 20);
  const { endpoints } = cluster;
  const holders = await startHolders({ endpoints, sessions, ttlMs, locks: 1, waiters: 0 }, context.dir);
  await using client = await connect({ endpoints, requestTimeout: '30s' });
  const names = Array.from({ length: sessions }, (_, i) => lockName(i, 0));
  const grants = names.map((name) => grantOf(client, name));
  await eventually('all wait', async () => {
    const shown = await Promise.all(names.map((name) => client.locks.show(name)));
    return shown.every((state) => state?.waiterCount === 1);
  });
  const leader = await cluster.leader();
  holders.send({ type: 'ages' });
  const { agesMs } = await holders.message('ages');
  const diedMs = performance.now();
  holders.signal('SIGKILL');
  if (kind === 'leader') cluster.kill(leader, 'SIGKILL');
  const granted = await Promise.all(grants);
  const lateMs = granted.map(({ atMs }, i) => atMs - (diedMs - ((agesMs as readonly number[])[i] ?? 0)) - ttlMs);
  await Promise.all(granted.map(({ held }) => held.release()));
  if (kind === 'leader') await cluster.restart(leader);
  context.progress(`${kind}, TTL ${ttlMs} ms: ${lateMs.map((ms) => ms.toFixed(0)).join(' ')} ms late`);
  return lateMs;
}

async function grantOf(
  client: RemoraClient,
  name: string,
): Promise<{ readonly held: HeldLock; readonly atMs: number }> {
  const held = await client.lock(name).acquire();
  return { held, atMs: performance.now() };
}

function render(measured: readonly Deaths[]): string {
  const rows = measured.map(({ kind, ttlMs, lateMs }) => [
    kind,
    String(ttlMs),
    String(lateMs.length),
    ...[Math.min(...lateMs), median(lateMs), Math.max(...lateMs)].map((ms) => ms.toFixed(0)),
  ]);
  return table(['killed', 'TTL ms', 'grants', 'least ms late', 'median', 'most'], rows);
}

function bars({ kind, ttlMs, lateMs }: Deaths): readonly CaseBar[] {
  const [least, most] = [Math.min(...lateMs), Math.max(...lateMs)];
  const allowedMs = kind === 'leader' ? ttlMs + LATE_MS_MAX : LATE_MS_MAX;
  const what = `a dead holder's lock, ${kind} killed, TTL ${ttlMs} ms`;
  return [
    { text: `${what}: never granted before its TTL is over`, value: least, unit: ' ms late', met: least >= 0 },
    { text: `${what}: granted ${allowedMs} ms later at most`, value: most, unit: ' ms late', met: most <= allowedMs },
  ];
}
