/**
 * One range of the simulation of leases: its state and its leader's lease manager, over a log that is a queue. It has
 * one leader at a time. A leader change loses proposals that are not applied, and everything that leaders keep in
 * memory.
 */
import { InvariantError, ServiceError } from '@remora/base';
import {
  type Command,
  type CommandResult,
  type Epoch,
  needsRevision,
  type Query,
  type QueryResult,
  type RangeReply,
  staleEpoch,
} from '@remora/protocol';
import { LeaseManager } from '../../../packages/dataserver/src/range/leases/lease-manager.ts';
import type { RangeStart } from '../../../packages/dataserver/src/state/effects.ts';
import { EntryRun, type OnOutcome } from '../../../packages/dataserver/src/state/entry-run.ts';
import { leaseKey } from '../../../packages/dataserver/src/state/keys.ts';
import { encodeLease, type Lease } from '../../../packages/dataserver/src/state/leases/leases.ts';
import { errorOf, type Outcome } from '../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import { RangeState } from '../../../packages/dataserver/src/state/range-state.ts';
import { commandWithin } from '../../../packages/dataserver/src/state/request-bounds.ts';
import { CONF } from '../../../packages/dataserver/test/support/state-bed.ts';
import type { World } from './world.ts';

export type Answer = (error: ServiceError | undefined, result: CommandResult | undefined) => void;

export interface Request {
  readonly command: Command;
  readonly requestId: string;
  /** The epoch `version` that this entry creates. */
  readonly version: number;
}

interface Proposed {
  readonly command: Command;
  readonly requestId: string;
  readonly epoch: Epoch;
  readonly done: (error: ServiceError | undefined, outcome: Outcome | undefined) => void;
}

/** How long the outcome of a request is remembered: longer than any message takes. */
const DEADLINE_MS = 100_000;
const AUDIT_MS = 150;

export class SimRange {
  readonly #world: World;
  state: RangeState;
  leaseManager: LeaseManager;
  /** The term of the current leader, or of the last one. */
  term = 0;
  serving = false;
  /** Merged into another range. */
  gone = false;
  /** Appended to the log, but not yet applied. */
  readonly #log: Proposed[] = [];
  /** Wait for revisions from the master. */
  readonly #waiting: Proposed[] = [];
  #applying = false;

  constructor(world: World, start: RangeStart | undefined, state?: RangeState) {
    this.#world = world;
    this.state = state ?? this.#newState(start?.meta.descriptor ?? world.first);
    if (start !== undefined) this.state.begin(start);
    this.leaseManager = this.#newLeaseManager();
    this.#leadLater();
  }

  get id(): number {
    return this.state.rangeId;
  }

  #newState(descriptor: RangeState['descriptor']): RangeState {
    const { truth, engine } = this.#world;
    return new RangeState(engine, {
      descriptor,
      conf: CONF,
      effects: {
        onEvents: (_revision, events) => truth.events(events),
        onNotice() {},
        onHoldDelayed() {},
        onLeaseGranted: (lease: Lease) => this.leaseManager.granted(lease),
        onLeaseEnded: (id, end) => this.leaseManager.ended(id, end),
        onSplit: (child) => this.#world.splitOff(child),
        onSealed() {},
        onMerged() {},
        source(): never {
          throw new InvariantError('merges are no commands here');
        },
      },
    });
  }

  #newLeaseManager(): LeaseManager {
    const { clock, engine } = this.#world;
    const { state, term } = this;
    return new LeaseManager({
      clock,
      engine,
      state,
      others: this.#world.others,
      source: this.#world.source,
      ...(this.#world.mayForget && { auditMs: AUDIT_MS }),
      term: () => (this.serving && this.term === term && !this.gone ? term : 0),
      rangeTimeMs: () => state.rangeTimeMs,
      commands: {
        propose: (command, done) => this.#propose(command, '', (_error, outcome) => done?.(outcome)),
        proposeAlone: (command, done) => this.#propose(command, '', done),
      },
    });
  }

  // ------------------------------------------------------------------------------------------------ requests

  /** As `RangeReplica.execute` does. */
  execute(request: Request, answer: Answer): void {
    if (!this.serving || this.gone) return answer(notLeader(), undefined);
    const { command } = request;
    // LR4 of lease-references.ts: leftovers of this lease would be attributed to a new lease with the same id.
    if (command.type === 'leaseGrant' && this.#world.forgotten.has(command.id)) return answer(notLeader(), undefined);
    if (this.#isMisrouted(request) || !this.leaseManager.mustHold(command)) return this.#execute(request, answer);
    this.leaseManager.hold(command, (error) => {
      if (error !== undefined) answer(error, undefined);
      else this.#execute(request, answer);
    });
  }

  #execute(request: Request, answer: Answer): void {
    if (!this.serving || this.gone) return answer(notLeader(), undefined);
    const { command, requestId } = request;
    if (command.type === 'leaseEnd') this.leaseManager.endTold(command.id);
    const told = (error: ServiceError | undefined, reply: RangeReply | undefined): void => {
      answer(error, reply === undefined ? undefined : (reply.result as CommandResult));
    };
    const settled = (error: ServiceError | undefined, outcome: Outcome | undefined): void => {
      if (outcome === undefined) return told(error, undefined);
      const reply = outcome.ok
        ? { revision: outcome.revision, raftTerm: this.term, rangeTimeMs: 0, result: outcome.result }
        : errorOf(outcome);
      if (command.type === 'leaseRevoke') this.leaseManager.answerRevoke(command.id, reply, told);
      else if (reply instanceof ServiceError) told(reply, undefined);
      else told(undefined, reply);
    };
    if (!this.#isMisrouted(request)) return this.#propose(command, requestId, settled);
    const outcome = requestId === '' ? undefined : this.state.outcomes.recall(requestId); // CM3 of the commands
    settled(staleEpoch([this.state.descriptor]), outcome);
  }

  #isMisrouted({ version, command }: Request): boolean {
    return version !== this.state.descriptor.epoch.version || !commandWithin(this.state.bounds, command);
  }

  /** A leader's answer, from the applied state. Undefined: there is no leader. */
  answer(query: Query): QueryResult | undefined {
    if (query.type !== 'leaseTimeToLive') throw new InvariantError(`nobody asks for ${query.type}`);
    if (!this.serving || this.gone) return undefined;
    const { id } = query;
    const { incarnation = 0, ttlMs = -1 } = this.state.leases.get(id) ?? {};
    const lease = {
      id,
      incarnation,
      grantedTtlMs: ttlMs,
      remainingMs: ttlMs,
      keys: [],
      attributes: {},
      endsEmpty: false,
    };
    return { type: 'leaseTimeToLive', lease };
  }

  /**
   * Forgets one lease, or which ranges have keys of it, as a range may that lost its majority. Returns the lease's id
   * if there was a lease.
   */
  forget(): bigint | undefined {
    const { engine, random, truth } = this.#world;
    const { leases, bounds } = this.state;
    this.#silence();
    this.applyAll();
    const known = [...leases.all(), ...leases.allEnding()].filter(({ spans }) => spans.length > 0);
    const lease = known[random.int(Math.max(1, known.length))];
    const isGone = lease !== undefined && (leases.ending(lease.id) !== undefined || !leases.attached.any(lease.id));
    if (isGone) engine.delete(leaseKey(lease.id));
    else if (lease !== undefined) engine.put(leaseKey(lease.id), encodeLease({ ...lease, spans: [], ending: false }));
    if (lease !== undefined) truth.forgotten(lease, isGone);
    leases.load(bounds.routed);
    this.#leadLater();
    return lease?.id;
  }

  // ------------------------------------------------------------------------------------------------ log

  /** Like a leader's proposals: a command that needs a revision waits for it, and other commands may overtake it. */
  #propose(command: Command, requestId: string, done: Proposed['done']): void {
    if (!this.serving || this.gone) return done(notLeader(), undefined);
    const { epoch } = this.state.descriptor;
    const proposed = { command, requestId, epoch, done };
    if (!needsRevision(command)) return this.#append(proposed);
    this.#waiting.push(proposed);
    this.#world.later(8, () => {
      const at = this.#waiting.indexOf(proposed);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      if (epoch.version === this.state.descriptor.epoch.version) this.#append(proposed);
      else done(staleEpoch([this.state.descriptor]), undefined);
    });
  }

  #append(proposed: Proposed): void {
    this.#log.push(proposed);
    this.#applySoon();
  }

  #applySoon(): void {
    if (this.#applying) return;
    this.#applying = true;
    this.#world.later(6, () => {
      this.#applying = false;
      this.#applyNext();
      if (this.#log.length > 0) this.#applySoon();
    });
  }

  #applyNext(): void {
    const next = this.#log.shift();
    if (next === undefined) return;
    const { clock, truth } = this.#world;
    const { command, requestId, epoch } = next;
    const { rangeTimeMs, applied } = this.state;
    const deadlineMs = requestId === '' ? 0 : rangeTimeMs + DEADLINE_MS;
    truth.applying(command);
    const position = { index: applied.index + 1, term: this.term };
    const batch = {
      ...{ rangeTimeMs: clock.monotonicMs(), wallMs: 0, epoch, block: this.#world.block() },
      commands: [{ requestId, deadlineMs, command }],
    };
    const onOutcome: OnOutcome = (_i, outcome, how) => {
      if (how === 'executed') truth.applied(this.state, command, outcome);
      next.done(undefined, outcome);
    };
    void EntryRun.begin(this.state, position, batch, { onOutcome }).apply();
    this.leaseManager.applied();
  }

  applyAll(): void {
    while (this.#log.length > 0) this.#applyNext();
  }

  /** A new leader, or the same node again. It begins with the contents of the log. */
  elect(): void {
    const { random } = this.#world;
    this.#silence();
    for (const { done } of this.#log.splice(random.int(this.#log.length + 1))) done(unknown(), undefined);
    this.applyAll();
    if (random.int(3) === 0) this.#restart();
    this.#leadLater();
  }

  #leadLater(): void {
    this.#world.later(100, () => {
      if (this.gone || this.serving) return;
      this.term++;
      this.serving = true;
      this.leaseManager = this.#newLeaseManager();
      this.leaseManager.start(this.term);
    });
  }

  #silence(): void {
    this.serving = false;
    this.leaseManager.stop(notLeader());
    for (const { done } of this.#waiting.splice(0)) done(notLeader(), undefined);
  }

  /** Reads its state from the engine, as it does after a crash. */
  #restart(): void {
    this.state.stage();
    const { descriptor } = this.state;
    this.state = this.#newState(descriptor);
    this.state.load();
  }

  /** Absorbs its right neighbour, which has applied its whole log, as a merge does. */
  absorb(right: SimRange): void {
    right.#silence();
    right.gone = true;
    const { left, other } = { left: this.state.descriptor, other: right.state.descriptor };
    const version = Math.max(left.epoch.version, other.epoch.version) + 1;
    this.state.descriptor = { ...left, end: other.end, epoch: { ...left.epoch, version } };
    this.state.revision = Math.max(this.state.revision, right.state.revision);
    this.state.references.absorb(right.id);
    this.state.leases.load(this.state.bounds.routed);
    this.elect();
  }
}

function notLeader(): ServiceError {
  return new ServiceError('NOT_LEADER', 'this replica does not lead the range');
}

export function unknown(): ServiceError {
  return new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');
}
