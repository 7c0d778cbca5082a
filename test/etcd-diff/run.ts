/** Seeds in turn against one etcd and one cluster. */
import { inspect } from 'node:util';
import { Cluster } from '../e2e/harness.ts';
import { shown } from './judge/answers.ts';
import { textOfDifference } from './judge/compare.ts';
import { generate, type Plan, type Request } from './requests/generate.ts';
import { smallerSteps } from './requests/smaller.ts';
import { EtcdProcess } from './servers/etcd-process.ts';
import { type Layout, Ranges } from './servers/ranges.ts';
import { Server } from './servers/server.ts';
import { shrink } from './shrink.ts';
import { type Finding, kindOf, type Servers, Trial } from './trial.ts';

export interface BenchOptions {
  readonly nodes: number;
  readonly layout: Layout;
  readonly seed: number;
}

export interface SeedResult {
  /** Requests that were sent to both. */
  readonly requests: number;
  /** How often each allowed difference was met. */
  readonly allowed: ReadonlyMap<string, number>;
  readonly finding: Finding | undefined;
  /** The requests up to the finding. */
  readonly list: readonly Request[];
}

/** Both servers, for as many runs as are wanted. */
export class Bench {
  readonly #etcd: EtcdProcess;
  readonly #cluster: Cluster;
  readonly #ranges: Ranges;
  readonly #servers: Servers;

  private constructor(etcd: EtcdProcess, cluster: Cluster, ranges: Ranges) {
    this.#etcd = etcd;
    this.#cluster = cluster;
    this.#ranges = ranges;
    this.#servers = { etcd: new Server(etcd.client), remora: cluster.endpoints.map((each) => new Server(each)) };
  }

  static async start({ nodes, layout, seed }: BenchOptions): Promise<Bench> {
    const started = await Promise.allSettled([EtcdProcess.start(), Cluster.start({ nodes })]);
    const [etcd, cluster] = started.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
    try {
      for (const each of started) if (each.status === 'rejected') throw each.reason;
      if (!(etcd instanceof EtcdProcess && cluster instanceof Cluster)) throw new Error('not started');
      return new Bench(etcd, cluster, await Ranges.lay(cluster, layout, seed));
    } catch (error) {
      await Promise.all([etcd?.stop(), cluster?.stop()]);
      throw error;
    }
  }

  get changes(): Readonly<Record<string, number>> {
    return this.#ranges.changes;
  }

  async run(plan: Plan, onDone: (count: number) => void = () => {}): Promise<SeedResult> {
    const list = generate(plan);
    const allowed = new Map<string, number>();
    let requests = 0;
    const finding = await new Trial(this.#servers, allowed).run(list, (count) => {
      requests = count;
      onDone(count);
    });
    return { requests, allowed, finding, list: finding === undefined ? list : list.slice(0, finding.at + 1) };
  }

  /** The shortest part of the list that was found to show a difference of the same kind, and what it shows. */
  async shrink(
    list: readonly Request[],
    finding: Finding,
    triesMax: number,
  ): Promise<readonly [readonly Request[], Finding]> {
    let smallest = finding;
    const short = await shrink(
      list,
      async (part) => {
        const again = await new Trial(this.#servers, new Map()).run(part, () => {});
        if (again === undefined || kindOf(again) !== kindOf(finding)) return false;
        smallest = again;
        return true;
      },
      { triesMax, smaller: smallerRequests },
    );
    return [short, smallest];
  }

  async stop(): Promise<void> {
    for (const server of [this.#servers.etcd, ...this.#servers.remora]) server.close();
    await this.#ranges.stop();
    await Promise.all([this.#etcd.stop(), this.#cluster.stop()]);
  }
}

function* smallerRequests({ via, step }: Request): Generator<Request> {
  for (const smaller of smallerSteps(step)) yield { via, step: smaller };
}

/** For people: what was asked, and both answers. */
export function textOfFinding(requests: readonly Request[], { step, etcd, remora, differences }: Finding): string {
  const lines = requests.map(({ step: each, via }, i) => `  ${i + 1}. (node ${via}) ${textOfStep(each)}`);
  return [
    `The last of ${requests.length} requests is answered differently:`,
    ...lines,
    `etcd:   ${shown(etcd)}`,
    `Remora: ${shown(remora)}`,
    `Differences (${step.do}):`,
    ...differences.map((each) => `  ${textOfDifference(each)}`),
  ].join('\n');
}

function textOfStep(step: object): string {
  return inspect(step, { depth: null, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 80 });
}
