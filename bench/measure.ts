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

export async function measureRun(system: System, spec: LoadSpec, dir: string): Promise<RunResult> {
  const servers = await system.processes(spec.workload);
  return measureLoad(await startLoad(system, spec, dir), servers);
}

/** The result of a load process that was just started, and what it cost everywhere. */
export async function measureLoad(load: Child, servers: readonly ServerProcess[]): Promise<RunResult> {
  try {
    await load.message('measuring');
    const all: { readonly role: Role; readonly pid: number }[] = [{ role: 'client', pid: load.pid }, ...servers];
    const before = all.map(({ pid }) => cpuMicros(pid));
    await load.message('measured');
    const used = all.map(({ pid }, i) => cpuMicros(pid) - (before[i] ?? 0));
    const result = await resultOf(load);
    const processes = all.map(({ role }, i) => ({
      role,
      cpuMicrosPerOp: (used[i] ?? 0) / Math.max(1, result.ops),
    }));
    await load.exit;
    return { ...result, processes };
  } finally {
    await load.stop();
  }
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

/** What a system takes that nobody uses. */
export async function measureIdle(system: System, seconds: number): Promise<IdleResult> {
  await pause(SETTLE_MS);
  const servers = await system.processes();
  const cpu = (): number => servers.reduce((sum, { pid }) => sum + cpuMicros(pid), 0);
  const before = cpu();
  const begunMs = performance.now();
  await pause(seconds * 1_000);
  const elapsedMicros = (performance.now() - begunMs) * 1_000;
  return {
    cpuPercent: (100 * (cpu() - before)) / elapsedMicros,
    pssBytes: servers.reduce((sum, { pid }) => sum + pssBytes(pid), 0),
  };
}

async function startLoad(system: System, spec: LoadSpec, dir: string): Promise<Child> {
  const { command, env } = await system.load(spec);
  return new Child({
    command,
    cwd: dir,
    logPath: join(dir, `load-${system.name}.log`),
    ...(env === undefined ? {} : { env }),
  });
}

async function resultOf(load: Child): Promise<LoadResult> {
  const { result } = await load.message('result');
  return result as LoadResult;
}
