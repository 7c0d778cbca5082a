export { Checkpointer, type CheckpointOptions, type CheckpointParticipant } from './checkpointer.ts';
export * from './engine/index.ts';
export * from './engine/index.ts';
export type { AppliedCommand, OnApplied } from './range/applied-command.ts';
export type { RangeOptions, RangeUnderWay } from './range/range-options.ts';
export { SPLIT_SIZES, type SplitCandidate, type SplitSizes } from './range/range-size.ts';
export { RevisionDrawer, type RevisionDrawerDeps, type RevisionSource } from './revisions/revision-drawer.ts';
export { masterStateKey, RESIDENT_SPANS } from './state/keys.ts';
export { Store, type StoreDeps } from './store.ts';
