/** One run of one load against one system, with the CPU time of every process that takes part. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Child } from '../test/support/child.ts';
import type { LoadResult } from './load-spec.ts';
import { cpuMicros, pssBytes } from './proc.ts';
import type { Killable, LoadSpec, Role, ServerProcess, System } from './system.ts';

export interface RunResult extends LoadResult {
  /** CPU time per operation. */
  readonly processes: readonly { readonly role: Role; readonly cpuMicrosPerOp: number }[];
}

export interface IdleResult {
  /** Of one core, in per cent, all processes together. */
  readonly cpuPercent: number;
  readonly pssBytes: number;
}

/** Time for what was just started or repaired to come to rest. */
const SETTLE_MS = 3_000;
const OUTAGE_BEFORE_KILL_MS = 1_000;
const OUTAGE_SECONDS = 6;

/** `processes` clients at a time, each with `spec.inflight` operations in flight. */
export async function measureRun(system: System, spec: LoadSpec, dir: string, processes = 1): Promise<RunResult> {
  const servers = await system.processes(spec.workload);
  const loads: Child[] = [];
  for (let i = 0; i < processes; i++) {
    loads.push(await startLoad(system, { ...spec, firstWorker: i * spec.inflight }, dir, i));
  }
  return measureLoads(loads, servers);
}

/** The result of a load process that was just started, and what it cost everywhere. */
export function measureLoad(load: Child, servers: readonly ServerProcess[]): Promise<RunResult> {
  return measureLoads([load], servers);
}

async function measureLoads(loads: readonly Child[], servers: readonly ServerProcess[]): Promise<RunResult> {
  try {
    // A load process exits soon after it has reported: each is read when its own measurement begins and ends.
    let before: readonly number[] = [];
    const spans = loads.map(async (load) => {
      await load.message('measuring');
      before = servers.map(({ pid }) => cpuMicros(pid));
      const begun = cpuMicros(load.pid);
      await load.message('measured');
      return cpuMicros(load.pid) - begun;
    });
    // Client processes count as one: the report takes the mean of the processes of a role.
    const clients = (await Promise.all(spans)).reduce((sum, micros) => sum + micros, 0);
    const used = servers.map(({ pid }, i) => cpuMicros(pid) - (before[i] ?? 0));
    const result = together(await Promise.all(loads.map(resultOf)));
    const all = [
      { role: 'client' as const, micros: clients },
      ...servers.map(({ role }, i) => ({ role, micros: used[i] ?? 0 })),
    ];
    const processes = all.map(({ role, micros }) => ({ role, cpuMicrosPerOp: micros / Math.max(1, result.ops) }));
    await Promise.all(loads.map((load) => load.exit));
    return { ...result, processes };
  } finally {
    await Promise.all(loads.map((load) => load.stop()));
  }
}

/** Rates and counts are summed; each latency is the highest of any process. */
function together(results: readonly LoadResult[]): LoadResult {
  const [first] = results;
  if (first !== undefined && results.length === 1) return first;
  const sum = (pick: (result: LoadResult) => number): number => results.reduce((all, each) => all + pick(each), 0);
  const highest = (pick: (result: LoadResult) => number): number => Math.max(...results.map(pick));
  const firstError = results.find((result) => result.firstError !== undefined)?.firstError;
  return {
    ops: sum(({ ops }) => ops),
    opsPerSecond: sum(({ opsPerSecond }) => opsPerSecond),
    p50Ms: highest(({ p50Ms }) => p50Ms),
    p99Ms: highest(({ p99Ms }) => p99Ms),
    errors: sum(({ errors }) => errors),
    ...(firstError === undefined ? {} : { firstError }),
  };
}

/** How long a continuous writer cannot write when the leader is killed. */
export async function measureOutage(system: Killable, dir: string): Promise<number> {
  const load = await startLoad(system, { workload: 'writer', inflight: 1, seconds: OUTAGE_SECONDS }, dir);
  try {
    await load.message('measuring');
    await pause(OUTAGE_BEFORE_KILL_MS);
    await system.killLeader();
    const { longestGapMs } = await resultOf(load);
    await load.exit;
    return longestGapMs ?? 0;
  } finally {
    await load.stop();
    await system.repair();
    await pause(SETTLE_MS);
  }
}

/** What systems take that nobody uses, measured at the same time: a list of runs for each of them. */
export async function measureIdle(
  systems: readonly System[],
  { runs, seconds }: { readonly runs: number; readonly seconds: number },
): Promise<readonly (readonly IdleResult[])[]> {
  await pause(SETTLE_MS);
  const servers = await Promise.all(systems.map((system) => system.processes()));
  const results: IdleResult[][] = systems.map(() => []);
  for (let run = 0; run < runs; run++) {
    const begunMs = performance.now();
    const before = servers.map(cpuOfAll);
    await pause(seconds * 1_000);
    const elapsedMicros = (performance.now() - begunMs) * 1_000;
    for (const [i, each] of servers.entries()) {
      results[i]?.push({
        cpuPercent: (100 * (cpuOfAll(each) - (before[i] ?? 0))) / elapsedMicros,
        pssBytes: each.reduce((sum, { pid }) => sum + pssBytes(pid), 0),
      });
    }
  }
  return results;
}

function cpuOfAll(servers: readonly ServerProcess[]): number {
  return servers.reduce((sum, { pid }) => sum + cpuMicros(pid), 0);
}

async function startLoad(system: System, spec: LoadSpec, dir: string, n = 0): Promise<Child> {
  const { command, env } = await system.load(spec);
  return new Child({
    command,
    cwd: dir,
    logPath: join(dir, `load-${system.name}${n === 0 ? '' : `-${n}`}.log`),
    ...(env === undefined ? {} : { env }),
  });
}

async function resultOf(load: Child): Promise<LoadResult> {
  const { result } = await load.message('result');
  return result as LoadResult;
}
