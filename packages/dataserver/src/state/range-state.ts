import { assert, type Engine, loopSection, ServiceError } from '@remora/base';
import {
  type Command,
  type CommandBatch,
  type CommandResult,
  type KvEvent,
  needsRevision,
  type RangeDescriptor,
  type RevisionBlock,
} from '@remora/protocol';
import type { ConfChange, ConfState, LogPosition } from '@remora/raft';
import { heldOutcome, rememberedAnswer } from '../transactions/answers.ts';
import { RangeTransactions, type TransactionHost } from '../transactions/range-transactions.ts';
import { admissionRefusal } from './admission.ts';
import type { Applied, Applying } from './applied.ts';
import { boundsOf, type RangeBounds } from './bounds.ts';
import type { Effects, RangeStart, SessionEnd } from './effects.ts';
import { stateKey } from './keys.ts';
import { compact, raiseRevision, skipRevisions } from './kv/compaction.ts';
import { KvChanges } from './kv/kv-changes.ts';
import { NOTHING_PREFETCHED, type Prefetched, type RevisionBounds } from './kv/kv-read.ts';
import type { Attached } from './leases/attachments.ts';
import { applyLeaseCommand, takenBy } from './leases/lease-commands.ts';
import type { LeaseEndingCommand } from './leases/lease-ending.ts';
import { LeaseOwnership } from './leases/lease-ownership.ts';
import { LeaseReferences } from './leases/lease-references.ts';
import { type Lease, Leases } from './leases/leases.ts';
import { DelayedHolds } from './locks/delayed-holds.ts';
import { LockCommands } from './locks/lock-commands.ts';
import { decodeRangeMeta, encodeRangeMeta } from './meta-codec.ts';
import { nextRevision, readableRevision, shownRevision } from './numbering.ts';
import { failed, type Outcome, outcomeBytes, rememberable } from './outcomes/outcome-codec.ts';
import { loadOutcomes, stageOutcomes } from './outcomes/outcome-rows.ts';
import { Outcomes } from './outcomes/outcomes.ts';
import { prefetchCommand } from './prefetch.ts';
import type { RangeFields } from './range-fields.ts';
import { correctCounts, count } from './range-stats.ts';
import { descriptorAfter, descriptorAlone } from './reshape/membership.ts';
import { mergeInto, refuseMerge, seal, unseal } from './reshape/merge.ts';
import { type Merging, NEVER_MERGED } from './reshape/merging.ts';
import { placeRefusal, type SplitCommand, split, splitRefusal } from './reshape/split.ts';

interface Entry {
  readonly position: LogPosition;
  readonly batch: CommandBatch;
}

const NO_ENTRY: Entry = {
  position: { index: 0, term: 0 },
  batch: { rangeTimeMs: 0, wallMs: 0, epoch: { confVersion: 0, version: 0 }, commands: [] },
};

/**
 * The replicated state of one range, and the only code that changes it.
 *
 * A1. Deterministic: depends on the log alone, never on a clock, chance, or what is cached (conventions 2).
 * A2. A command past its deadline is refused, and one whose request id is remembered is answered from memory
 *     (applied once, design §7). The deadline is judged by the time stamped on the batch, which never goes back.
 * A3. Each command that changes something gets the next revision (numbering.ts); all its changes carry it.
 * A4. A failed command changes nothing, and does not affect the other commands of its entry.
 * A5. `applied` moves with the data: both are in memory until the same checkpoint (traps 15).
 * A6. A checkpoint may fall into an entry that waits for cold data. It records how many of the entry's commands are
 *     applied (`appliedAhead`), and the replay after a crash continues behind them.
 * A7. It reads and changes no row outside its bounds: other ranges have their rows in the same engine (bounds.ts).
 * A8. While the range is sealed for a merge, its log only moves its position (merge.ts MG1).
 * A9. The state row changes only with the position, which is another object after each entry. So a checkpoint writes
 *     the rows of ranges that have moved, however many ranges there are.
 */
export class RangeState implements RangeFields, TransactionHost {
  readonly #engine: Engine;
  readonly #effects: Effects;
  outcomes = new Outcomes();
  /** Leases whose home is this range. */
  readonly leases: Leases;
  /** References to leases of other ranges. */
  readonly references: LeaseReferences;
  readonly leaseOwnership: LeaseOwnership;
  readonly delays: DelayedHolds;
  readonly locks: LockCommands;
  /** Transactions over several ranges. */
  transactions: RangeTransactions;
  #descriptor: RangeDescriptor;
  #bounds: RangeBounds;
  applied: LogPosition = { index: 0, term: 0 };
  appliedAhead = 0;
  conf: ConfState;
  revision = 1;
  /** The entry that is being applied, or was applied last. */
  #entry: Entry = NO_ENTRY;
  compactRevision = 0;
  /** The leader's monotonic time from the last applied batch; it continues from term to term. */
  rangeTimeMs = 1;
  wallMs = 0;
  /** The current number of plain keys (range-stats.ts). */
  keys = 0;
  bytes = 0;
  estimatedSince = 0;
  /** The range's record of merges. */
  merging: Merging = NEVER_MERGED;
  /** The revisions at which the current command may read. */
  readonly #readBounds: RevisionBounds;
  /** A9. Where the state row in the engine stands; undefined: not known. */
  #storedAt: LogPosition | undefined;
  #storedAhead = 0;

  constructor(
    engine: Engine,
    options: { readonly descriptor: RangeDescriptor; readonly conf: ConfState; readonly effects: Effects },
  ) {
    this.#engine = engine;
    this.#effects = options.effects;
    this.#descriptor = options.descriptor;
    this.#bounds = boundsOf(options.descriptor);
    this.conf = options.conf;
    this.#readBounds = readBoundsOf(this);
    this.leases = new Leases(engine);
    this.references = new LeaseReferences(engine, () => this.rangeId);
    this.leaseOwnership = new LeaseOwnership(this.leases, this.references);
    this.delays = new DelayedHolds(engine);
    this.locks = new LockCommands(engine, this, options.effects);
    this.transactions = new RangeTransactions(this);
  }

  get rangeId(): number {
    return this.#descriptor.rangeId;
  }

  get descriptor(): RangeDescriptor {
    return this.#descriptor;
  }

  set descriptor(descriptor: RangeDescriptor) {
    this.#descriptor = descriptor;
    this.#bounds = boundsOf(descriptor);
    this.#storedAt = undefined; // a merge cuts a replica that it ends (replicas/merged-replicas.ts)
  }

  get bounds(): RangeBounds {
    return this.#bounds;
  }

  /** Loads what the engine holds for this range; returns false if it holds nothing. */
  load(): boolean {
    const row = this.#engine.get(stateKey(this.rangeId));
    if (row === undefined) return false;
    const meta = decodeRangeMeta(row);
    Object.assign(this, meta);
    this.#storedAt = undefined;
    this.outcomes = new Outcomes();
    loadOutcomes(this.#engine, this.rangeId, this.outcomes);
    this.leases.load(this.#bounds.routed);
    this.delays.load(this.#bounds.routed);
    this.references.load();
    this.transactions = new RangeTransactions(this);
    this.transactions.load(this.#engine);
    return true;
  }

  /** Loads the state with which the range begins, for which the engine holds nothing yet. */
  begin({ meta, outcomes, transactions, references, delays }: RangeStart): void {
    Object.assign(this, meta);
    this.#storedAt = undefined;
    this.outcomes = outcomes;
    for (const { key, value } of references) this.#engine.put(key, value);
    this.leases.load(this.#bounds.routed);
    this.delays.takeOver(delays);
    this.references.load();
    this.transactions.takeOver(transactions);
  }

  /** Writes what is kept in memory between checkpoints into the engine; called when a checkpoint or snapshot begins. */
  stage(): void {
    if (this.#storedAt !== this.applied || this.#storedAhead !== this.appliedAhead) {
      this.#engine.put(stateKey(this.rangeId), encodeRangeMeta(this));
      this.#storedAt = this.applied;
      this.#storedAhead = this.appliedAhead;
    }
    stageOutcomes(this.#engine, this.rangeId, this.outcomes);
    this.transactions.stage(this.#engine);
  }

  /**
   * Moves past a membership change that resulted in this configuration: the same as before if the change had no effect.
   */
  reconfigure(position: LogPosition, conf: ConfState, change: ConfChange): void {
    this.skip(position);
    if (change.transition === 'forced') return this.#goOnAlone(conf, change);
    this.descriptor = descriptorAfter(this.descriptor, { before: this.conf, conf, change });
    this.conf = conf;
  }

  #goOnAlone(conf: ConfState, change: ConfChange): void {
    this.descriptor = descriptorAlone(this.descriptor, change);
    this.conf = conf;
    skipRevisions(this);
  }

  /** Moves past an entry without commands: a leader's first entry. */
  skip(position: LogPosition): void {
    assert(position.index === this.applied.index + 1, `entry ${position.index} does not follow ${this.applied.index}`);
    this.applied = position;
  }

  /**
   * Begins to apply an entry (entry-run.ts). The caller then calls `applyCommand` until no command is left, then
   * `endEntry`.
   */
  beginEntry(position: LogPosition, batch: CommandBatch): void {
    assert(position.index === this.applied.index + 1, `entry ${position.index} does not follow ${this.applied.index}`);
    this.#entry = { position, batch };
    // A8. If the entry continues after a crash (A6), its time was adopted when it began: the seal may have been removed
    //     since.
    if (this.merging.seal !== undefined || this.appliedAhead > 0) return;
    this.rangeTimeMs = Math.max(this.rangeTimeMs, batch.rangeTimeMs);
    this.wallMs = batch.wallMs;
    this.outcomes.expire(this.rangeTimeMs);
  }

  /**
   * Applies the next command of the entry, the one at `appliedAhead`; undefined if none is left. Returns a promise if
   * it needs cold data; nothing else may be applied before that resolves.
   */
  applyCommand(): Applied | Promise<Applied> | undefined {
    const { batch } = this.#entry;
    const item = batch.commands[this.appliedAhead];
    if (item === undefined) return undefined;
    const refused = admissionRefusal(this, batch, item);
    const remembered = refused === undefined ? this.#remembered(item) : undefined;
    if (remembered !== undefined) return this.#passed(remembered, 'remembered');
    const waits = refused ?? this.#held(item.command) ?? this.#unnumbered(item.command);
    if (waits !== undefined) return this.#passed(waits, 'refused');
    const cold = prefetchCommand(this.#engine, item.command, this);
    if (cold === undefined) return this.#applyOne(item, NOTHING_PREFETCHED);
    return cold.then(
      (prefetched) => this.#applyOne(item, prefetched),
      (error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        assert(!this.transactions.commits(item.command), `PE1: what was prepared can be read: ${error.message}`);
        return this.#settle(item, failed(this.revision, error));
      },
    );
  }

  /** All commands of the entry are applied. */
  endEntry(): void {
    this.applied = this.#entry.position;
    this.appliedAhead = 0;
  }

  #passed(outcome: Outcome, how: Applying): Applied {
    this.appliedAhead++;
    return { outcome, how };
  }

  #remembered({ requestId, command }: CommandBatch['commands'][number]): Outcome | undefined {
    const outcome = requestId === '' ? undefined : this.outcomes.find(requestId, this.rangeTimeMs);
    return outcome && rememberedAnswer(command, outcome);
  }

  /** Refuses a command that has to wait for a transaction over several ranges (T2 of decision 19). */
  #held(command: Command): Outcome | undefined {
    const holder = this.transactions.holder(command);
    return holder && heldOutcome(this.revision, holder);
  }

  /** N3: refuses a command if no revision is left for its changes. */
  #unnumbered(command: Command): Outcome | undefined {
    if (this.#nextRevision() !== undefined || !needsRevision(command)) return undefined;
    const message = 'other changes took the revisions that were drawn for this one; nothing was changed';
    return failed(this.revision, new ServiceError('UNAVAILABLE', message));
  }

  /** Revisions that were drawn for the entry (numbering.ts). */
  get #block(): RevisionBlock | undefined {
    return this.#entry.batch.block;
  }

  #nextRevision(): number | undefined {
    return nextRevision(this.descriptor.revisionSource, this.revision, this.#block);
  }

  /** The highest revision at which the current command may read (N6). */
  get readableRevision(): number {
    return readableRevision(this.#entry.batch, this.revision);
  }

  /** For a command that needs a revision: it is executed only if there is one (N3). */
  get nextRevision(): number {
    const next = this.#nextRevision();
    assert(next !== undefined, 'N3: what may change something is executed only when there is a revision for it');
    return next;
  }

  #applyOne(item: CommandBatch['commands'][number], prefetched: Prefetched): Applied {
    let outcome: Outcome;
    try {
      const result = this.#execute(item, prefetched);
      outcome = { ok: true, revision: shownRevision(item.command, this.revision, this.#block), result };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      outcome = failed(this.revision, error);
    }
    return this.#settle(item, outcome);
  }

  #settle(item: CommandBatch['commands'][number], outcome: Outcome): Applied {
    if (item.requestId !== '') {
      const kept = rememberable(outcome);
      this.outcomes.remember(
        { requestId: item.requestId, deadlineMs: item.deadlineMs, outcome: kept },
        outcomeBytes(kept),
      );
    }
    return this.#passed(outcome, 'executed');
  }

  #execute(item: CommandBatch['commands'][number], prefetched: Prefetched): CommandResult {
    const { command } = item;
    const { term } = this.#entry.position;
    switch (command.type) {
      case 'kv': {
        const changes = this.#changes();
        const result = changes.evaluate(command.op, prefetched);
        if (changes.any) this.#commit(changes);
        return result;
      }
      case 'txn': {
        const changes = this.#changes();
        const result = changes.txn(command.txn, prefetched);
        if (changes.any) this.#commit(changes);
        return result;
      }
      case 'lock':
        return this.locks.execute(command);
      case 'compact':
        return compact(this, command.revision);
      case 'raiseRevision':
        return raiseRevision(this, command.to);
      case 'recount':
        return correctCounts(this, command);
      case 'leaseRevoke':
      case 'leaseExpire':
      case 'leaseEnd':
        return loopSection('leaseEnd', () => applyLeaseCommand(this, command, term));
      case 'leaseGrant':
      case 'leaseChange':
      case 'leaseCheckpoint':
      case 'leaseRegister':
      case 'leaseRefer':
      case 'leaseSettle':
        return applyLeaseCommand(this, command, term);
      case 'split':
        return loopSection('split', () => split(this, command, { engine: this.#engine, effects: this.#effects, term }));
      case 'txnPrepare':
      case 'txnDecide':
      case 'txnResolve':
      case 'txnForget':
        return this.transactions.execute(command, item.deadlineMs, prefetched);
      case 'seal':
        return this.#seal(seal(this, command, this.applied.index + 1));
      case 'unseal':
        return this.#seal(unseal(this, command));
      case 'merge':
        return loopSection('merge', () => mergeInto(this, command, this.#effects));
      case 'refuseMerge':
        return refuseMerge(this, command.round);
      case 'noop':
        return { type: 'noop' };
    }
  }

  /** A read may find no revision left; it changes nothing (N4). */
  #changes(revision = this.#nextRevision() ?? this.revision + 1): KvChanges {
    const owners = this.leaseOwnership;
    return new KvChanges(this.#engine, { revision, bounds: this.#readBounds, owners, locks: this.locks });
  }

  #commit(changes: KvChanges, revision = this.nextRevision): void {
    // The revision of a transaction over several ranges may be below what was applied since it was prepared.
    this.revision = Math.max(this.revision, revision);
    const events: KvEvent[] = [];
    const grown = changes.commit((event) => events.push(event));
    count(this, grown);
    if (events.length > 0) this.#effects.onEvents(revision, events);
  }

  // ---------------------------------------------------------------------- what its transactions see of it

  get numbered(): boolean {
    return this.#descriptor.revisionSource === 'master';
  }

  leaseKnown(id: bigint, key: Uint8Array): boolean {
    return this.leaseOwnership.known(id, key);
  }

  takenBy(command: LeaseEndingCommand): Attached {
    return takenBy(this, command);
  }

  changesAt(revision: number): KvChanges {
    const owners = this.leaseOwnership.ofPrepared;
    const bounds = { revision: Math.max(this.readableRevision, revision), compactRevision: this.compactRevision };
    return new KvChanges(this.#engine, { revision, bounds, owners, locks: this.locks });
  }

  commitAt(revision: number, changes: KvChanges): void {
    this.#commit(changes, revision);
  }

  /** Why the range cannot be split like this; undefined if it can. */
  splitRefusal(command: SplitCommand): ServiceError | undefined {
    const { descriptor, conf } = this;
    return splitRefusal(command, { descriptor, conf });
  }

  /** Why the range cannot be split at a routing key now; undefined if it can. */
  placeRefusal(at: Uint8Array): ServiceError | undefined {
    const { descriptor, conf } = this;
    return placeRefusal(at, { descriptor, conf });
  }

  #seal(result: CommandResult): CommandResult {
    this.#effects.onSealed();
    return result;
  }

  onLeaseGranted(lease: Lease): void {
    this.#effects.onLeaseGranted(lease);
    this.#effects.meter?.sessionOpened();
  }

  onLeaseEnded(id: bigint, how: SessionEnd): void {
    this.#effects.onLeaseEnded(id, { revision: this.revision, isWhole: this.leases.ending(id) === undefined });
    this.#effects.meter?.sessionEnded(how);
  }
}

/** One object for all commands: it follows the state and the entry. */
function readBoundsOf(state: Pick<RangeState, 'readableRevision' | 'compactRevision'>): RevisionBounds {
  return {
    get revision() {
      return state.readableRevision;
    },
    get compactRevision() {
      return state.compactRevision;
    },
  };
}
