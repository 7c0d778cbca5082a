/**
 * The ranges, for doors: each request is decided about before it is sent. Every door goes through here.
 *
 * AB1. A request is decided as a whole, and carries the revision of the decision; ranges that know a newer one send it
 *      back (decisions.ts DE1, DE2; routing's request.ts Q5).
 * AB2. While authentication is off, that costs one look at a field. The request is decided about all the same when a
 *      range knows that authentication is on.
 * AB3. A command that is refused, and has the request id of its client, may have been sent before, when it was allowed:
 *      it is not executed, and the client learns the outcome if there is one (routing's recall.ts).
 * AB4. Watches, and waits for locks, are decided about again whenever users and roles change, or are not known for sure
 *      any more (auth's known-auth.ts KA2). Those that are no longer allowed end.
 * AB5. A session that begins belongs to its caller, whatever its request says.
 * AB6. A request id that its client has chosen stands for a command of its user only: other users may guess it. They
 *      neither learn the outcome by it, nor leave one that its user then takes for its own.
 * AB7. What an answer shows of a lease is decided about once more: its keys, some of which may have been attached since
 *      the decision, and what its client says of itself, which only those see who may see the session.
 */
import {
  type Audit,
  isPlain,
  type KnownAuth,
  NO_AUDIT,
  needsOfCommand,
  needsOfQuery,
  type PlainNeed,
  type Principal,
} from '@remora/auth';
import { type Clock, type ServiceError, type Timer, TransientMap } from '@remora/base';
import {
  type ClusterView,
  type Command,
  type CommandResult,
  NO_OWNER,
  type Query,
  type QueryResult,
} from '@remora/protocol';
import type {
  Asked,
  Backend,
  BackendDone,
  LockWatchEnd,
  LockWatchListener,
  LockWatchOptions,
  RequestOptions,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '../backend.ts';
import { AuditedCalls } from './audited-calls.ts';
import { boundRequestId } from './chosen-request-id.ts';
import type { ClearedBackend } from './cleared-backend.ts';
import { Decisions, refusalOf } from './decisions.ts';
import { needOfShownSession, needsOfShownKeys } from './lease-needs.ts';
import { type ClearanceDeps, RequestClearance } from './request-clearance.ts';

export interface AuthorisedBackendDeps {
  readonly ranges: ClearedBackend;
  readonly known: KnownAuth;
  readonly clock: Clock;
  readonly audit?: Audit;
}

/** Something that goes on until its client ends it (AB4). */
interface Lasting {
  /** In the audit log, when it is ended; undefined: the answer to its request shows that. */
  readonly action: 'watch' | 'watchLocks' | undefined;
  readonly principal: Principal | undefined;
  readonly needs: readonly PlainNeed[];
  end(refusal: ServiceError): void;
}

/** How often it is looked whether users and roles are still known for sure, while authentication is on. */
const LOOK_MS = 1_000;

export class AuthorisedBackend implements Backend {
  readonly #ranges: ClearedBackend;
  readonly #known: KnownAuth;
  readonly #clock: Clock;
  readonly #decisions: Decisions;
  readonly #audited: AuditedCalls;
  readonly #clearanceDeps: ClearanceDeps;
  /** Nearly all of them are waits for locks that are granted at once. */
  readonly #lasting = new TransientMap<Lasting>();
  #lastingId = 0;
  #looking: Timer | undefined;

  constructor({ ranges, known, clock, audit = NO_AUDIT }: AuthorisedBackendDeps) {
    this.#audited = new AuditedCalls(audit);
    this.#ranges = ranges;
    this.#known = known;
    this.#clock = clock;
    this.#decisions = new Decisions({ ranges, known, clock });
    this.#clearanceDeps = { known, decisions: this.#decisions, isAudited: audit.isOn };
    known.onChange(() => this.#decideLasting());
  }

  get nodeId(): number {
    return this.#ranges.nodeId;
  }

  view(): ClusterView {
    return this.#ranges.view();
  }

  rangeTimeMs(): number | undefined {
    return this.#ranges.rangeTimeMs();
  }

  check(principal: Principal | undefined, needs: readonly PlainNeed[], action?: string): void {
    const refusal = this.#refusal(principal, needs, action);
    if (refusal !== undefined) throw refusal;
  }

  #refusal(principal: Principal | undefined, needs: readonly PlainNeed[], action: string | undefined) {
    const refusal = refusalOf(() => this.#decisions.check(principal, needs));
    this.#audited.decided(action, principal, needs, refusal);
    return refusal;
  }

  command(asked: Command, given: RequestOptions, answer: BackendDone<CommandResult>): () => void {
    const command = asked.type === 'leaseGrant' ? owned(asked, given.principal) : asked; // AB5
    const clearance = new RequestClearance(this.#clearanceDeps, given.principal, () => needsOfCommand(command));
    const done = this.#audited.command(command, given, clearance, answer);
    const options = given.isChosenId === true ? this.#bound(given) : given;
    if (!isWait(command, options)) return this.#execute(clearance, command, options, done);
    const lastingId = this.#goesOn(new WaitForLock(clearance)); // AB4
    const giveUp = this.#execute(clearance, command, options, (error, reply) => {
      this.#lasting.delete(lastingId);
      done(error, reply);
    });
    return () => {
      this.#lasting.delete(lastingId);
      giveUp();
    };
  }

  /** AB6. Without a user, there is nobody whose commands could be told from those of others. */
  #bound(options: RequestOptions): RequestOptions {
    const { requestId, principal } = options;
    const { tokenKey } = this.#known.image;
    if (requestId === undefined || principal?.name === undefined || tokenKey.length === 0) return options;
    return { ...options, requestId: boundRequestId(requestId, principal.name, tokenKey) };
  }

  #execute(
    clearance: RequestClearance,
    command: Command,
    options: RequestOptions,
    done: BackendDone<CommandResult>,
  ): () => void {
    if (this.#known.isOff) return this.#ranges.commandFor(clearance, command, options, done); // AB2
    return this.#decided(clearance, undefined, options, (refusal, ends) => {
      if (refusal === undefined) return this.#ranges.commandFor(clearance, ending(command, ends), options, done);
      const { again, requestId, timeoutMs } = options;
      if (requestId !== undefined) {
        return this.#ranges.recall({ command, requestId, timeoutMs, refusal, again: again === true }, done); // AB3
      }
      done(refusal, undefined);
      return nothing;
    });
  }

  query(query: Query, options: RequestOptions, answer: BackendDone<QueryResult>): () => void {
    const needs = () => needsOfQuery(query);
    const audited = this.#audited.query(query, needs, options, answer);
    const done = query.type === 'leaseTimeToLive' ? this.#shown(options.principal, audited) : audited; // AB7
    if (isAwaited(query)) return this.#await(query, options, done);
    return this.#ask(query, options, done);
  }

  /** AB7. */
  #shown(principal: Principal | undefined, answer: BackendDone<QueryResult>): BackendDone<QueryResult> {
    return (error, reply) => {
      if (reply?.result.type !== 'leaseTimeToLive') return answer(error, reply);
      const { lease } = reply.result;
      const refusal = refusalOf(() => this.#decisions.check(principal, needsOfShownKeys(lease)));
      if (refusal !== undefined) return answer(refusal, undefined);
      if (refusalOf(() => this.#decisions.check(principal, [needOfShownSession(lease)])) === undefined) {
        return answer(undefined, reply);
      }
      const { owner: _, ...rest } = lease;
      answer(undefined, { ...reply, result: { ...reply.result, lease: { ...rest, attributes: {} } } });
    };
  }

  /** AB4. */
  #await(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const { principal } = options;
    let giveUp = nothing;
    const lastingId = this.#goesOn({
      action: undefined, // Its answer is recorded.
      principal,
      needs: needsOfQuery(query).filter(isPlain),
      end: (refusal) => {
        this.#lasting.delete(lastingId);
        giveUp();
        done(refusal, undefined);
      },
    });
    giveUp = this.#ask(query, options, (error, reply) => {
      this.#lasting.delete(lastingId);
      done(error, reply);
    });
    return () => {
      this.#lasting.delete(lastingId);
      giveUp();
    };
  }

  #ask(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const clearance = new RequestClearance(this.#clearanceDeps, options.principal, () => needsOfQuery(query));
    if (this.#known.isOff) return this.#ranges.queryFor(clearance, query, options, done); // AB2
    const renewed = query.type === 'leaseKeepAlive' ? `${query.id}.${query.incarnation}` : undefined;
    return this.#decided(clearance, renewed, options, (refusal) => {
      if (refusal === undefined) return this.#ranges.queryFor(clearance, query, options, done);
      done(refusal, undefined);
      return nothing;
    });
  }

  /** Begins what `begin` begins once the request is decided about; returns what ends either. */
  #decided(
    clearance: RequestClearance,
    renewed: string | undefined,
    { timeoutMs }: RequestOptions,
    begin: (refusal: ServiceError | undefined, ends: number) => () => void,
  ): () => void {
    const { principal, needs } = clearance;
    const { isAudited } = this.#clearanceDeps;
    let end: (() => void) | undefined;
    const asking = { principal, needs, renewed, isAudited };
    const giveUp = this.#decisions.decide(asking, timeoutMs, (refusal, revision, leases) => {
      clearance.revision = revision;
      clearance.ofLeases = leases.needs;
      end = begin(refusal, leases.ends);
    });
    return () => (end ?? giveUp)();
  }

  watch({ principal, ...options }: WatchOptions & Asked, listener: WatchListener): WatchControl {
    const { key, end } = options;
    const needs: readonly PlainNeed[] = [{ type: 'keys', access: 'read', key, ...(end !== undefined && { end }) }];
    const asked = { action: 'watch', principal, needs } as const;
    if (this.#isRefused(asked, (refusal) => listener.onEnd(refusal, 0))) return REFUSED;
    let leave = nothing;
    const control = this.#ranges.watch(options, {
      onCreated: (revision) => listener.onCreated(revision),
      onEvents: (events, revision) => listener.onEvents(events, revision),
      onProgress: (revision) => listener.onProgress(revision),
      onEnd: (error, compactRevision) => {
        leave();
        listener.onEnd(error, compactRevision);
      },
    });
    leave = this.#begins(
      asked,
      () => control.cancel(),
      (refusal) => listener.onEnd(refusal, 0),
    );
    return {
      cancel: () => {
        leave();
        control.cancel();
      },
      progress: () => control.progress(),
      pause: () => control.pause(),
      resume: () => control.resume(),
    };
  }

  watchLocks(
    { principal, ...options }: LockWatchOptions & Asked,
    listener: LockWatchListener,
    onEnd: LockWatchEnd,
  ): Omit<WatchControl, 'progress'> {
    const { namespace, name, single } = options;
    const needs: readonly PlainNeed[] = single
      ? [{ type: 'lock', verb: 'read', namespace, name }]
      : [{ type: 'locks', verb: 'read', namespace, prefix: name }];
    const asked = { action: 'watchLocks', principal, needs } as const;
    if (this.#isRefused(asked, onEnd)) return REFUSED;
    const control = this.#ranges.watchLocks(options, listener);
    const leave = this.#begins(asked, () => control.cancel(), onEnd);
    return {
      cancel: () => {
        leave();
        control.cancel();
      },
      pause: () => control.pause(),
      resume: () => control.resume(),
    };
  }

  /** Tells the refusal in a later turn, when the caller has what it began. */
  #isRefused({ action, principal, needs }: Omit<Lasting, 'end'>, told: (refusal: ServiceError) => void): boolean {
    if (this.#known.isOff) return false; // AB2
    const refusal = this.#refusal(principal, needs, action);
    if (refusal !== undefined) this.#clock.setImmediate(() => told(refusal));
    return refusal !== undefined;
  }

  /** AB4. Returns a function for its regular end. */
  #begins(asked: Omit<Lasting, 'end'>, cancel: () => void, told: (refusal: ServiceError) => void) {
    let isOver = false;
    const leave = () => void this.#lasting.delete(lastingId);
    const lastingId = this.#goesOn({
      ...asked,
      end: (refusal) => {
        leave();
        if (isOver) return;
        isOver = true;
        cancel();
        told(refusal);
      },
    });
    return () => {
      isOver = true;
      leave();
    };
  }

  /** Returns its key in `#lasting`, from which it is deleted when it ends. */
  #goesOn(lasting: Lasting): number {
    this.#lasting.add(++this.#lastingId, lasting);
    this.#look();
    return this.#lastingId;
  }

  /** AB4. */
  #decideLasting(): void {
    for (const lasting of this.#lasting.values()) {
      const { action, principal, needs } = lasting;
      const refusal = refusalOf(() => this.#decisions.check(principal, needs));
      if (refusal === undefined) continue;
      if (action !== undefined) this.#audited.decided(action, principal, needs, refusal);
      lasting.end(refusal);
    }
    this.#look();
  }

  #look(): void {
    if (this.#looking !== undefined || this.#known.isOff || this.#lasting.size === 0) return;
    this.#looking = this.#clock.setTimer(LOOK_MS, () => {
      this.#looking = undefined;
      this.#decideLasting();
    });
  }
}

/** AB4. Its needs are worked out only when it is decided about again. */
class WaitForLock implements Lasting {
  readonly action = undefined;
  readonly #clearance: RequestClearance;

  constructor(clearance: RequestClearance) {
    this.#clearance = clearance;
  }

  get principal(): Principal | undefined {
    return this.#clearance.principal;
  }

  get needs(): readonly PlainNeed[] {
    return this.#clearance.needs.filter((need) => need.type === 'lock');
  }

  end(refusal: ServiceError): void {
    this.#clearance.onRefused?.(refusal);
  }
}

type LeaseGrant = Extract<Command, { readonly type: 'leaseGrant' }>;

/** AB5. */
function owned(grant: LeaseGrant, principal: Principal | undefined): LeaseGrant {
  if (grant.owner === undefined) return grant;
  const owner = principal?.name ?? NO_OWNER;
  return owner === grant.owner ? grant : { ...grant, owner };
}

/** The command that ends this incarnation only (lease-needs.ts OW4). */
function ending(command: Command, incarnation: number): Command {
  return incarnation !== 0 && command.type === 'leaseRevoke' ? { ...command, incarnation } : command;
}

/** Answered when something happens, which may take as long as its time-out. */
function isAwaited({ type }: Query): boolean {
  return type === 'lockAwait' || type === 'grantEnd';
}

function isWait(command: Command, { waitMs }: RequestOptions): boolean {
  return waitMs !== undefined && command.type === 'lock' && command.command.type === 'acquire';
}

function nothing(): void {}

/** A watch that was never begun. */
const REFUSED: WatchControl = { cancel: nothing, progress: nothing, pause: nothing, resume: nothing };
