/** Simulated clock and disk, for tests and simulations. Production code does not import them. */
export * from './manual-clock.ts';
export * from './sim-disk.ts';
export * from './timer-queue.ts';
