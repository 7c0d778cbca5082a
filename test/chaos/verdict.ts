import {
  checkAppliedOnce,
  checkLinearizable,
  createAppendModel,
  type HistoryRecord,
  lockModel,
  registerModel,
} from '../checkers/index.ts';
import { auditWrites } from './audit.ts';
import type { Workload, Write } from './workload.ts';

/** Everything that a run recorded. */
export interface Evidence {
  readonly registers: readonly HistoryRecord[];
  readonly lists: readonly HistoryRecord[];
  readonly locks: readonly HistoryRecord[];
  readonly writes: ReadonlyMap<string, Write>;
  readonly events: ReadonlyMap<string, readonly string[]>;
  readonly sectionFaults: readonly string[];
}

/** Every promise that the evidence contradicts, or that it could not decide; empty when all is well. */
export function faultsOf(evidence: Evidence): readonly string[] {
  const verdicts = [
    { what: 'registers', ...checkLinearizable(registerModel, evidence.registers) },
    { what: 'lists', ...checkLinearizable(createAppendModel(), evidence.lists) },
    { what: 'locks', ...checkLinearizable(lockModel, evidence.locks) },
  ];
  return [
    ...auditWrites(evidence.writes, evidence.events),
    ...checkAppliedOnce(evidence.lists),
    ...evidence.sectionFaults,
    ...verdicts.filter(({ result }) => result !== 'ok').map((v) => `${v.what}: ${v.result}: ${v.explanation}`),
  ];
}

/** What a workload has recorded, once it has stopped. */
export async function evidenceOf(workload: Workload): Promise<Evidence> {
  const events = await workload.readBack();
  return {
    registers: workload.registers.records(),
    lists: workload.lists.records(),
    locks: workload.locks.records(),
    writes: workload.writes,
    events,
    sectionFaults: workload.sections.faults,
  };
}
