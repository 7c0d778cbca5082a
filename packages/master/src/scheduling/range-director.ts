/**
 * Connects the scheduling to the reports of leaders: translates their reports, and the results of their instructions.
 */
import type { OrderResult, RangeInstruction } from '@remora/protocol';
import type { RangeDirector, ReportedRange } from '../ranges/range-orders.ts';
import type { RangeInfo } from './cluster-model.ts';
import type { Scheduling } from './scheduling.ts';

/**
 * Shorter silences say nothing: a replica's answer may be due when the report is made, and plans must not be dropped
 * because of that. Leaders use the same limit when they are asked to change members.
 */
const SILENT_AFTER_MS = 3_000;

export interface SchedulingDirectorDeps {
  readonly monotonicMs: () => number;
  /** Whether a range begins where a person chose (range-registry.ts RR6). */
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

/** Undefined if the report does not come from a leader. */
function infoOf(
  { descriptor, report }: ReportedRange,
  { nowMs, chosen }: { readonly nowMs: number; readonly chosen: boolean },
): RangeInfo | undefined {
  const { lead } = report;
  if (lead === undefined) return undefined;
  const { term, bytes } = report;
  const { joint, changePending, readsPerS, writesPerS, readBytesPerS, writeBytesPerS, sizeRemark } = lead;
  return {
    descriptor,
    term,
    bytes,
    joint,
    changePending,
    readsPerS,
    writesPerS,
    readBytesPerS,
    writeBytesPerS,
    chosen,
    sizeRemark,
    leader: descriptor.replicas.find(({ replicaId }) => replicaId === report.replicaId)?.nodeId,
    progress: lead.peers.map(({ replicaId, caughtUp, silentMs }) => ({
      replicaId,
      caughtUp,
      silentSinceMs: silentMs >= SILENT_AFTER_MS ? nowMs - silentMs : undefined,
    })),
  };
}
