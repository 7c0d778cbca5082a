/** An engine in memory, for tests and simulations. Production code does not import it. */
export * from './memory-engine.ts';
export * from './memory-store.ts';
