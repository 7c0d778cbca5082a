export { RANGE_RELATIONS, RANGE_SETTINGS, type RangeSettings, splitPolicyOf } from './admin/range-settings.ts';
export { type AgentDeps, NodeAgent } from './agent.ts';
export { Master, type MasterDeps, type MasterOptions } from './master.ts';
export { MasterFinder, type MasterFinderDeps, type MastersSilence } from './master-finder.ts';
export type { RangeDirector, ReportedRange } from './range-orders.ts';
export * from './scheduling/index.ts';
