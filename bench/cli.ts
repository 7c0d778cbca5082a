/**
 * Runs the benchmark: every case, at every level, by turns against every system, so that what else the machine does
 * meets all of them alike.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BareSystem } from './bare-system.ts';
import { type BenchOptions, HELP, parseOptions } from './bench-options.ts';
import { machine } from './machine.ts';
import { measureIdle, measureOutage, measureRun, type RunResult } from './measure.ts';
import { bars, type IdleReport, type LoadReport, type OutageReport, type Report, render, summaryOf } from './report.ts';
import { etcd, remora } from './servers.ts';
import { isKillable, type System, type Workload } from './system.ts';

/** Runs the command; resolves to its exit code. */
export async function main({
  root,
  argv,
}: {
  readonly root: string;
  readonly argv: readonly string[];
}): Promise<number> {
  let options: BenchOptions | undefined;
  try {
    options = parseOptions(argv);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
    return 2;
  }
  if (options === undefined) {
    console.log(HELP);
    return 0;
  }
  const dir = mkdtempSync(join(tmpdir(), 'remora-bench-'));
  const bench = new Bench(options, { root, dir });
  try {
    const report = await bench.run();
    const path = save(report, options, root);
    if (options.json) console.log(JSON.stringify(describe(report, options), null, 2));
    else console.log(`\n${render(report)}\n\nwritten to ${path}`);
    rmSync(dir, { recursive: true, force: true });
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    console.error(`(logs and data are kept in ${dir})`);
    return 1;
  } finally {
    await bench.stop();
  }
}

class Bench {
  readonly #options: BenchOptions;
  readonly #dir: string;
  readonly #systems: readonly System[];
  readonly #loads: LoadReport[] = [];
  readonly #outages: OutageReport[] = [];
  readonly #idle: IdleReport[] = [];

  constructor(options: BenchOptions, { root, dir }: { readonly root: string; readonly dir: string }) {
    this.#options = options;
    this.#dir = dir;
    this.#systems = systemsOf(options, { root, dir });
  }

  async run(): Promise<Report> {
    await this.#start();
    for (const workload of this.#options.cases) {
      if (workload === 'idle') continue;
      if (workload === 'outage') await this.#measureOutages();
      else if (workload === 'handoff') await this.#measureLoads(workload, 1);
      else for (const inflight of this.#options.inflight) await this.#measureLoads(workload, inflight);
    }
    return { loads: this.#loads, outages: this.#outages, idle: this.#idle };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#systems.map((system) => system.stop()));
  }

  async #start(): Promise<void> {
    for (const system of this.#systems) {
      progress(`starting ${system.name} ...`);
      await system.start();
    }
    if (this.#options.cases.includes('idle')) await this.#measureIdle();
  }

  /** Idle clusters come first: later they hold data. All are watched over the same spans of time. */
  async #measureIdle(): Promise<void> {
    const { runs, idleSeconds } = this.#options;
    const systems = this.#systems.filter(isKillable);
    progress(`${systems.map(({ name }) => name).join(' and ')}: idle for ${runs} times ${idleSeconds} s ...`);
    const results = await measureIdle(systems, { runs, seconds: idleSeconds });
    for (const [i, system] of systems.entries()) this.#idle.push({ system: system.name, runs: results[i] ?? [] });
  }

  async #measureLoads(workload: Workload, inflight: number): Promise<void> {
    const { runs, seconds } = this.#options;
    const processes = workload === 'handoff' ? 1 : this.#options.processes;
    const systems = this.#systems.filter((system) => system.workloads.includes(workload));
    const results = new Map<System, RunResult[]>(systems.map((system) => [system, []]));
    for (let run = 0; run < runs; run++) {
      for (const [system, done] of results)
        done.push(await measureRun(system, { workload, inflight, seconds }, this.#dir, processes));
    }
    for (const [system, done] of results) {
      const report = { case: workload, inflight, system: system.name, runs: done };
      this.#loads.push(report);
      const { opsPerSecond, p50Ms } = summaryOf(report);
      progress(`${workload} × ${inflight}, ${system.name}: ${opsPerSecond.toFixed(0)}/s, p50 ${p50Ms.toFixed(2)} ms`);
    }
  }

  async #measureOutages(): Promise<void> {
    const outages = new Map(this.#systems.filter(isKillable).map((system) => [system, [] as number[]]));
    for (let run = 0; run < this.#options.outageRuns; run++) {
      for (const [system, outagesMs] of outages) {
        const ms = await measureOutage(system, this.#dir);
        outagesMs.push(ms);
        progress(`outage, ${system.name}: ${ms.toFixed(0)} ms`);
      }
    }
    for (const [system, outagesMs] of outages) this.#outages.push({ system: system.name, outagesMs });
  }
}

function systemsOf(options: BenchOptions, { root, dir }: { readonly root: string; readonly dir: string }): System[] {
  const { entry, baseline, peers } = options;
  const profileDir = options.profile ? join(root, 'bench-results', 'profiles') : undefined;
  const systems: System[] = [remora({ name: 'remora', root, dir, entry, profileDir })];
  if (baseline !== undefined) systems.push(remora({ name: 'baseline', root: baseline, dir, entry, profileDir }));
  if (peers.includes('etcd')) systems.push(etcd({ root, dir, entry }));
  if (peers.includes('bare')) systems.push(new BareSystem({ root, dir, profileDir }));
  return systems;
}

function save(report: Report, options: BenchOptions, root: string): string {
  const dir = join(root, 'bench-results');
  mkdirSync(dir, { recursive: true });
  const path = join(dir, `${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.json`);
  writeFileSync(path, `${JSON.stringify(describe(report, options), null, 2)}\n`);
  return path;
}

function describe(report: Report, options: BenchOptions) {
  return {
    formatVersion: 1,
    at: new Date().toISOString(),
    machine: machine(),
    options,
    summaries: report.loads.map((load) => ({ ...load, runs: undefined, ...summaryOf(load) })),
    bars: bars(report),
    ...report,
  };
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
