/**
 * What all scenarios of nodes have in common: five nodes, of which three are masters, ranges that are spread over all
 * of them, and clients that request 30 % of the measured capacity of the cluster, in an open loop.
 */
import { AdminClient } from 'remora/admin';
import { runHere } from '../../e2e/command-line.ts';
import { eventually, pause } from '../../e2e/eventually.ts';
import { type Cluster, withCluster } from '../../e2e/harness.ts';
import type { Child } from '../../support/child.ts';
import { quantile } from '../../support/quantile.ts';
import { startLoad } from '../load-process.ts';
import { brokenRanges, type ClusterSeen, isBalanced, seeCluster, spreadOf, spreadText } from './cluster-view.ts';
import { bordersOf, type ClientLimits } from './mix.ts';
import type { LoadOrder, OpenLoadResult, OpenLoadSpec } from './open-load.ts';

export const REPLICAS = 3;
export const MASTERS = 3;

export interface StageOptions {
  readonly ranges: number;
  readonly clients: number;
  readonly seed: number;
  /** The duration of the initial measurement. 0: there is none, and `ratePerSecond` is offered. */
  readonly measureSeconds: number;
  readonly ratePerSecond: number;
  /** How long the load lasts before the event, and after it. */
  readonly calmSeconds: number;
  /** After this silence a node counts as down. */
  readonly downAfterMs: number;
  /** How long a node must be up, and a range unchanged, before balancing uses it. */
  readonly settleMs: number;
  readonly limits: StageLimits;
  readonly say?: (line: string) => void;
}

/** How long things may take. */
export interface StageLimits extends ClientLimits {
  /** After the down time, until a dead node is replaced. */
  readonly repairMs: number;
  /** A scenario that waits longer ends with an error. Longer than `repairMs`, so that lateness is reported. */
  readonly waitMs: number;
}

export interface LoadReport extends OpenLoadResult {
  /** The measured capacity. 0 if there was no measurement. */
  readonly capacityPerSecond: number;
  readonly ratePerSecond: number;
}

const JOINING = 2;
const PART_OF_CAPACITY = 0.3;
const INFLIGHT = 64;
const ADMIN_TIMEOUT_MS = 5_000;
const LOOK_MS = 250;
const OPERATORS_MAX = 1_000;
const SUSPECT_AFTER_MS = 1_000;

/** What a scenario works with once everything is set up. */
export class Stage {
  readonly cluster: Cluster;
  readonly options: StageOptions;
  readonly #admin: AdminClient;
  readonly #load: Child;
  #ratePerSecond: number;
  #capacityPerSecond = 0;

  constructor(cluster: Cluster, load: Child, options: StageOptions) {
    this.cluster = cluster;
    this.options = options;
    this.#load = load;
    this.#ratePerSecond = options.ratePerSecond;
    const times = { timeoutMs: ADMIN_TIMEOUT_MS, connectTimeoutMs: ADMIN_TIMEOUT_MS };
    this.#admin = new AdminClient({ endpoints: cluster.endpoints, ...times });
  }

  say(line: string): void {
    this.options.say?.(line);
  }

  look(): Promise<ClusterSeen> {
    return seeCluster(this.#admin);
  }

  /** Runs a command of `remora` at running nodes. @throws Error if it fails. */
  async command(...args: readonly string[]): Promise<string> {
    const endpoints = this.cluster.nodes.filter(({ running }) => running).map(({ client }) => client);
    const { code, out, err } = await runHere(endpoints, args);
    if (code !== 0) throw new Error(`remora ${args.join(' ')} ended with ${code}:\n${err}`);
    return out;
  }

  async settle(): Promise<void> {
    const seen = await this.until('all ranges are whole and balanced', isWholeAndBalanced);
    this.say(`${seen.ranges.length} ranges: ${spreadText(spreadOf(seen))}`);
  }

  until(what: string, holds: (seen: ClusterSeen) => boolean): Promise<ClusterSeen> {
    const timeoutMs = this.options.limits.waitMs;
    let last: ClusterSeen | undefined;
    const probe = async (): Promise<ClusterSeen | undefined> => {
      last = await this.look();
      return holds(last) ? last : undefined;
    };
    return eventually(what, probe, { timeoutMs, pollMs: LOOK_MS }).catch((cause: unknown) => {
      throw new Error(`${what}: not within ${timeoutMs} ms; at last ${last === undefined ? '' : textOf(last)}`, {
        cause,
      });
    });
  }

  /** Measures the capacity of the cluster, if the options say so. */
  async measure(): Promise<void> {
    const { measureSeconds: seconds } = this.options;
    if (seconds === 0) return;
    this.#order({ type: 'measure', inflight: INFLIGHT, seconds });
    this.#capacityPerSecond = Number((await this.#load.message('measured')).perSecond);
    this.#ratePerSecond = PART_OF_CAPACITY * this.#capacityPerSecond;
    this.say(`${this.#capacityPerSecond.toFixed(0)} requests per second of the mix with ${INFLIGHT} under way`);
  }

  /** From now on requests count for this phase. */
  phase(name: string): void {
    this.say(`${name}: ${this.#ratePerSecond.toFixed(0)} requests per second`);
    this.#order({ type: 'offer', phase: name, ratePerSecond: this.#ratePerSecond });
  }

  async calm(): Promise<void> {
    await pause(this.options.calmSeconds * 1_000);
  }

  /** The scheduling operators, as the current leader of the masters remembers them. */
  async #sayOperators(): Promise<void> {
    const operators = await this.#admin.operators({ ended: true, limit: OPERATORS_MAX });
    for (const line of operatorLines(operators)) this.say(line);
  }

  async finish(): Promise<LoadReport> {
    await this.#sayOperators();
    this.#order({ type: 'finish' });
    const result = (await this.#load.message('result')) as unknown as OpenLoadResult;
    return { ...result, capacityPerSecond: this.#capacityPerSecond, ratePerSecond: this.#ratePerSecond };
  }

  #order(order: LoadOrder): void {
    this.#load.send(order);
  }
}

/** Runs a scenario on a new stage, which begins balanced and with all keys in place. */
export function withStage<Report>(options: StageOptions, play: (stage: Stage) => Promise<Report>): Promise<Report> {
  const flags = { 'pre-split': bordersOf(options.ranges).join(',') };
  return withCluster({ nodes: MASTERS, joining: JOINING, flags }, async (cluster) => {
    const { clients, seed, limits } = options;
    const spec: OpenLoadSpec = { endpoints: cluster.endpoints, clients, seed, limits };
    const load = startLoad('load:open', spec, cluster.dir);
    try {
      const stage = new Stage(cluster, load, options);
      for (const [name, ms] of settingsOf(options)) await stage.command('admin', 'settings', 'set', name, `${ms}ms`);
      await load.message('ready');
      await stage.settle();
      await stage.measure();
      return await play(stage);
    } finally {
      await load.stop();
    }
  });
}

function settingsOf({ downAfterMs, settleMs }: StageOptions): readonly (readonly [string, number])[] {
  return [
    ['suspect-after', Math.min(SUSPECT_AFTER_MS, downAfterMs / 2)],
    ['down-after', downAfterMs],
    ['node-settle', settleMs],
    ['move-cooldown', settleMs],
  ];
}

/** The number of operators per kind and result, and how long they took. */
function operatorLines(operators: Awaited<ReturnType<AdminClient['operators']>>): readonly string[] {
  const tookMs = new Map<string, number[]>();
  for (const { kind, status, outcome, ageMs, endedMs } of operators) {
    const name = status === 'success' ? kind : `${kind}, ${status} (${outcome})`;
    tookMs.set(name, [...(tookMs.get(name) ?? []), ageMs - endedMs]);
  }
  return [...tookMs].map(([name, each]) => {
    const [middle, longest] = [quantile(each, 0.5), quantile(each, 1)].map((ms) => (ms / 1_000).toFixed(1));
    return `operators: ${each.length} × ${name}, ${middle} s in the middle, ${longest} s at most`;
  });
}

export function isWholeAndBalanced(seen: ClusterSeen): boolean {
  return seen.ranges.length > 0 && brokenRanges(seen, REPLICAS).length === 0 && isBalanced(seen);
}

function textOf(seen: ClusterSeen): string {
  return `${brokenRanges(seen, REPLICAS).length} ranges not whole, ${spreadText(spreadOf(seen))}`;
}
