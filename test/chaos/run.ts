/**
 * One run: a cluster of real processes under load and faults. Everything is recorded and judged.
 *
 * R1. The seed determines the faults, their order and their times. The machine adds its own randomness, so a seed does
 *     not repeat a run exactly.
 * R2. However a run ends, its processes end, and it reports its findings.
 * R3. If a run breaks off, only the data that had been read completely by then is judged. Unread data would look lost.
 */
import { setMaxListeners } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type Random, SeededRandom } from '@remora/base';
import { connect } from 'remora';
import { type Finding, violation } from '../checkers/index.ts';
import { eventually } from '../e2e/eventually.ts';
import { RangeDesk } from './changes/range-desk.ts';
import {
  BORDERS,
  type Changed,
  changeEverything,
  GATEWAYS,
  nameOf,
  type ScenarioDeps,
  tooLittle,
} from './changes/scenario.ts';
import { ClientFleet } from './clients/client-fleet.ts';
import type { Fault, FaultWorld } from './faults/fault.ts';
import { FAULTS_OF } from './faults/index.ts';
import { ROUND_MS } from './journal/lines.ts';
import { JudgeProcess, type JudgeResult } from './judges/judge-process.ts';
import { ChaosCluster } from './nodes/chaos-cluster.ts';
import { SmallDisk } from './nodes/small-disk.ts';
import { type Befallen, runFaults } from './schedule.ts';
import type { Releases } from './upgrade/releases.ts';
import { compareReplicas, untilSettled } from './upgrade/replicas.ts';
import { rollUpgrade, UPGRADE_BORDERS } from './upgrade/roll.ts';
import { connectOptions, secured } from './users/access.ts';
import { ChaosUsers } from './users/chaos-users.ts';

export interface ChaosOptions {
  /** The folder for data, logs and journals. Created for the run. */
  readonly dir: string;
  /** The folder of the compiled programs. */
  readonly programs: string;
  readonly seed: number;
  readonly minutes: number;
  readonly nodes: number;
  readonly clients: number;
  /** A worker's mean pause between two operations. */
  readonly thinkMs: number;
  /**
   * `faults`: one after another. `locks`: the faults that may separate holders from their locks, with only locks as
   * load. `changes`: all ranges change all the time, and coordinators of transactions die. `upgrade`: the nodes change
   * between two releases.
   */
  readonly course: 'faults' | 'locks' | 'changes' | 'upgrade';
  /** The releases of an upgrade. */
  readonly releases?: Releases;
  /** With TLS, authentication, and users whose rights change. Not with `changes` and `upgrade`. */
  readonly auth: boolean;
  /** The kinds of faults that may happen. Absent: all. */
  readonly only?: ReadonlySet<string>;
  /** Ends the run early, in good order. */
  readonly signal: AbortSignal;
  /** Called now and then. Ends the run early if it returns true. Absent: never. */
  readonly isEnough?: (changed: Changed) => boolean;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly seed: number;
  readonly nodes: number;
  /** The duration of the load. */
  readonly loadMs: number;
  readonly judged: JudgeResult | undefined;
  readonly faults: readonly Befallen[];
  /** The changes of ranges, and the killed gateways. */
  readonly changed: Changed;
  /** Kinds of faults that could not happen here, and why. */
  readonly unavailable: readonly string[];
  /** Kinds of faults that did not happen. */
  readonly missing: readonly string[];
  readonly findings: readonly Finding[];
}

const SMALL_DISK_MB = 160;
const PROGRESS_MS = 10_000;
const LOOK_MS = 200;
/** How long the load continues after everything is healthy. */
const LAST_CALM_MS = 2_000;
/** How many tasks may pause at a time. */
const PAUSES_MAX = 100;
const SERVED_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 60_000;
const AUDITED_WITHIN_MS = 120_000;
/** Far more than an election or a transfer takes on a busy machine. */
const UPGRADE_OUTAGE_MS_MAX = 10_000;
const LOAD_OF = { faults: 'all', changes: 'all', locks: 'locks', upgrade: 'upgrade' } as const;

export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  mkdirSync(options.dir, { recursive: true });
  const run = new Run(options);
  try {
    await run.go();
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    run.breakOff(violation('the cluster comes back', detail));
  }
  return run.end();
}

class Run {
  readonly #options: ChaosOptions;
  /** When the load began. */
  #beganNs = process.hrtime.bigint();
  readonly #findings: Finding[] = [];
  readonly #befallen: Befallen[] = [];
  readonly #kinds: readonly Fault[];
  #unavailable: readonly string[] = [];
  #judge: JudgeProcess | undefined;
  #clients: ClientFleet | undefined;
  #cluster: ChaosCluster | undefined;
  #smallDisk: SmallDisk | undefined;
  #desk: RangeDesk | undefined;
  #users: ChaosUsers | undefined;
  readonly #kills = new Map<string, number>();
  #loadEndedMs = 0;
  #brokeOff = false;

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.#kinds = FAULTS_OF[options.course].filter(({ kind }) => options.only?.has(kind) ?? true);
  }

  report(finding: Finding): void {
    this.#findings.push(finding);
    this.#options.say(`${finding.result}: ${finding.property}: ${finding.detail}`);
  }

  breakOff(finding: Finding): void {
    this.#brokeOff = true;
    this.report(finding);
  }

  async go(): Promise<void> {
    const { say } = this.#options;
    const cluster = await this.#found();
    const clients = await this.#load(cluster);
    const progress = setInterval(() => say(this.#progressLine()), PROGRESS_MS);
    try {
      await this.#during(cluster, clients);
      await this.#everyGatewayServes(cluster);
      await new Promise((resolve) => setTimeout(resolve, LAST_CALM_MS));
    } finally {
      clearInterval(progress);
    }
    say('the cluster is whole; the load ends, and what is left is read');
    await within(STOPPED_WITHIN_MS, 'the clients end', clients.stopLoad());
    this.#loadEndedMs = this.#nowMs();
    await within(AUDITED_WITHIN_MS, 'all that was written is read', clients.finish());
    await this.#stopNodes(cluster);
  }

  /** R2. */
  async end(): Promise<ChaosResult> {
    const { seed, nodes, course, minutes } = this.#options;
    this.#loadEndedMs ||= this.#nowMs();
    // R3. While clients and auditor exist, rounds that are not over for them are not judged.
    const early = this.#brokeOff ? await this.#judged() : undefined;
    this.#desk?.close();
    this.#users?.close();
    await this.#clients?.close();
    await this.#cluster?.stop();
    this.#smallDisk?.unmount();
    const judged = this.#brokeOff ? early : await this.#judged();
    this.#judge?.close();
    const changed = this.#changed();
    if (course === 'changes') {
      for (const finding of tooLittle(changed, judged?.overlaps ?? [], minutes)) this.report(finding);
    }
    const [longest] = course === 'upgrade' ? (judged?.figures.outages ?? []) : [];
    if (longest !== undefined && longest.ms > UPGRADE_OUTAGE_MS_MAX) {
      this.report(violation('an upgrade costs no more than transfers of leaders', `no write for ${longest.ms} ms`));
    }
    const kinds = new Set(this.#befallen.map(({ kind }) => kind));
    return {
      ...{ seed, nodes, loadMs: this.#loadEndedMs, judged, findings: this.#findings },
      ...{ changed, faults: this.#befallen.sort((a, b) => a.fromMs - b.fromMs) },
      unavailable: this.#unavailable,
      missing: this.#kinds.map(({ kind }) => kind).filter((kind) => !kinds.has(kind) && !this.#isUnavailable(kind)),
    };
  }

  async #judged(): Promise<JudgeResult | undefined> {
    return this.#judge?.finish(this.#loadEndedMs * 1e6).catch((error: unknown) => {
      this.report({ result: 'undecided', property: 'the judge', detail: String(error) });
      return undefined;
    });
  }

  async #found(): Promise<ChaosCluster> {
    const { dir, nodes, seed, course, auth, say } = this.#options;
    const everything = course === 'changes';
    if (auth) this.#users = await ChaosUsers.make({ dir, nodes, seed });
    const { releases } = this.#options;
    if (releases === undefined) this.#smallDisk = SmallDisk.mount({ node: nodes, dir, megabytes: SMALL_DISK_MB });
    this.#cluster = await ChaosCluster.start({
      ...{ dir, nodes, seed },
      ...(everything ? { gateways: GATEWAYS, borders: BORDERS } : { gateways: 0, borders: [] }),
      ...(releases !== undefined && { borders: UPGRADE_BORDERS, program: releases.older.program }),
      certificates: this.#users?.certificates,
      dataDir: (n) => (n === this.#smallDisk?.node ? this.#smallDisk.dataDir : undefined),
    });
    say(`a cluster of ${nodes} nodes, its data and logs in ${dir}`);
    return this.#cluster;
  }

  async #load(cluster: ChaosCluster): Promise<ClientFleet> {
    const { programs, dir, clients, course, seed, thinkMs, releases } = this.#options;
    const report = (finding: Finding): void => this.report(finding);
    const judge = new JudgeProcess({ programs, dir, report });
    this.#judge = judge;
    this.#beganNs = process.hrtime.bigint();
    this.#clients = new ClientFleet({
      ...{ dir, programs, clients, seed, thinkMs, report, load: LOAD_OF[course] },
      ...(releases !== undefined && { otherVersion: releases.newer.version }),
      access: this.#users?.access,
      endpoints: cluster.endpoints,
      beganNs: this.#beganNs,
      roundMs: ROUND_MS,
      tellJudge: (message) => judge.tell(message),
    });
    const { journal } = this.#clients;
    const root = this.#users?.access.root;
    const endpoints = secured(
      cluster.nodes.map((node) => node.client),
      root,
    );
    this.#desk = new RangeDesk({ endpoints, journal, access: root });
    await this.#users?.begin({ endpoints, journal, clients: this.#clients });
    await this.#clients.start();
    return this.#clients;
  }

  /** Runs for the given duration. Then everything is healthy again. */
  async #during(cluster: ChaosCluster, clients: ClientFleet): Promise<void> {
    const { minutes, seed, signal, course, isEnough } = this.#options;
    const over = new AbortController();
    // An upgrade has an end of its own.
    const timer = course === 'upgrade' ? undefined : setTimeout(() => over.abort(), minutes * 60_000);
    const looking = setInterval(() => isEnough?.(this.#changed()) && over.abort(), LOOK_MS);
    const ends = AbortSignal.any([over.signal, signal]);
    setMaxListeners(PAUSES_MAX, ends);
    const ranges = this.#desk;
    if (ranges === undefined) throw new Error('nobody changes ranges');
    const random = new SeededRandom(seed);
    const usersChange = this.#users?.keepChanging(ends);
    usersChange?.catch(() => over.abort()); // Thrown below.
    const pause = (ms: number): Promise<void> => pauseUnless(ends, ms);
    const report = (finding: Finding): void => this.report(finding);
    try {
      if (course === 'upgrade') await this.#upgrade(cluster, { desk: ranges, random, pause });
      else if (course === 'changes')
        await this.#changes({ desk: ranges, gateways: cluster.gateways, random, signal: ends, pause });
      else {
        const world = { cluster, clients, ranges, smallDisk: this.#smallDisk, signal: ends, pause, report };
        await this.#faults(world, random);
      }
    } finally {
      clearTimeout(timer);
      clearInterval(looking);
    }
    await usersChange;
  }

  async #faults(world: FaultWorld, random: Random): Promise<void> {
    const { say } = this.#options;
    this.#unavailable = this.#kinds.flatMap(({ kind, unavailable }) => {
      const why = unavailable?.(world);
      return why === undefined ? [] : [`${kind}: ${why}`];
    });
    for (const why of this.#unavailable) say(`left out: ${why}`);
    await runFaults({
      ...{ world, random },
      faults: this.#kinds.filter(({ kind }) => !this.#isUnavailable(kind)),
      nowMs: () => this.#nowMs(),
      befallen: (fault) => {
        this.#befallen.push(fault);
        say(`${time(fault.fromMs)} ${fault.kind}: ${fault.what}`);
      },
    });
  }

  async #changes(deps: Omit<ScenarioDeps, 'killed'>): Promise<void> {
    const { say } = this.#options;
    await changeEverything({
      ...deps,
      killed: (moment, gateway) => {
        const name = nameOf(moment);
        this.#kills.set(name, (this.#kills.get(name) ?? 0) + 1);
        say(`${time(this.#nowMs())} ${gateway} killed ${name}`);
      },
    });
  }

  async #upgrade(
    cluster: ChaosCluster,
    given: { readonly desk: RangeDesk; readonly random: Random; pause(ms: number): Promise<void> },
  ): Promise<void> {
    const { minutes, releases, say } = this.#options;
    if (releases === undefined) throw new Error('an upgrade needs two releases');
    await rollUpgrade({
      ...{ ...given, cluster, releases, minutes },
      nowMs: () => this.#nowMs(),
      report: (finding) => this.report(finding),
      befallen: (what) => {
        this.#befallen.push(what);
        say(`${time(what.fromMs)} ${what.kind}: ${what.what}`);
      },
    });
  }

  #changed(): Changed {
    const desk = this.#desk;
    return {
      done: desk?.done ?? { split: 0, merge: 0, move: 0, transfer: 0 },
      failed: desk?.failed ?? {},
      kills: Object.fromEntries(this.#kills),
    };
  }

  #isUnavailable(kind: string): boolean {
    return this.#unavailable.some((why) => why.startsWith(`${kind}: `));
  }

  /** After the last fault, every request is served, at any gateway. */
  async #everyGatewayServes(cluster: ChaosCluster): Promise<void> {
    const root = this.#users?.access.root;
    const as = connectOptions(root);
    for (const endpoint of secured(cluster.endpoints, root)) {
      await eventually(
        `the gateway at ${endpoint} serves`,
        async () => {
          await using remora = await connect({ endpoints: endpoint, discover: false, requestTimeout: '2s', ...as });
          return (await remora.kv.put('calm', 'yes')).revision;
        },
        { timeoutMs: SERVED_WITHIN_MS },
      );
    }
  }

  async #stopNodes({ nodes }: ChaosCluster): Promise<void> {
    if (this.#options.course === 'upgrade') return this.#stopAndCompare(nodes);
    for (const node of nodes) {
      const { code, signal } = await node.end('SIGTERM');
      if (code === 0) continue;
      this.report(violation('nodes stop when told to', `${node.name} ended with ${signal ?? `code ${code}`}`));
    }
  }

  async #stopAndCompare(nodes: ChaosCluster['nodes']): Promise<void> {
    await untilSettled(nodes);
    const ends = await Promise.all(nodes.map((node) => node.end('SIGTERM')));
    for (const [i, { code, signal }] of ends.entries()) {
      // The last ones find nobody who takes over their leaderships, and give up waiting.
      if (code === 0 || code === 1) continue;
      this.report(violation('nodes stop when told to', `${nodes[i]?.name} ended with ${signal ?? `code ${code}`}`));
    }
    for (const finding of await compareReplicas(nodes)) this.report(finding);
  }

  #nowMs(): number {
    return Number(process.hrtime.bigint() - this.#beganNs) / 1e6;
  }

  #progressLine(): string {
    const { counts, rounds = 0 } = this.#judge?.progress ?? {};
    const { done = 0, unknown = 0, refused = 0 } = counts ?? {};
    const operations = `${done + unknown + refused} operations, ${unknown} of unknown outcome`;
    const { split = 0, merge = 0, move = 0, transfer = 0 } = this.#desk?.done ?? {};
    const changes = `${split} splits, ${merge} merges, ${move} moves, ${transfer} transfers`;
    return `${time(this.#nowMs())} ${operations}; ${rounds} rounds judged; ${this.#befallen.length} faults; ${changes}`;
  }
}

function time(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
}

function pauseUnless(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

async function within(ms: number, what: string, done: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms / 1_000} s: ${what}`)), ms);
  });
  try {
    await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
  }
}
