/** What the cases have in common: systems to load by turns, and what came of the loads. */
import { BareSystem } from '../bare-system.ts';
import { measureRun, type RunResult } from '../measure.ts';
import type { CaseBar, CaseContext } from '../raft/case.ts';
import { RedisSystem } from '../redis-system.ts';
import { type LoadReport, type Summary, summaryOf } from '../report.ts';
import { secureRemora } from '../secure-remora.ts';
import { etcd, remora } from '../servers.ts';
import type { LoadSpec, Role, System } from '../system.ts';

export interface Measured {
  readonly system: string;
  readonly inflight: number;
  readonly summary: Summary;
  /** Of all servers together, and per operation. */
  readonly serverMicrosPerOp: number;
  readonly runs: readonly RunResult[];
}

/** Runs `use` with the product and those of the peers that the case can do with. */
export async function withSystems<T>(
  context: CaseContext,
  able: readonly string[],
  use: (systems: readonly System[]) => Promise<T>,
): Promise<T> {
  const systems = systemsOf(context, able);
  try {
    for (const system of systems) {
      context.progress(`starting ${system.name} ...`);
      await system.start();
    }
    return await use(systems);
  } finally {
    await Promise.all(systems.map((system) => system.stop()));
  }
}

function systemsOf({ root, dir, peers, baseline, profileDir }: CaseContext, able: readonly string[]): System[] {
  const settings = { dir, entry: 'leader', profileDir } as const;
  const systems: System[] = [remora({ name: 'remora', root, ...settings })];
  if (baseline !== undefined) systems.push(remora({ name: 'baseline', root: baseline, ...settings }));
  for (const peer of peers) {
    if (!able.includes(peer)) continue;
    if (peer === 'etcd') systems.push(etcd({ root, dir, entry: 'leader' }));
    if (peer === 'bare') systems.push(new BareSystem({ root, dir, profileDir }));
    if (peer === 'secure') systems.push(secureRemora({ name: 'secure', root, ...settings }));
    if (peer === 'redis' || peer === 'redlock') systems.push(new RedisSystem(peer, { root, dir }));
  }
  return systems;
}

type Load = Omit<LoadSpec, 'seconds'>;

/**
 * Loads all systems by turns, as often as asked for and once more: the first run of each, while V8 compiles, does not
 * count. `loadOf`: what each is loaded with, or all of them.
 */
export async function measureByTurns(
  context: CaseContext,
  systems: readonly System[],
  loadOf: Load | ((system: System) => Load),
): Promise<readonly Measured[]> {
  const { runs, seconds, dir } = context;
  const all = systems.map((system) => {
    const load = typeof loadOf === 'function' ? loadOf(system) : loadOf;
    return { system, load, done: [] as RunResult[] };
  });
  for (let run = 0; run <= runs; run++) {
    for (const { system, load, done } of all) {
      const result = await measureRun(system, { ...load, seconds }, dir);
      if (run > 0) done.push(result);
    }
  }
  return all.map(({ system: { name }, load, done }) => {
    const measured = described(name, load.inflight, done);
    const { opsPerSecond, p50Ms } = measured.summary;
    context.progress(`${name} × ${load.inflight}: ${opsPerSecond.toFixed(0)}/s, p50 ${p50Ms.toFixed(2)} ms`);
    return measured;
  });
}

function described(system: string, inflight: number, runs: readonly RunResult[]): Measured {
  const report: LoadReport = { case: 'lock', inflight, system, runs };
  const summary = summaryOf(report);
  const servers: readonly Role[] = ['leader', 'entry', 'follower'];
  const counts = runs[0]?.processes ?? [];
  const serverMicrosPerOp = summary.cpuMicrosPerOp
    .filter(({ role }) => servers.includes(role))
    .reduce((sum, { role, micros }) => sum + micros * counts.filter((each) => each.role === role).length, 0);
  return { system, inflight, summary, serverMicrosPerOp, runs };
}

export function cells({ system, inflight, summary, serverMicrosPerOp, runs }: Measured): readonly string[] {
  const { opsPerSecond, p50Ms, p99Ms, errors, cpuMicrosPerOp } = summary;
  const cpu = cpuMicrosPerOp.map(({ role, micros }) => `${role} ${micros.toFixed(1)}`).join('  ');
  const failures = errors === 0 ? '' : `  ${errors} errors: ${runs.find((run) => run.firstError)?.firstError}`;
  const figures = [opsPerSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), serverMicrosPerOp.toFixed(1)];
  return [String(inflight), system, ...figures, cpu + failures];
}

export const HEAD = [
  'in flight',
  'system',
  'ops/s',
  'p50 ms',
  'p99 ms',
  'servers µs per op',
  'CPU µs per op and process',
];

/** What a system of this name did at this level. */
export function found(measured: readonly Measured[], system: string, inflight: number): Measured | undefined {
  return measured.find((each) => each.system === system && each.inflight === inflight);
}

/**
 * A bar about operations per second in proportion to a peer's; none when one of the two was not measured, or did
 * nothing.
 */
export function throughputBar(
  measured: readonly Measured[],
  {
    subject = 'remora',
    peer,
    inflight,
    least,
    what,
  }: { subject?: string; peer: string; inflight: number; least: number; what: string },
): readonly CaseBar[] {
  const [own, theirs] = [found(measured, subject, inflight), found(measured, peer, inflight)];
  if (own === undefined || theirs === undefined || theirs.summary.opsPerSecond === 0) return [];
  const value = own.summary.opsPerSecond / theirs.summary.opsPerSecond;
  const text = `${what}, ${inflight} in flight: at least ${least} of ${peer}`;
  return [{ text, value, unit: '×', met: value >= least }];
}
