/** Links in memory, for tests and simulations. Production code does not import them. */
export * from './memory-link.ts';
