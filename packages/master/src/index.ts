export { RANGE_RELATIONS, RANGE_SETTINGS, type RangeSettings, splitPolicyOf } from './admin/range-settings.ts';
export type { HistoryStats } from './history/cluster-history.ts';
export { Master, type MasterDeps, type MasterOptions } from './master.ts';
export { MasterFinder, type MasterFinderDeps, type MastersSilence } from './masters/master-finder.ts';
export { type AgentDeps, NodeAgent } from './nodes/agent.ts';
export { ClockComparison, type ClockDifference } from './nodes/clock-comparison.ts';
export type { FoundingPlan } from './ranges/founding.ts';
export type { RangeDirector, ReportedRange } from './ranges/range-orders.ts';
export * from './scheduling/index.ts';
