/**
 * One list of requests, sent to both servers one after the other, until they differ.
 *
 * TR1. Remora is asked first. A refusal that is allowed keeps the request from etcd: what one server changes, the other
 *      does.
 * TR2. Both begin without keys and leases. Revisions of the run are those from its first write on.
 * TR3. Revisions in Remora's headers never go back, whichever node is asked. Those of keep-alives and of reads that may
 *      be stale do not go back at one node.
 */
import { askedOfEtcd, DIFFERENCES, refusalOf, wronglyTaken } from './judge/allowed.ts';
import { type Answer, Exact, failed, Moment } from './judge/answers.ts';
import { type Difference, differences } from './judge/compare.ts';
import { RevisionMap } from './judge/revision-map.ts';
import { withoutGuesses } from './judge/ties.ts';
import { SideNames } from './names.ts';
import type { Request } from './requests/generate.ts';
import type { RangeStep, Step, UnaryStep, WatchStep } from './requests/requests.ts';
import type { Server } from './servers/server.ts';
import { WatchLog } from './servers/watch-log.ts';
import { type Mark, type Told, Watches } from './watches.ts';

export interface Servers {
  readonly etcd: Server;
  /** Nodes of one cluster. */
  readonly remora: readonly Server[];
}

export interface Finding {
  /** The place of the request in the list. */
  readonly at: number;
  readonly step: Step;
  readonly etcd: Answer;
  readonly remora: Answer;
  readonly differences: readonly Difference[];
}

/** Same kind: the same part of answers to the same kind of request. */
export function kindOf({ step, differences: [first] }: Finding): string {
  return `${step.do} ${(first?.path ?? '').replaceAll(/\d+/g, 'n')}`;
}

export class Trial {
  readonly #servers: Servers;
  readonly #revisions = new RevisionMap();
  readonly #left = new SideNames('left', this.#revisions);
  readonly #right = new SideNames('high', this.#revisions);
  readonly #watches: Watches;
  /** How often each allowed difference was met, by its name. */
  readonly #allowed: Map<string, number>;
  /** TR3. The last header of any node, and of each node. */
  #header = 0;
  readonly #headers = new Map<Server, number>();
  /** Of etcd; what is below is gone. */
  #compacted = 0;

  constructor(servers: Servers, allowed: Map<string, number>) {
    this.#servers = servers;
    this.#allowed = allowed;
    const logs = {
      etcd: new WatchLog(servers.etcd, this.#left, { keepsProgress: false }),
      remora: new WatchLog(this.#node(0), this.#right, { keepsProgress: true }),
    };
    this.#watches = new Watches(logs, this.#revisions);
  }

  /** Undefined: they did not differ. */
  async run(requests: readonly Request[], onDone: (count: number) => void): Promise<Finding | undefined> {
    try {
      await Promise.all([wipe(this.#servers.etcd), wipe(this.#node(0))]);
      const first = await this.#ask({ do: 'put', key: 'first', value: '' }, 0);
      if (first.differences.length > 0) throw new Error('the first write of a run cannot differ');
      for (const [at, { step, via }] of requests.entries()) {
        const told = await this.#do(step, via);
        if (told !== undefined && told.differences.length > 0) return { at, step, ...told };
        onDone(at + 1);
      }
      return undefined;
    } finally {
      this.#watches.close();
    }
  }

  async #do(step: Step, via: number): Promise<Told | undefined> {
    const told = await this.#answers(step, via);
    return told && this.#permitted(step, told);
  }

  /** Undefined: there was nothing to ask. */
  #answers(step: Step, via: number): Promise<Told | undefined> {
    switch (step.do) {
      case 'watch':
        return this.#watches.create(step, this.#isCompacted(step));
      case 'cancel':
        return this.#watches.cancel(step);
      case 'progress':
        return this.#watches.progress(step);
      case 'settle':
        return this.#settle(via);
      default:
        return this.#ask(step, via);
    }
  }

  async #ask(step: UnaryStep, via: number): Promise<Told> {
    const remora = await this.#node(via).ask(step, this.#right);
    const refusal = refusalOf(step, remora);
    if (refusal !== undefined) {
      this.#count(refusal.name);
      const etcd = step.do === 'txn' ? await this.#servers.etcd.check(step, this.#left) : null;
      return { etcd, remora, differences: [] }; // TR1
    }
    if (step.do === 'range' && step.serializable) {
      return this.#askStale(step, remora, this.#ordered(this.#node(via), remora, true));
    }
    const asked = askedOfEtcd(step, ({ name }) => this.#count(name));
    const etcd = await this.#servers.etcd.ask(asked, this.#left);
    const [left, right] = [etcd, remora].map((answer) => comparable(step, answer));
    const spread = step.do === 'revoke' ? this.#spread(etcd, remora) : [];
    const found = [...spread, ...differences(left ?? null, right ?? null, this.#revisions)];
    found.push(...this.#ordered(this.#node(via), remora, step.do === 'keepAlive'));
    const taken = wronglyTaken(step, remora);
    if (taken !== undefined) found.push(taken);
    if (step.do === 'compact' && failed(etcd) === undefined)
      this.#compacted = Number(this.#left.revision(step.revision));
    return { etcd, remora, differences: found };
  }

  /**
   * Its header may be of an earlier moment; unless it names a revision, it is compared with what there was at that
   * moment.
   */
  async #askStale(step: RangeStep, remora: Answer, order: readonly Difference[]): Promise<Told> {
    const then = failed(remora) === undefined ? this.#atMoment(step, headerRevision(remora)) : step;
    if (then === undefined) return { etcd: null, remora, differences: order };
    const asked = askedOfEtcd(then, ({ name }) => this.#count(name));
    const etcd = await this.#servers.etcd.ask(asked, this.#left);
    const [left, right] = [etcd, remora].map((answer) => withoutHeader(comparable(step, answer)));
    return { etcd, remora, differences: [...order, ...differences(left ?? null, right ?? null, this.#revisions)] };
  }

  /** Undefined: there was another run at that moment (TR2). */
  #atMoment(step: RangeStep, revision: number): RangeStep | undefined {
    if (namesRevision(step)) return step;
    const { pairs } = this.#revisions;
    const at = this.#revisions.changeAt(revision);
    const ago = at === undefined ? pairs.length : pairs.length - 1 - pairs.indexOf(at);
    if (ago > 0) this.#count('serializable read of an earlier moment');
    if (ago >= pairs.length) return undefined;
    return ago === 0 ? step : { ...step, revision: { ago } };
  }

  /** RM3: all that a lease leaves goes at one revision in etcd, and at one for each range, or more, in Remora. */
  #spread(etcd: Answer, remora: Answer): readonly Difference[] {
    const [left, high] = [headerRevision(etcd), headerRevision(remora)];
    if (left <= (this.#revisions.newest?.left ?? 0) || high === 0) return [];
    const why = this.#revisions.spread(left, { low: this.#header + 1, high });
    return why === undefined ? [] : [{ path: 'header.revision', etcd: left, remora: high, why }];
  }

  /** TR3. */
  #ordered(node: Server, remora: Answer, isExempt: boolean): readonly Difference[] {
    const revision = headerRevision(remora);
    if (failed(remora) !== undefined) return [];
    const before = isExempt ? (this.#headers.get(node) ?? 0) : this.#header;
    this.#headers.set(node, revision);
    this.#header = Math.max(this.#header, revision);
    if (revision >= before) return [];
    return [{ path: 'header.revision', etcd: before, remora: revision, why: 'the header goes back' }];
  }

  async #settle(via: number): Promise<Told | undefined> {
    const marks: Mark[] = [];
    for (const [key, isDeleted] of this.#watches.wanted()) {
      const steps: readonly UnaryStep[] = [
        { do: 'put', key, value: 'settled' },
        ...(isDeleted ? [{ do: 'delete', key } as const] : []),
      ];
      for (const step of steps) {
        const told = this.#permitted(step, await this.#ask(step, via));
        if (told.differences.length > 0) return told;
        const revisions = { etcd: headerRevision(told.etcd), remora: headerRevision(told.remora) };
        marks.push({ key, type: step.do === 'put' ? 'put' : 'delete', revisions });
      }
    }
    return this.#watches.settle(marks);
  }

  /** Without what is allowed. */
  #permitted(step: Step, told: Told): Told {
    const left = told.differences.filter((difference) => {
      const row = DIFFERENCES.find((each) => each.covers(step, difference, told));
      if (row !== undefined) this.#count(row.name);
      return row === undefined;
    });
    return { ...told, differences: left };
  }

  #isCompacted({ start }: WatchStep): boolean {
    return start !== undefined && 'ago' in start && Number(this.#left.revision(start)) < this.#compacted;
  }

  #count(name: string): void {
    this.#allowed.set(name, (this.#allowed.get(name) ?? 0) + 1);
  }

  #node(via: number): Server {
    const node = this.#servers.remora[via % this.#servers.remora.length];
    if (node === undefined) throw new Error('there are no nodes');
    return node;
  }
}

function namesRevision({ revision }: RangeStep): boolean {
  return revision !== undefined && !('raw' in revision && revision.raw <= 0n);
}

/** 0: there is none. */
function headerRevision(answer: Answer): number {
  const { header } = (answer ?? {}) as { readonly header?: { readonly revision?: unknown } };
  const revision = header?.revision;
  return revision instanceof Exact || revision instanceof Moment ? revision.revision : 0;
}

function comparable(step: UnaryStep, answer: Answer): Answer {
  return step.do === 'range' || step.do === 'txn' ? withoutGuesses(step, answer) : answer;
}

function withoutHeader(answer: Answer): Answer {
  if (typeof answer !== 'object' || answer === null) return answer;
  const { header: _, ...rest } = answer as { readonly [name: string]: Answer };
  return rest;
}

/** TR2. */
async function wipe(server: Server): Promise<void> {
  const names = new SideNames('left', new RevisionMap());
  const ask = async (step: UnaryStep): Promise<Answer> => {
    const answer = await server.ask(step, names);
    const error = failed(answer);
    if (error !== undefined) throw new Error(`cannot begin a run: ${step.do}: ${error}`);
    return answer;
  };
  const { leases } = (await ask({ do: 'leases' })) as { readonly leases: readonly string[] };
  for (const id of leases) await ask({ do: 'revoke', lease: { raw: BigInt(id) } });
  await ask({ do: 'delete', key: '\0', end: '\0' });
}
