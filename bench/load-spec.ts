/** What `load-main` is told, as JSON in its only argument. */
export interface LoadArguments {
  readonly api: 'sdk' | 'etcd' | 'module';
  /** With `module`: the file to import, which exports `open: OpenDriver`. */
  readonly module?: string;
  readonly workload: 'put' | 'get' | 'lock' | 'handoff' | 'writer' | 'contended' | 'queue';
  /** Gateways or members, the one to use first. */
  readonly endpoints: readonly string[];
  /** Paths; for `sdk` alone. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
  readonly inflight: number;
  readonly firstWorker?: number;
  readonly seconds: number;
}

/** What a load tells at its end. */
export interface LoadResult {
  readonly opsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly ops: number;
  readonly errors: number;
  /** The first error, when there was one. */
  readonly firstError?: string;
  /** Between successful operations; only the continuous writer tells. */
  readonly longestGapMs?: number;
}
