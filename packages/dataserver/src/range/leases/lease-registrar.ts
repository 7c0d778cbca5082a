/**
 * Registers, at the homes of leases, that this range is about to have keys or locks of them (docs/decisions/0025). Part
 * of a range's leader.
 *
 * RG1. A command that uses a lease of another range waits until a reference covers its key. The home adds the place to
 *      the lease's spans, durably, before the reference is proposed here.
 * RG2. A registration is valid only in the term and the epoch in which it began. Since then another leader may have
 *      been notified of the lease's end, or another range may have had the keys.
 * RG3. Before the end of a lease is proposed here, the registrations of that id in progress become void: they propose
 *      no reference any more, and references that they had proposed come before the end in the log. A command that
 *      waits for one registers again, and learns from the home what became of the lease, which had ended before this
 *      range was notified.
 * RG4. A lease that its home does not know is left to apply, which refuses the command.
 */
import { LazyMap, ServiceError, type Span, spanContains } from '@remora/base';
import type { Command, CommandResult, LeaseCommand } from '@remora/protocol';
import { attachableSpan } from '../../state/bounds.ts';
import { leaseKey } from '../../state/keys.ts';
import { type LeaseUse, leaseUses } from '../../state/leases/lease-users.ts';
import type { RangeFields } from '../../state/range-fields.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';

type Refer = Extract<LeaseCommand, { readonly type: 'leaseRefer' }>;
/** Called without an error if the command may continue; otherwise nothing of the command was done. */
export type Go = (error: ServiceError | undefined) => void;

export interface LeaseRegistrarDeps {
  readonly state: Pick<RangeFields, 'bounds' | 'descriptor' | 'leases' | 'references'>;
  readonly others: OtherRanges;
  /** The term of the leader that serves here; 0 while there is none. */
  readonly term: () => number;
  /** Proposes a reference after everything that was proposed before; `done` learns whether it was applied. */
  readonly propose: (command: Refer, done: (applied: boolean) => void) => void;
}

interface Registration {
  readonly use: LeaseUse;
  readonly term: number;
  readonly epochVersion: number;
  readonly span: Span;
  readonly waiting: Go[];
  /** Cancels the call to the home. */
  giveUp: () => void;
}

/** Commands that wait; more are refused. */
const WAITING_MAX = 10_000;
const REGISTER_TIMEOUT_MS = 5_000;
/** The most registrations that one command waits for, one after the other, before it is refused with a retry. */
const ROUNDS_MAX = 256;

export class LeaseRegistrar {
  readonly #deps: LeaseRegistrarDeps;
  /** By lease and incarnation. */
  readonly #inFlight = new LazyMap<string, Registration>();
  #waiting = 0;

  constructor(deps: LeaseRegistrarDeps) {
    this.#deps = deps;
  }

  /** Commands that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether a command has to wait (`hold`). Cheap if one range has all keys. */
  mustHold(command: Command): boolean {
    return !this.#deps.state.bounds.whole && this.#missing(command, NOBODY) !== undefined;
  }

  /** RG1. Calls `go` once the command can be proposed. */
  hold(command: Command, go: Go): void {
    if (this.#waiting >= WAITING_MAX) return go(tooMany());
    this.#waiting++;
    this.#next(command, { unknown: new Set(), rounds: 0 }, (error) => {
      this.#waiting--;
      go(error);
    });
  }

  #next(command: Command, seen: { readonly unknown: Set<bigint>; rounds: number }, go: Go): void {
    const use = this.#missing(command, seen.unknown);
    if (use === undefined) return go(undefined);
    if (seen.rounds++ >= ROUNDS_MAX) return go(later());
    this.#register(use, (error) => {
      if (error !== undefined && error.code !== 'LEASE_NOT_FOUND') return go(error);
      if (error !== undefined) seen.unknown.add(use.id); // RG4
      this.#next(command, seen, go);
    });
  }

  /** The first lease of another range that no reference covers, except those that their home does not know. */
  #missing(command: Command, unknown: ReadonlySet<bigint>): LeaseUse | undefined {
    const { bounds, leases, references } = this.#deps.state;
    return leaseUses(command).find(({ id, incarnation, at }) => {
      if (unknown.has(id) || leases.get(id) !== undefined || references.covers(id, incarnation, at)) return false;
      // A key that has left meanwhile is refused later, for that reason.
      return spanContains(bounds.routed, at) && !spanContains(bounds.routed, leaseKey(id));
    });
  }

  /** RG3. */
  void(id: bigint): void {
    for (const registration of [...this.#inFlight.values()]) {
      if (registration.use.id === id) this.#end(registration, undefined);
    }
  }

  /** Leadership is lost. */
  abandon(error: ServiceError): void {
    for (const registration of [...this.#inFlight.values()]) this.#end(registration, error);
  }

  #register(use: LeaseUse, go: Go): void {
    const { state, others, term } = this.#deps;
    const known = this.#inFlight.get(nameOf(use));
    if (known !== undefined && this.#isValid(known)) {
      known.waiting.push(go);
      return;
    }
    const span = attachableSpan(state.bounds);
    if (term() === 0 || span === undefined) return go(later());
    const epochVersion = state.descriptor.epoch.version;
    const waiting = [...(known?.waiting.splice(0) ?? []), go];
    const registration: Registration = { use, term: term(), epochVersion, span, waiting, giveUp: () => {} };
    this.#inFlight.set(nameOf(use), registration);
    const { id, incarnation } = use;
    const command = { type: 'leaseRegister', id, incarnation, span } as const;
    known?.giveUp();
    registration.giveUp = others.command(command, { timeoutMs: REGISTER_TIMEOUT_MS }, (error, reply) => {
      this.#registered(registration, error, reply?.result);
    });
  }

  #registered(registration: Registration, error: ServiceError | undefined, result: CommandResult | undefined): void {
    const { use, span } = registration;
    if (!this.#isInFlight(registration)) return; // RG3
    if (result?.type !== 'leaseRegister') {
      return this.#end(registration, error?.code === 'LEASE_NOT_FOUND' ? error : noAnswer(error));
    }
    if (!this.#isValid(registration)) return this.#end(registration, undefined);
    const { incarnation } = result;
    this.#deps.propose({ type: 'leaseRefer', id: use.id, incarnation, span }, (applied) => {
      this.#end(registration, applied || !this.#isValid(registration) ? undefined : later());
    });
  }

  #isInFlight(registration: Registration): boolean {
    return this.#inFlight.get(nameOf(registration.use)) === registration;
  }

  /** RG2. */
  #isValid({ term, epochVersion }: Registration): boolean {
    return term === this.#deps.term() && epochVersion === this.#deps.state.descriptor.epoch.version;
  }

  /** Waiting commands look again, or get the error. */
  #end(registration: Registration, error: ServiceError | undefined): void {
    if (!this.#isInFlight(registration)) return;
    this.#inFlight.delete(nameOf(registration.use));
    registration.giveUp();
    for (const go of registration.waiting.splice(0)) go(error);
  }
}

const NOBODY: ReadonlySet<bigint> = new Set();

function nameOf({ id, incarnation }: LeaseUse): string {
  return `${id}/${incarnation}`;
}

function noAnswer(cause: ServiceError | undefined): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the range of the lease does not answer; nothing was changed', { cause });
}

function later(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the lease could not be registered here; nothing was changed');
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many commands wait for leases of other ranges; try again later');
}
