/** The answer of a process that runs with `PROBE_ARGUMENTS`, after a forced garbage collection. Sizes in bytes. */
export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
  /** Buffers, outside the heap. */
  readonly external: number;
  readonly descriptors: number;
  /** Open timers, sockets and so on. */
  readonly handles: number;
}

/** Node arguments with which a process answers `{ type: 'measure' }` and `{ type: 'snapshot', path }`. */
export const PROBE_ARGUMENTS: readonly string[] = [
  '--expose-gc',
  '--import',
  new URL('probe.mjs', import.meta.url).href,
];
