/** A network and a log in memory, for tests and simulations. Production code does not import them. */
export { type LinkFaults, LocalNetwork } from './local-network.ts';
export type { SnapshotTap, TappedSnapshotMessage } from './local-snapshots.ts';
export * from './memory-group-log.ts';
