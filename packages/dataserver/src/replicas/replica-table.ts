import type { Span } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { RangeReplica } from '../range/range-replica.ts';
import { spansOverlap } from '../state/bounds.ts';
import type { RangeState } from '../state/range-state.ts';

/** A replica that runs. */
export interface Running {
  readonly replica: RangeReplica;
  /** Takes it out of checkpoints. */
  readonly leaveCheckpoints: () => void;
}

/** The replicas of a store by range: the running ones, and those that are about to run. */
export class ReplicaTable {
  readonly #running = new Map<number, Running>();
  /** Replicas that are being created, or whose snapshot is being installed after a restart. */
  readonly #creating = new Map<number, { readonly span: Span; readonly done: Promise<void> }>();
  /** Ended replicas, as long as a crash may undo their end. */
  readonly #ending = new Map<number, RangeReplica>();
  readonly #onChange: (rangeId: number) => void;

  /** `onChange`: a replica runs from now on, or no longer. */
  constructor(onChange: (rangeId: number) => void) {
    this.#onChange = onChange;
  }

  get(rangeId: number): Running | undefined {
    return this.#running.get(rangeId);
  }

  has(rangeId: number): boolean {
    return this.#running.has(rangeId);
  }

  get size(): number {
    return this.#running.size;
  }

  *all(): IterableIterator<RangeReplica> {
    for (const { replica } of this.#running.values()) yield replica;
  }

  add(running: Running): void {
    const { rangeId } = running.replica;
    this.#running.set(rangeId, running);
    this.#onChange(rangeId);
  }

  remove(rangeId: number): void {
    this.#running.delete(rangeId);
    this.#onChange(rangeId);
  }

  /** The replica no longer runs. Returns a function to call once no crash can undo that. */
  end(replica: RangeReplica): () => void {
    this.remove(replica.rangeId);
    this.#ending.set(replica.rangeId, replica);
    return () => this.#ending.delete(replica.rangeId);
  }

  /** The replica of that range that is ending; undefined when none is. */
  ending(rangeId: number): RangeReplica | undefined {
    return this.#ending.get(rangeId);
  }

  /** Resolves when the replica of that range is created; undefined when none is being. */
  creating(rangeId: number): Promise<void> | undefined {
    return this.#creating.get(rangeId)?.done;
  }

  /** Reserves the range's place and its keys until `create` has added the replica or given up (T1 of the store). */
  create(
    { rangeId, span }: { readonly rangeId: number; readonly span: Span },
    create: () => Promise<void>,
  ): Promise<void> {
    const done = create().finally(() => this.#creating.delete(rangeId));
    this.#creating.set(rangeId, { span, done });
    return done;
  }

  /**
   * Returns a range other than the given one that has keys of the span here (T7 of the store); ranges for which `but`
   * is true are skipped.
   */
  sharing(span: Span, rangeId: number, but: (state: RangeState) => boolean = () => false): number | undefined {
    for (const { state } of this.all()) {
      if (state.rangeId !== rangeId && spansOverlap(span, state.bounds) && !but(state)) return state.rangeId;
    }
    for (const [other, creation] of this.#creating) {
      if (other !== rangeId && spansOverlap(span, creation.span)) return other;
    }
    return undefined;
  }

  /** Returns up to `max` ranges here that follow the given one without a gap. */
  following(range: RangeDescriptor, max: number): readonly RangeDescriptor[] {
    const byStart = new Map<string, RangeDescriptor>();
    for (const { state } of this.all()) byStart.set(latin1(state.descriptor.start), state.descriptor);
    const found: RangeDescriptor[] = [];
    let last = range;
    while (found.length < max && last.end.length > 0) {
      const next = byStart.get(latin1(last.end));
      if (next === undefined) break;
      found.push(next);
      last = next;
    }
    return found;
  }
}

function latin1(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}
