/**
 * Checks the results of commands on all replicas, over restarts and snapshots. A command has one position in its
 * range's log: the index of an entry and a place in it.
 *
 * A1. Applied once: a request is executed at one position only, in one range or as one transaction over several,
 *     however often it was sent. A repeated request gets the first answer. A part of a transaction that is prepared too
 *     late gets the answer that its abort has left.
 * A2. Every replica computes the same result for a command, whenever it applies it, down to the last row that it
 *     writes.
 * A3. A refused or failed command changes nothing.
 * A4. Each revision belongs to one command, and revisions grow with the log.
 */
import type { AppliedCommand } from '@remora/dataserver';
import { type Command, type PartResult, prepareRequestId } from '@remora/protocol';
import { require } from '../../common/violation.ts';

/** The command as it was first seen on any replica. */
export interface KnownCommand extends AppliedCommand {
  /** A digest of the rows that it wrote; 0 for none. */
  readonly digest: number;
}

/** The result of a client's request. */
export interface Executed {
  readonly ok: boolean;
  readonly changed: boolean;
  /** The revision of its answer; undefined if several ranges executed it, each at its own. */
  readonly revision: number | undefined;
}

/** A transaction over several ranges, for a client's request. */
interface Committed {
  readonly txnId: string;
  readonly revision: number;
  /** A part of it changed a key, as far as parts are applied: otherwise other commands may have the same revision. */
  readonly changed: boolean;
}

const PLACES_MAX = 2 ** 16;

class RangeCommands {
  readonly byPosition = new Map<number, KnownCommand>();
  /** The command with each revision. */
  readonly byRevision = new Map<number, KnownCommand>();
}

export class AppliedCommands {
  readonly #ranges = new Map<number, RangeCommands>();
  /** Over all ranges: outcomes from before a split are remembered on both sides of it. */
  readonly #executed = new Map<string, KnownCommand>();
  readonly #committed = new Map<string, Committed>();
  /** Parts of transactions whose abort was applied, by the requests that prepare them. */
  readonly #aborted = new Set<string>();
  readonly #merged: (sourceId: number) => void;
  readonly #sawAll: boolean;
  #count = 0;

  /**
   * `merged` is called when a replica has applied the merge of a range into another one. `sawAll` is false for a
   * replica that begins with a checkpoint: it may answer from outcomes of commands that were executed before this
   * object existed.
   */
  constructor(merged: (sourceId: number) => void = () => {}, sawAll = true) {
    this.#merged = merged;
    this.#sawAll = sawAll;
  }

  /** The result of a request, where it was executed. */
  executed(requestId: string): Executed | undefined {
    const committed = this.#committed.get(requestId);
    if (committed !== undefined) return { ok: true, ...committed };
    const known = this.#executed.get(requestId);
    if (known === undefined) return undefined;
    const { outcome, command, revision, revisionBefore } = known;
    if (isForEach(command)) return { ok: outcome.ok, changed: false, revision: undefined };
    return { ok: outcome.ok, changed: outcome.ok && revision > revisionBefore, revision: outcome.revision };
  }

  /** A replica has applied a command and written rows of this digest. */
  applied(nodeId: number, command: AppliedCommand, digest: number): void {
    const { rangeId, index, place } = command;
    const range = this.#range(rangeId);
    const position = index * PLACES_MAX + place;
    const known = range.byPosition.get(position);
    const now: KnownCommand = { ...command, digest };
    if (known !== undefined) return same(nodeId, known, now);
    range.byPosition.set(position, now);
    changesNothingInVain(now);
    if (command.how === 'executed') this.#executedOnce(now);
    if (command.command.type === 'merge' && command.outcome.ok) this.#merged(command.command.source.descriptor.rangeId);
    if (command.how === 'remembered') this.#answeredAsBefore(now);
    if (command.revision !== command.revisionBefore) revisionOfItsOwn(range, now);
    this.#count++;
  }

  /** Changes of a range behind this entry of its log are lost, together with everyone who knew of them. */
  lost(rangeId: number, afterIndex: number): void {
    const isLost = (known: KnownCommand): boolean => known.rangeId === rangeId && known.index > afterIndex;
    const { byPosition, byRevision } = this.#range(rangeId);
    for (const commands of [byPosition, byRevision]) {
      for (const [at, known] of commands) if (isLost(known)) commands.delete(at);
    }
    for (const [requestId, known] of this.#executed) if (isLost(known)) this.#executed.delete(requestId);
  }

  /** The number of applied commands, each counted once. */
  get count(): number {
    return this.#count;
  }

  #range(rangeId: number): RangeCommands {
    let range = this.#ranges.get(rangeId);
    if (range === undefined) {
      range = new RangeCommands();
      this.#ranges.set(rangeId, range);
    }
    return range;
  }

  /** A1. */
  #executedOnce(now: KnownCommand): void {
    const { command, outcome } = now;
    if (command.type === 'txnResolve' && command.resolution.type === 'abort' && outcome.ok) {
      this.#aborted.add(prepareRequestId(command.txnId, command.part));
    }
    // The first part, before it was prepared: from version 0.2 on, prepares may wait for a block of revisions.
    if (command.type === 'txnDecide' && command.decision.type === 'abort' && outcome.ok) {
      this.#aborted.add(prepareRequestId(command.txnId, 0));
    }
    const committed = committedBy(now);
    if (committed !== undefined) this.#committedOnce(committed, now);
    if (now.requestId === '') return;
    const before = this.#executed.get(now.requestId);
    const again = isForEach(now.command) && before?.rangeId !== now.rangeId;
    require(before === undefined || again, 'applied once', () =>
      `request ${now.requestId} was executed as ${place(now)}, and before as ${before === undefined ? '' : place(before)}`);
    this.#executed.set(now.requestId, now);
    this.#eitherWay(now.requestId);
  }

  /** Each range of a transaction has a part, and one attempt commits. */
  #committedOnce({ requestId, ...committed }: Committed & { readonly requestId: string }, now: KnownCommand): void {
    if (requestId === '') return;
    const before = this.#committed.get(requestId) ?? committed;
    require(before.txnId === committed.txnId && before.revision === committed.revision, 'applied once', () =>
      `request ${requestId} was committed as ${committed.txnId} at ${committed.revision} by ${place(now)}, ` +
      `and before as ${before.txnId} at ${before.revision}`);
    this.#committed.set(requestId, { ...before, changed: before.changed || committed.changed });
    this.#eitherWay(requestId);
  }

  /** A request is executed in one range, or over several. */
  #eitherWay(requestId: string): void {
    const [one, several] = [this.#executed.get(requestId), this.#committed.get(requestId)];
    const both = one !== undefined && several !== undefined && one.outcome.ok;
    require(!both, 'applied once', () =>
      `request ${requestId} was executed as ${one === undefined ? '' : place(one)}, and committed as ${several?.txnId}`);
  }

  /** A1. */
  #answeredAsBefore(now: KnownCommand): void {
    if (this.#committed.has(now.requestId) || (isAborted(now) && this.#aborted.has(now.requestId))) return;
    const before = this.#executed.get(now.requestId);
    if (before === undefined && !this.#sawAll) return;
    const right = before !== undefined && (isForEach(now.command) || before.outcome.revision === now.outcome.revision);
    require(right, 'applied once', () =>
      `${place(now)} was answered as request ${now.requestId} was before, at revision ${now.outcome.revision}; ` +
      (before === undefined ? 'it never was executed' : `it was executed at revision ${before.outcome.revision}`));
  }
}

/** Whether each range that the command concerns executes it under one request id. */
function isForEach({ type }: Command): boolean {
  return type === 'compact';
}

/** Whether the outcome reports, at the prepare of a part, that its transaction is aborted. */
function isAborted({ outcome }: KnownCommand): boolean {
  return outcome.ok && outcome.result.type === 'txnPrepare' && outcome.result.answer === 'aborted';
}

/** What a decision or its execution reveals about a client's request. */
function committedBy({ command, outcome }: KnownCommand): (Committed & { readonly requestId: string }) | undefined {
  if (!outcome.ok) return undefined;
  const { result } = outcome;
  if (command.type === 'txnResolve' && command.resolution.type === 'commit') {
    const { txnId, requestId, resolution } = command;
    const changed = result.type === 'txnResolve' && changedBy(result.results);
    return { txnId, requestId, revision: resolution.revision, changed };
  }
  if (command.type !== 'txnDecide' || result.type !== 'txnDecide' || result.outcome.state !== 'committed')
    return undefined;
  const { txnId, requestId } = command;
  return { txnId, requestId, revision: result.outcome.commit.revision, changed: changedBy(result.results) };
}

function changedBy(results: readonly PartResult[] | undefined): boolean {
  return (results ?? []).some(
    ({ result }) => result.type === 'put' || (result.type === 'delete' && result.deleted > 0),
  );
}

/** A2. */
function same(nodeId: number, known: KnownCommand, now: KnownCommand): void {
  require(told(known) === told(now), 'applied alike', () =>
    `${place(now)} became on node ${nodeId}: ${told(now)}; on another replica: ${told(known)}`);
}

/** A3. */
function changesNothingInVain(now: KnownCommand): void {
  const changed = now.revision !== now.revisionBefore || now.digest !== 0;
  const may = now.how === 'executed' && now.outcome.ok;
  require(may || !changed, 'refused writes have no effect', () => `${place(now)} changed something: ${told(now)}`);
}

/** A4. */
function revisionOfItsOwn({ byRevision }: RangeCommands, now: KnownCommand): void {
  const other = byRevision.get(now.revision);
  require(other === undefined, 'revisions are unique', () =>
    `revision ${now.revision} names ${place(now)} and ${other === undefined ? '' : place(other)}`);
  require(now.revision > now.revisionBefore, 'revisions grow', () =>
    `${place(now)} took revision ${now.revisionBefore} to ${now.revision}`);
  byRevision.set(now.revision, now);
}

function told({ requestId, how, revisionBefore, revision, outcome, digest }: KnownCommand): string {
  const result = outcome.ok ? outcome.result.type : outcome.code;
  return (
    `request "${requestId}" ${how}, ${result} at ${outcome.revision}, revision ${revisionBefore} → ${revision}, ` +
    `rows ${digest.toString(16)}`
  );
}

function place({ rangeId, index, place: at }: KnownCommand): string {
  return `command ${at} of entry ${index} of range ${rangeId}`;
}
