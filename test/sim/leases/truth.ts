/**
 * The promises that a run of the simulation of leases must keep.
 *
 * L0. No invariant breaks that the product itself asserts.
 * L1. The end of a lease never deletes a key that belongs to a lease that is alive.
 * L2. Once a revocation is answered, no range has anything left of the lease. Exception: a lease of which its home
 *     forgot something; it is cleaned up later.
 * L3. After all leases have ended, nothing is left of any lease: no key, lock, reference or record.
 * L4. Every request is answered.
 */
import { type Engine, spanContains } from '@remora/base';
import type { Command, KvEvent, KvOp } from '@remora/protocol';
import { kvRoutingKey } from '@remora/protocol';
import { referencesSpan } from '../../../packages/dataserver/src/state/keys.ts';
import type { Outcome } from '../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import type { RangeState } from '../../../packages/dataserver/src/state/range-state.ts';

/** An incarnation of a lease. */
type Name = string;

function nameOf(id: bigint, incarnation: number): Name {
  return `${id}/${incarnation}`;
}

export class Truth {
  readonly faults: string[] = [];
  /** The owner of each key that exists. */
  readonly #owners = new Map<string, Name>();
  readonly #ended = new Set<Name>();
  readonly #forgotten = new Set<Name>();
  #applying: Command | undefined;
  /** Statistics that show whether a run exercised anything. */
  taken = 0;
  ends = 0;
  apart = 0;

  applying(command: Command): void {
    this.#applying = command;
  }

  events(events: readonly KvEvent[]): void {
    const cause = this.#applying?.type ?? 'nothing';
    for (const { type, kv } of events) {
      const key = Buffer.from(kv.key).toString();
      const owner = this.#owners.get(key);
      if (type === 'delete' && cause.startsWith('lease') && owner !== undefined) this.#taken(cause, key, owner);
      this.#owners.delete(key);
    }
  }

  /** L1. The home's own keys are deleted in the same step in which the lease ends. */
  #taken(cause: string, key: string, owner: Name): void {
    this.taken++;
    if (cause === 'leaseEnd' && !this.#ended.has(owner))
      this.faults.push(`L1: ${key} of ${owner}, which is alive, is gone`);
  }

  applied(state: RangeState, command: Command, outcome: Outcome): void {
    if (!outcome.ok) return;
    if (command.type === 'kv') this.#put(state, command.op);
    if (command.type === 'leaseEnd') this.ends++;
    if (command.type === 'leaseRevoke' || command.type === 'leaseExpire') {
      this.#ended.add(nameOf(command.id, command.incarnation));
    }
  }

  #put(state: RangeState, op: KvOp): void {
    if (op.type !== 'put' || op.lease === 0n) return;
    const home = state.leases.get(op.lease);
    const reference = state.references.get(op.lease);
    const covered = reference?.spans.some((span) => spanContains(span, kvRoutingKey(op.key))) ? reference : undefined;
    const incarnation = (home ?? covered)?.incarnation;
    if (incarnation === undefined)
      this.faults.push(`L3: ${Buffer.from(op.key)} was put with a lease that is not known`);
    if (home === undefined) this.apart++;
    this.#owners.set(Buffer.from(op.key).toString(), nameOf(op.lease, incarnation ?? 0));
  }

  /** The lease's home lost its majority. */
  forgotten({ id, incarnation }: { readonly id: bigint; readonly incarnation: number }, isGone: boolean): void {
    this.#forgotten.add(nameOf(id, incarnation));
    if (isGone) this.#ended.add(nameOf(id, incarnation));
  }

  /** L2. */
  revoked(id: bigint, incarnation: number): void {
    const name = nameOf(id, incarnation);
    if (this.#forgotten.has(name)) return;
    for (const [key, owner] of this.#owners) {
      if (owner === name) this.faults.push(`L2: ${key} belongs to ${name}, whose revocation was answered`);
    }
  }

  /** L3. */
  atTheEnd(engine: Engine, rangeIds: readonly number[]): void {
    for (const [key, owner] of this.#owners) this.faults.push(`L3: ${key} is left of ${owner}`);
    const spans = [
      { what: 'leases and locks', start: Buffer.from([1]), end: Buffer.from([3]) },
      ...rangeIds.map((id) => ({ what: `references of range ${id}`, ...referencesSpan(id) })),
    ];
    for (const { what, ...span } of spans) {
      const [row] = engine.scanResident(span);
      if (row !== undefined) this.faults.push(`L3: ${what}: there is ${Buffer.from(row.key).toString('hex')}`);
    }
  }

  /** L0. */
  broken(what: string): void {
    this.faults.push(`L0: ${what}`);
  }

  /** L4. */
  refused(what: string): void {
    this.faults.push(`L4: ${what}`);
  }
}
