/** What a process answers that runs with `PROBE_ARGUMENTS`, after a forced collection. Sizes in bytes. */
export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
  /** Of buffers, outside the heap. */
  readonly external: number;
  readonly descriptors: number;
  /** Timers, sockets and the like that are open. */
  readonly handles: number;
}

/** Arguments of Node that make a process answer `{ type: 'measure' }` and `{ type: 'snapshot', path }`. */
export const PROBE_ARGUMENTS: readonly string[] = [
  '--expose-gc',
  '--import',
  new URL('probe.mjs', import.meta.url).href,
];
