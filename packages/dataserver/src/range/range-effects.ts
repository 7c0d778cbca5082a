import { asBuffer, assert, type Logger } from '@remora/base';
import type { DelayedHold, LockCommand, LockId, LockNotice, MarkedUntil } from '@remora/lock';
import type { KvEvent } from '@remora/protocol';
import type { LockListeners } from '../lock-watch/lock-listeners.ts';
import type { AppliedEnd, Effects, RangeMeter, RangeStart } from '../state/effects.ts';
import type { Lease } from '../state/leases/leases.ts';
import type { RangeFields } from '../state/range-fields.ts';
import type { WatchHub } from '../watch/watch-hub.ts';
import type { LeaseManager } from './leases/lease-manager.ts';
import type { GrantWatches } from './locks/grant-watches.ts';
import type { LockWaits } from './locks/lock-waits.ts';
import type { ReplicaContext } from './replica-context.ts';
import type { ReplicaRows } from './replica-rows.ts';
import type { MergeNeighbours, Merges } from './reshape/merges.ts';
import type { Splits } from './reshape/splits.ts';

interface RangeEffectsDeps {
  readonly logger: Logger;
  /** Counts what is applied while the replica leads. */
  readonly meter?: RangeMeter;
  readonly neighbours: Pick<MergeNeighbours, 'source'>;
}

/** The parts of a replica that applied commands concern. */
interface EffectParts {
  readonly context: ReplicaContext;
  readonly hub: WatchHub;
  readonly lockListeners: LockListeners;
  readonly waits: LockWaits;
  readonly grants: GrantWatches;
  readonly rows: ReplicaRows;
  readonly leases: LeaseManager;
  readonly splits: Splits;
  readonly merges: Merges;
}

/**
 * Passes the effects of applied commands on to the replica's watchers, lock waiters, leases, splits and merges. It is
 * built before the state, on which those parts depend; nothing is applied before `attach`.
 */
export class RangeEffects implements Effects {
  readonly #deps: RangeEffectsDeps;
  #attached: EffectParts | undefined;

  constructor(deps: RangeEffectsDeps) {
    this.#deps = deps;
  }

  attach(parts: EffectParts): void {
    this.#attached = parts;
  }

  get #parts(): EffectParts {
    assert(this.#attached !== undefined, 'the parts of a replica are attached before it applies anything');
    return this.#attached;
  }

  get listeners(): LockListeners {
    return this.#parts.lockListeners;
  }

  get meter(): RangeMeter | undefined {
    return this.#parts.context.leading ? this.#deps.meter : undefined;
  }

  onEvents(revision: number, events: readonly KvEvent[]): void {
    const { rows, hub } = this.#parts;
    rows.written(revision);
    hub.publish(revision, events);
  }

  onNotice(notice: LockNotice): void {
    const { leases, waits, grants } = this.#parts;
    // Only a forced release notifies a holder that its lock is released.
    if (notice.result.type === 'released') leases.taken(notice.owner.session);
    waits.notify(notice);
    grants.notify(notice);
  }

  onForcedRelease(command: Extract<LockCommand, { readonly type: 'forceRelease' }>, version: number): void {
    const { context } = this.#parts;
    if (!context.serving) return;
    const { lock, by = '', reason = '' } = command;
    const { namespace, name } = lock;
    const details = { range: context.rangeId, namespace, lock: asBuffer(name).toString(), version, by, reason };
    this.#deps.logger.warn(details, 'a lock was taken from its holder by force');
  }

  onHoldDelayed(hold: DelayedHold): void {
    this.#parts.leases.holdDelayed(hold);
  }

  onGrantEnded(lock: LockId, version: number): void {
    this.#parts.grants.ended(lock, version);
  }

  onMarkLeft(mark: MarkedUntil): void {
    this.#parts.leases.markLeft(mark);
  }

  onLeaseGranted(lease: Lease): void {
    this.#parts.leases.granted(lease);
  }

  onLeaseEnded(id: bigint, end?: AppliedEnd): void {
    this.#parts.leases.ended(id, end);
  }

  onSplit(child: RangeStart, term: number): void {
    this.#parts.splits.applied(child, term);
  }

  onSealed(): void {
    this.#parts.merges.sealChanged();
  }

  source(rangeId: number): RangeFields {
    return this.#deps.neighbours.source(rangeId);
  }

  onMerged(sourceId: number): void {
    this.#parts.merges.merged(sourceId);
  }
}
