/**
 * Scheduling as what decides on reports of leaders: translates their reports, and the outcomes of what they were told.
 */
import type { OrderResult, RangeInstruction } from '@remora/protocol';
import type { RangeDirector, ReportedRange } from '../ranges/range-orders.ts';
import type { RangeInfo } from './cluster-model.ts';
import type { Scheduling } from './scheduling.ts';

/**
 * Shorter silences say nothing: a replica's answer may be due at the moment of the report, and what is planned must not
 * be given up for that. As leaders have it that are asked to change members.
 */
const SILENT_AFTER_MS = 3_000;

export interface SchedulingDirectorDeps {
  readonly monotonicMs: () => number;
  /** Whether a range begins where people chose (range-registry.ts RR6). */
  readonly beginsAtChosen: (rangeId: number) => boolean;
}

export class SchedulingDirector implements RangeDirector {
  readonly #scheduling: Scheduling;
  readonly #monotonicMs: () => number;
  readonly #beginsAtChosen: (rangeId: number) => boolean;

  constructor(scheduling: Scheduling, { monotonicMs, beginsAtChosen }: SchedulingDirectorDeps) {
    this.#scheduling = scheduling;
    this.#monotonicMs = monotonicMs;
    this.#beginsAtChosen = beginsAtChosen;
  }

  reported(reported: ReportedRange): RangeInstruction | undefined {
    const nowMs = this.#monotonicMs();
    const chosen = this.#beginsAtChosen(reported.descriptor.rangeId);
    const info = infoOf(reported, { nowMs, chosen });
    return info === undefined ? undefined : this.#scheduling.rangeReported(info, nowMs);
  }

  ended(rangeId: number, _instruction: RangeInstruction, { outcome, reason }: OrderResult): void {
    const { controller } = this.#scheduling;
    if (outcome === 'refused') controller.refused(rangeId, reason, this.#monotonicMs());
    else controller.noted(rangeId, reason);
  }
}

/** Undefined when it does not come from a leader. */
function infoOf(
  { descriptor, report }: ReportedRange,
  { nowMs, chosen }: { readonly nowMs: number; readonly chosen: boolean },
): RangeInfo | undefined {
  const { lead } = report;
  if (lead === undefined) return undefined;
  const { term, bytes } = report;
  const { joint, changePending, readsPerS, writesPerS, readBytesPerS, writeBytesPerS, sizeRemark } = lead;
  return {
    ...{ descriptor, term, bytes, joint, changePending, readsPerS, writesPerS },
    ...{ readBytesPerS, writeBytesPerS, chosen, sizeRemark },
    leader: descriptor.replicas.find(({ replicaId }) => replicaId === report.replicaId)?.nodeId,
    progress: lead.peers.map(({ replicaId, caughtUp, silentMs }) => ({
      ...{ replicaId, caughtUp },
      silentSinceMs: silentMs >= SILENT_AFTER_MS ? nowMs - silentMs : undefined,
    })),
  };
}
