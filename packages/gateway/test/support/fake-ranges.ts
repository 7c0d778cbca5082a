import { assert, type Random, ServiceError, type Span, spanContains, spanCovers } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import {
  type Command,
  type CommandResult,
  isLockCompare,
  type KeyRange,
  type OpFailure,
  type PartOp,
  type PartResult,
  type RangeDescriptor,
  staleEpoch,
  type TxnCommand,
  type TxnCommit,
  type TxnDecide,
  type TxnPartOutcome,
  type TxnPrepare,
  type TxnPrepareResult,
  type TxnResolution,
} from '@remora/protocol';
import { NewestRevision } from '../../src/routing/calls/newest-revision.ts';
import type { AskDone, RangeCallsDeps } from '../../src/routing/calls/range-calls.ts';
import { comparedSpan, keysSpan } from '../../src/routing/routes/request-keys.ts';
import { Routes } from '../../src/routing/routes/routes.ts';
import { execute, holds, inside, type Pairs } from './pairs.ts';

interface Record {
  readonly expiresMs: number;
  commit: TxnCommit | undefined;
}

interface FakeRange extends RangeDescriptor {
  readonly prepared: Map<string, TxnPrepare>;
  readonly aborted: Set<string>;
  readonly records: Map<string, Record>;
  /** By the client's request id. */
  readonly outcomes: Map<string, TxnPartOutcome>;
  /** By the command's own. */
  readonly answers: Map<string, CommandResult>;
}

const RETRIED_MS = 200;

/**
 * Ranges with fixed borders that take part in transactions by the rules of decision 19, each in one place, and a
 * network that is late or loses something. One process more or less ends whenever the test says. For tests.
 */
export class FakeRanges {
  readonly clock: ManualClock;
  readonly pairs: Pairs = new Map();
  /** What was committed, in the order in which it was. */
  readonly commits: { readonly requestId: string; readonly revision: number }[] = [];
  /** The requests of those that changed something. */
  readonly changed = new Set<string>();
  readonly ranges: readonly FakeRange[];
  /** What operations of every part cannot be executed for. */
  readonly failures: OpFailure[] = [];
  /** Per mille of calls that are lost, or whose answers are. */
  lossPerMille = 0;
  revision = 100;
  /** The version by which the only lock is held: that of the last of its grants. */
  held = 1;
  readonly grants: number[] = [1];
  readonly #random: Random;

  constructor(clock: ManualClock, random: Random, borders: readonly Uint8Array[]) {
    this.clock = clock;
    this.#random = random;
    const none = new Uint8Array(0);
    this.ranges = [none, ...borders].map((start, i) => ({
      ...{ rangeId: 2 + i, start, end: borders[i] ?? none, replicas: [], revisionSource: 'master' },
      epoch: { confVersion: 1, version: 2 },
      prepared: new Map(),
      aborted: new Set(),
      records: new Map(),
      outcomes: new Map(),
      answers: new Map(),
    }));
  }

  /** What a coordinator has of them, as long as it is `alive`, which is asked before and after each message. */
  calls(alive: (message: string) => boolean = () => true): RangeCallsDeps & {
    readonly random: Random;
    readonly draw: (floor: number, done: (error: undefined, revision: number | undefined) => void) => void;
    readonly newest: NewestRevision;
  } {
    const view = { clusterId: 'c', nodes: [], ranges: this.ranges, leaders: [], masterLeader: 0 };
    const routes = new Routes(this.clock, () => view);
    const tell = (revision: number, done: (error: undefined, revision: number) => void): void => {
      this.clock.setTimer(this.#random.int(4), () => alive('drawn') && done(undefined, revision));
    };
    return {
      ...{ clock: this.clock, routes, random: this.#random },
      ask: () => assert(false, 'a coordinator asks no range anything') as never,
      draw: (floor, done) => {
        if (!alive('draw')) return;
        this.revision = Math.max(this.revision, floor) + 1;
        tell(this.revision, done);
      },
      newest: new NewestRevision({
        ...{ clock: this.clock, random: this.#random },
        newest: (floor, done) => alive('draw') && tell(Math.max(this.revision, floor), done),
      }),
      execute: (build, span, { requestId, deadlineMs, timeoutMs }, done) => {
        const nowMs = this.clock.monotonicMs();
        const deadline = deadlineMs ?? nowMs + timeoutMs;
        const command = build(deadline, nowMs);
        if (!alive(`before ${command.type}`)) return () => {};
        return this.#send(command, { span, requestId, deadline, timeoutMs }, (error, reply) => {
          if (alive(`after ${command.type}`)) done(error, reply);
        });
      },
    };
  }

  #send(
    command: Command,
    how: { readonly span: Span; readonly requestId: string; readonly deadline: number; readonly timeoutMs: number },
    done: AskDone,
  ): () => void {
    let over = false;
    const finish: AskDone = (error, reply) => {
      if (!over) done(error, reply);
      over = true;
    };
    const lost = this.#random.int(1_000) < this.lossPerMille;
    const late = this.#random.int(1_000) < this.lossPerMille;
    const executed = !lost || this.#random.int(2) === 0;
    this.clock.setTimer(how.timeoutMs, () => {
      const code = executed ? 'UNKNOWN_OUTCOME' : 'DEADLINE_EXCEEDED';
      finish(new ServiceError(code, 'no answer'), undefined);
    });
    this.clock.setTimer(late ? this.#random.int(RETRIED_MS) : this.#random.int(4), () => {
      if (!executed) return;
      let error: ServiceError | undefined;
      let result: CommandResult = { type: 'noop' };
      try {
        result = this.#apply(command, how);
      } catch (thrown) {
        if (!(thrown instanceof ServiceError)) throw thrown;
        error = thrown;
      }
      const reply = { revision: this.revision, raftTerm: 3, rangeTimeMs: this.clock.monotonicMs(), result };
      if (!lost) this.clock.setTimer(this.#random.int(4), () => finish(error, error === undefined ? reply : undefined));
    });
    return () => {
      over = true;
    };
  }

  #apply(
    command: Command,
    { span, requestId, deadline }: { readonly span: Span; readonly requestId: string; readonly deadline: number },
  ): CommandResult {
    const range = this.ranges.find((one) => spanCovers(one, span));
    if (range === undefined) throw staleEpoch([]);
    const known = range.answers.get(requestId);
    if (known !== undefined) return known;
    if (deadline < this.clock.monotonicMs()) throw new ServiceError('DEADLINE_EXCEEDED', 'late');
    const result = this.#execute(range, command as TxnCommand);
    if (requestId !== '') range.answers.set(requestId, result);
    return result;
  }

  #execute(range: FakeRange, command: TxnCommand): CommandResult {
    switch (command.type) {
      case 'txnPrepare':
        return this.#prepare(range, command);
      case 'txnDecide':
        return this.#decide(range, command);
      case 'txnResolve': {
        const { txnId, requestId, resolution } = command;
        this.#resolve(range, txnId, resolution);
        const results = resolution.type === 'commit' ? range.outcomes.get(requestId)?.results : undefined;
        return { type: 'txnResolve', results };
      }
      case 'txnForget':
        range.records.delete(command.txnId);
        return { type: 'txnForget' };
    }
  }

  #prepare(range: FakeRange, prepare: TxnPrepare): TxnPrepareResult {
    const { txnId, requestId, primaryKey, part, expiresMs } = prepare;
    const earlier = range.outcomes.get(requestId);
    if (earlier !== undefined) {
      const { revision } = earlier.commit;
      return { type: 'txnPrepare', answer: 'remembered', revision, result: earlier };
    }
    if (range.aborted.has(txnId)) return { type: 'txnPrepare', answer: 'aborted' };
    const holders = [...range.prepared.values()].filter((other) => inTheWay(prepare, other));
    if (holders.length > 0) return { type: 'txnPrepare', answer: 'conflict', holders };
    range.prepared.set(txnId, prepare);
    if (part === 0) range.records.set(txnId, { expiresMs, commit: undefined });
    assert(part !== 0 || spanContains(range, primaryKey), 'the record lies beside its key');
    const compares = prepare.compares.map((one) => {
      const held = holds(one, this);
      return held === undefined ? 'nothing' : held ? 'holds' : 'fails';
    });
    const changes = ({ op }: PartOp): boolean => op.type === 'put' || (op.type === 'delete' && this.#has(op));
    const changing = prepare.ops.filter(changes).map(({ branch }) => branch);
    const { revision: floor, failures } = this;
    return { type: 'txnPrepare', answer: 'prepared', floor, compares, failures, changing };
  }

  #has(keys: KeyRange): boolean {
    return inside(this.pairs, keys).length > 0;
  }

  #decide(range: FakeRange, { txnId, requestId, decision }: TxnDecide): CommandResult {
    const record = range.records.get(txnId);
    if (record?.commit === undefined && record !== undefined && decision.type === 'commit') {
      if (record.expiresMs >= this.clock.monotonicMs()) {
        record.commit = { type: 'commit', revision: decision.revision, branches: decision.branches };
        this.commits.push({ requestId, revision: decision.revision });
      }
    }
    if (record?.commit === undefined) {
      this.#resolve(range, txnId, { type: 'abort' });
      range.records.delete(txnId);
      return { type: 'txnDecide', outcome: { state: 'aborted' }, results: undefined };
    }
    this.#resolve(range, txnId, record.commit);
    const results = range.outcomes.get(requestId)?.results;
    return { type: 'txnDecide', outcome: { state: 'committed', commit: record.commit }, results };
  }

  #resolve(range: FakeRange, txnId: string, resolution: TxnResolution): void {
    const part = range.prepared.get(txnId);
    if (resolution.type === 'abort') range.aborted.add(txnId);
    range.prepared.delete(txnId);
    if (part === undefined || resolution.type === 'abort') return;
    const executed = part.ops.filter(({ branch }) => resolution.branches.includes(branch));
    const changed = executed.some(({ op }) => op.type === 'put' || (op.type === 'delete' && this.#has(op)));
    if (changed) this.changed.add(part.requestId);
    const results = executed.map(({ number, op }): PartResult => {
      return { number, key: op.key, result: execute(op, this.pairs, resolution.revision) };
    });
    range.outcomes.set(part.requestId, { type: 'txnPart', txnId, commit: resolution, results });
  }

  /** The lock goes to its next holder, unless a transaction needs the one that it has. Gives whether it went. */
  handOver(): boolean {
    const isNeeded = this.ranges.some(({ prepared }) =>
      [...prepared.values()].some(({ compares }) => compares.some(isLockCompare)),
    );
    if (isNeeded) return false;
    this.held = ++this.revision;
    this.grants.push(this.held);
    return true;
  }

  /** What ranges do by themselves about transactions whose coordinators are gone. */
  recover(): void {
    for (const range of this.ranges) {
      for (const { txnId, primaryKey, expiresMs } of [...range.prepared.values()]) {
        if (expiresMs >= this.clock.monotonicMs()) continue;
        const home = this.ranges.find((one) => spanContains(one, primaryKey));
        const commit = home?.records.get(txnId)?.commit;
        if (commit === undefined) home?.records.delete(txnId);
        this.#resolve(range, txnId, commit ?? { type: 'abort' });
      }
    }
  }
}

function inTheWay(a: TxnPrepare, b: TxnPrepare): boolean {
  const writes = ({ ops }: TxnPrepare): readonly Span[] =>
    ops.filter(({ op }) => op.type !== 'range').map(({ op }: PartOp) => keysSpan(op));
  const all = ({ ops, compares }: TxnPrepare): readonly Span[] => [
    ...compares.map(comparedSpan),
    ...ops.map(({ op }) => keysSpan(op)),
  ];
  const meet = (some: readonly Span[], others: readonly Span[]): boolean =>
    some.some((one) => others.some((other) => overlap(one, other)));
  return meet(writes(a), all(b)) || meet(all(a), writes(b));
}

function overlap(a: Span, b: Span): boolean {
  const below = (start: Uint8Array, end: Uint8Array): boolean => end.length === 0 || Buffer.compare(start, end) < 0;
  return below(a.start, b.end) && below(b.start, a.end);
}
