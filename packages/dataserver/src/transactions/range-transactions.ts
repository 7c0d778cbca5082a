import { type Engine, ServiceError, type Span, spanContains, unreachable } from '@remora/base';
import {
  COMMAND_DEADLINE_MAX_MS,
  type Command,
  isKeyCompare,
  type KeyRange,
  type PartResult,
  prepareRequestId,
  type Query,
  type TxnCommand,
  type TxnCommandResult,
  type TxnCommit,
  type TxnDecide,
  type TxnDecideResult,
  type TxnPrepare,
  type TxnPrepareResult,
  type TxnResolve,
  type TxnResolveResult,
  type TxnState,
} from '@remora/protocol';
import type { RangeBounds } from '../state/bounds.ts';
import { nameOfTxnRow, type TxnRowKind, txnRowKey, txnRowsSpan } from '../state/keys.ts';
import type { KvChanges } from '../state/kv/kv-changes.ts';
import type { Prefetched } from '../state/kv/kv-read.ts';
import type { Attached } from '../state/leases/attachments.ts';
import type { LeaseEndingCommand } from '../state/leases/lease-ending.ts';
import { errorOf, type Outcome, outcomeBytes, rememberable } from '../state/outcomes/outcome-codec.ts';
import type { Outcomes } from '../state/outcomes/outcomes.ts';
import { conflictWith, joinedResults, rememberedResults } from './answers.ts';
import { holderOf, holderOfQuery } from './intent-conflicts.ts';
import { answerCompares, changingBranches, executeBranches, opFailures } from './part-execution.ts';
import {
  decodeRecord,
  encodeRecord,
  type HandedTransactions,
  type PreparedPart,
  preparedPart,
  spanOfPart,
  type TxnRecord,
} from './prepared-part.ts';
import { PreparedParts } from './prepared-parts.ts';
import { type RowWrites, StagedRows } from './staged-rows.ts';

/** Limits of the prepared parts of a range: their intents and their memory; further parts are refused. */
const INTENTS_MAX = 50_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** The largest number of decided records that wait to be forgotten. */
const RECORDS_MAX = 50_000;
/**
 * How much longer than the request's deadline a part's outcome is remembered. Two gateways that are asked one after the
 * other compute deadlines in the time of a range that differ by less than this.
 */
const DEADLINE_SLACK_MS = 10_000;

/** What the state of a range offers to its transactions. */
export interface TransactionHost {
  readonly rangeId: number;
  /** Whether the master numbers the range's changes: only then may the range share transactions with others. */
  readonly numbered: boolean;
  readonly revision: number;
  /** The highest revision at which the current command may read: the range's own, or a higher one (N6). */
  readonly readableRevision: number;
  readonly compactRevision: number;
  readonly rangeTimeMs: number;
  readonly bounds: RangeBounds;
  readonly outcomes: Outcomes;
  leaseKnown(id: bigint, key: Uint8Array): boolean;
  /** The plain keys and locks that a command takes from a lease. */
  takenBy(command: LeaseEndingCommand): Attached;
  /** Changes that will carry a revision. */
  changesAt(revision: number): KvChanges;
  /** Writes the changes; the last revision of the range becomes at least theirs (T5). */
  commitAt(revision: number, changes: KvChanges): void;
}

/**
 * Transactions over several ranges, as part of the replicated state of one of them: the rules T1–T10 are in
 * docs/decisions/0019-transactions-over-ranges.md.
 */
export class RangeTransactions {
  readonly #host: TransactionHost;
  readonly #parts = new PreparedParts();
  readonly #records = new StagedRows<TxnRecord>(encodeRecord);

  constructor(host: TransactionHost) {
    this.#host = host;
  }

  /**
   * The number of parts that are prepared and not resolved. It is nearly always 0, and then nothing else here needs to
   * be asked.
   */
  get prepared(): number {
    return this.#parts.size;
  }

  get parts(): IterableIterator<PreparedPart> {
    return this.#parts.all();
  }

  get records(): IterableIterator<TxnRecord> {
    return this.#records.values();
  }

  /** The number of parts and records. */
  get size(): number {
    return this.#parts.size + this.#records.size;
  }

  /** Prepared parts commit at or above this revision; infinity when none is prepared. */
  earliestCommit(): number {
    return this.#parts.earliestCommit;
  }

  record(txnId: string): TxnRecord | undefined {
    return this.#records.get(txnId);
  }

  isPrepared(txnId: string): boolean {
    return this.#parts.of(txnId).length > 0;
  }

  /** T2. Returns the part that a command has to wait for; undefined when the command may be executed. */
  holder(command: Command): PreparedPart | undefined {
    return this.#parts.size === 0 ? undefined : holderOf(command, this.#parts, (end) => this.#host.takenBy(end));
  }

  /**
   * T2. Returns the part that a query has to wait for. `closed`: nothing at or below it changes any more, whatever is
   *     prepared.
   */
  holderOfQuery(query: Query, closed: number): PreparedPart | undefined {
    return this.#parts.size === 0 ? undefined : holderOfQuery(query, this.#parts, closed);
  }

  /** Returns the leases of staged writes to keys in a span of routing keys. */
  leasesWithin(span: Span): ReadonlySet<bigint> {
    return this.#parts.leasesWithin(span);
  }

  // ------------------------------------------------------------------------------------------- commands

  /** Returns the operations that executing a command will evaluate: the cold rows that they read are fetched before. */
  evaluatedBy(command: TxnCommand): readonly KeyRange[] {
    switch (command.type) {
      case 'txnPrepare':
        return [...command.compares.filter(isKeyCompare), ...command.ops.map(({ op }) => op)];
      case 'txnDecide':
        return command.decision.type === 'commit' ? this.#committedOps(command.txnId) : [];
      case 'txnResolve':
        return command.resolution.type === 'commit' ? this.#committedOps(command.txnId) : [];
      case 'txnForget':
        return [];
      default:
        return unreachable(command);
    }
  }

  #committedOps(txnId: string): readonly KeyRange[] {
    return this.#parts.of(txnId).flatMap(({ ops }) => ops.map(({ op }) => op));
  }

  /**
   * Whether executing a command executes a part that is prepared here: such a command cannot fail (PE1 of
   * part-execution.ts).
   */
  commits(command: Command): boolean {
    switch (command.type) {
      case 'txnDecide':
        return command.decision.type === 'commit' && this.isPrepared(command.txnId);
      case 'txnResolve':
        return command.resolution.type === 'commit' && this.isPrepared(command.txnId);
      default:
        return false;
    }
  }

  execute(command: TxnCommand, deadlineMs: number, prefetched: Prefetched): TxnCommandResult {
    switch (command.type) {
      case 'txnPrepare':
        return this.#prepare(command, deadlineMs, prefetched);
      case 'txnDecide':
        return this.#decide(command, prefetched);
      case 'txnResolve':
        return this.#resolve(command, prefetched);
      case 'txnForget':
        return this.#forget(command.txnId);
      default:
        return unreachable(command);
    }
  }

  #prepare(command: TxnPrepare, deadlineMs: number, prefetched: Prefetched): TxnPrepareResult {
    const { txnId, part } = command;
    // T4: the commit has a revision above it, as it is drawn after the block of this entry.
    const { readableRevision: floor, compactRevision } = this.#host;
    const before = command.requestId === '' ? undefined : this.#remembered(command.requestId);
    if (before !== undefined) {
      if (!before.ok) throw errorOf(before);
      return { type: 'txnPrepare', answer: 'remembered', revision: before.revision, result: before.result };
    }
    this.#checkPrepare(command);
    const holders = this.#parts.against(txnId, command);
    if (holders.length > 0) return conflictWith(holders);
    const changes = this.#host.changesAt(floor);
    const compares = answerCompares(command, changes, prefetched);
    const failures = opFailures(command, {
      bounds: { revision: floor, compactRevision },
      leaseKnown: (id, key) => this.#host.leaseKnown(id, key),
      leaseOf: (key) => changes.get(key)?.lease,
    });
    const prepared = preparedPart(command, deadlineMs, floor);
    this.#parts.add(prepared);
    if (part === 0) this.#begin(prepared);
    const changing = changingBranches(command, changes, prefetched);
    return { type: 'txnPrepare', answer: 'prepared', floor, compares, failures, changing };
  }

  #checkPrepare({ txnId, part, expiresMs, compares, ops }: TxnPrepare): void {
    if (!this.#host.numbered) {
      throw new ServiceError(
        'INVALID_ARGUMENT',
        'a range that counts revisions by itself has no neighbour to share with',
      );
    }
    if (expiresMs < this.#host.rangeTimeMs) {
      throw new ServiceError('DEADLINE_EXCEEDED', 'the transaction expired before it was prepared');
    }
    if (this.#parts.has(txnId, part) || (part === 0 && this.#records.get(txnId) !== undefined)) {
      throw new ServiceError('INVALID_ARGUMENT', `part ${part} of transaction ${txnId} was prepared under another id`);
    }
    const more = compares.length + ops.length;
    const room = this.#parts.intents + more <= INTENTS_MAX && this.#parts.bytes <= BYTES_MAX;
    if (room && this.#records.size < RECORDS_MAX) return;
    throw new ServiceError('RESOURCE_EXHAUSTED', 'too many transactions are prepared in the range; try again later');
  }

  /** T1. */
  #begin(prepared: PreparedPart): void {
    const { txnId, primaryKey, requestId, expiresMs } = prepared;
    const spans = [spanOfPart(prepared)];
    this.#records.set(txnId, { txnId, primaryKey, requestId, expiresMs, spans, commit: undefined });
  }

  #decide(command: TxnDecide, prefetched: Prefetched): TxnDecideResult {
    const { txnId, decision } = command;
    const record = this.#records.get(txnId);
    if (record === undefined) {
      // T9. Only the coordinator aborts before the prepare can have arrived.
      if (decision.type === 'abort') this.#markAborted(txnId, 0);
      return decided({ state: 'aborted' });
    }
    if (record.commit !== undefined) return this.#committed(record.commit, txnId, command.requestId);
    const remainingMs = record.expiresMs - this.#host.rangeTimeMs;
    const abort = decision.type === 'abort' || remainingMs < 0;
    if (abort) {
      this.#release(txnId);
      this.#records.delete(txnId);
      return decided({ state: 'aborted' });
    }
    if (decision.type === 'push') return decided({ state: 'pending', remainingMs });
    const { revision, branches, others } = decision;
    const commit: TxnCommit = { type: 'commit', revision, branches: [...branches] };
    const results = this.#commit(txnId, commit, prefetched);
    const spans = [
      ...record.spans,
      ...others.map(({ start, end }) => ({ start: Buffer.from(start), end: Buffer.from(end) })),
    ];
    this.#records.set(txnId, { ...record, commit, spans });
    return { type: 'txnDecide', outcome: { state: 'committed', commit }, results };
  }

  #committed(commit: TxnCommit, txnId: string, requestId: string): TxnDecideResult {
    return { type: 'txnDecide', outcome: { state: 'committed', commit }, results: this.#resultsOf(txnId, requestId) };
  }

  #resolve(command: TxnResolve, prefetched: Prefetched): TxnResolveResult {
    const { txnId, part, requestId, resolution } = command;
    const here = this.isPrepared(txnId);
    if (resolution.type === 'abort') {
      if (here) this.#release(txnId);
      else this.#markAborted(txnId, part);
      return { type: 'txnResolve', results: undefined };
    }
    const results = here ? this.#commit(txnId, resolution, prefetched) : this.#resultsOf(txnId, requestId);
    return { type: 'txnResolve', results };
  }

  /** T5. Executes all that the range has of a transaction, at its revision. */
  #commit(txnId: string, commit: TxnCommit, prefetched: Prefetched): readonly PartResult[] | undefined {
    const parts = this.#parts.of(txnId);
    const changes = this.#host.changesAt(commit.revision);
    const ops = parts.flatMap((part) => part.ops).sort((a, b) => a.number - b.number);
    const { compactRevision } = this.#host;
    const results = executeBranches(ops, commit.branches, { changes, prefetched, compactRevision });
    const lowest = parts.reduce((high, { floor }) => Math.max(high, floor), 0) + (changes.any ? 1 : 0);
    if (commit.revision < lowest) {
      throw new ServiceError('INVALID_ARGUMENT', `revision ${commit.revision} is below ${lowest}, since the prepare`);
    }
    this.#release(txnId);
    this.#host.commitAt(commit.revision, changes);
    const [first] = parts;
    return first === undefined ? results : this.#remember(first, { txnId, commit, results });
  }

  #release(txnId: string): void {
    for (const part of this.#parts.of(txnId)) this.#parts.remove(part);
  }

  /**
   * T8. Returns all results that are known here now: a merged neighbour may have brought some. Returns undefined if
   *     some results are missing.
   */
  #remember(
    { requestId, deadlineMs }: PreparedPart,
    { txnId, commit, results }: { txnId: string; commit: TxnCommit; results: readonly PartResult[] },
  ): readonly PartResult[] | undefined {
    if (requestId === '') return results;
    const { outcomes, rangeTimeMs } = this.#host;
    const before = this.#remembered(requestId);
    const known = before === undefined ? [] : rememberedResults(before, txnId);
    if (known === undefined) return undefined;
    const all = joinedResults(results, known);
    const result = { type: 'txnPart', txnId, commit, results: all } as const;
    const outcome = rememberable({ ok: true, revision: commit.revision, result });
    const until = Math.max(deadlineMs, rangeTimeMs) + DEADLINE_SLACK_MS;
    outcomes.remember({ requestId, deadlineMs: until, outcome }, outcomeBytes(outcome));
    return all;
  }

  #resultsOf(txnId: string, requestId: string): readonly PartResult[] | undefined {
    return requestId === '' ? undefined : rememberedResults(this.#remembered(requestId), txnId);
  }

  #remembered(requestId: string): Outcome | undefined {
    return this.#host.outcomes.find(requestId, this.#host.rangeTimeMs);
  }

  /** T9. The deadline of a prepare in flight is no further ahead than that of any command may be. */
  #markAborted(txnId: string, part: number): void {
    const requestId = prepareRequestId(txnId, part);
    const { outcomes, revision, rangeTimeMs } = this.#host;
    if (this.#remembered(requestId) !== undefined) return;
    const outcome = { ok: true, revision, result: { type: 'txnPrepare', answer: 'aborted' } } as const;
    const deadlineMs = rangeTimeMs + COMMAND_DEADLINE_MAX_MS;
    outcomes.remember({ requestId, deadlineMs, outcome }, outcomeBytes(outcome));
  }

  /** T7. A merge may have brought a piece that its coordinator tried to resolve elsewhere, without effect. */
  #forget(txnId: string): TxnCommandResult {
    const done = this.#records.get(txnId)?.commit !== undefined && !this.isPrepared(txnId);
    if (done) this.#records.delete(txnId);
    return { type: 'txnForget' };
  }

  /** Returns the state of a transaction, if this range holds its record. */
  status(txnId: string, rangeTimeMs: number): TxnState {
    const record = this.#records.get(txnId);
    if (record === undefined) return { state: 'aborted' };
    if (record.commit !== undefined) return { state: 'committed', commit: record.commit };
    return { state: 'pending', remainingMs: Math.max(0, record.expiresMs - rangeTimeMs) };
  }

  // ------------------------------------------------------------------------------------------- the range changes

  /** Keeps what lies within the current bounds of the range, and returns what another range has from now on. */
  cut(leaving: RangeBounds): HandedTransactions {
    const records = [...this.#records.values()].filter(({ primaryKey }) => spanContains(leaving, primaryKey));
    for (const { txnId } of records) this.#records.delete(txnId);
    return { parts: this.#parts.cut(this.#host.bounds, leaving), records };
  }

  /** Returns everything, for a range whose time is ahead by this much. */
  handedOver(aheadMs: number): HandedTransactions {
    const parts = [...this.#parts.all()].map((part) => ({
      ...part,
      deadlineMs: part.deadlineMs + aheadMs,
      expiresMs: part.expiresMs + aheadMs,
    }));
    const records = [...this.#records.values()].map((one) => ({ ...one, expiresMs: one.expiresMs + aheadMs }));
    return { parts, records };
  }

  /** Brings the engine up to date when a checkpoint begins. */
  stage(engine: Pick<Engine, 'put' | 'delete'>): void {
    const rows = (kind: TxnRowKind): RowWrites => ({
      put: (name, bytes) => engine.put(txnRowKey(this.#host.rangeId, kind, name), bytes),
      delete: (name) => engine.delete(txnRowKey(this.#host.rangeId, kind, name)),
    });
    this.#parts.flush(rows('part'));
    this.#records.flush(rows('record'));
  }

  /** Loads what the engine holds into a new instance. */
  load(engine: Pick<Engine, 'scanResident'>): void {
    const rows = (kind: TxnRowKind) =>
      engine
        .scanResident(txnRowsSpan(this.#host.rangeId, kind))
        .map(({ key, value }) => ({ name: nameOfTxnRow(key), bytes: value }));
    this.#parts.load(rows('part'));
    this.#records.load(rows('record'), decodeRecord);
  }

  /** Takes over the transactions of another range: of the parent after a split, or of the neighbour after a merge. */
  takeOver({ parts, records }: HandedTransactions): void {
    this.#parts.takeOver(parts);
    for (const record of records) this.#records.set(record.txnId, record);
  }
}

function decided(outcome: TxnState): TxnDecideResult {
  return { type: 'txnDecide', outcome, results: undefined };
}
