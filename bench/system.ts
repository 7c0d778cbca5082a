/** A replicated system under measurement: three server processes on this machine. */

export type Role = 'client' | 'leader' | 'entry' | 'follower';

export interface ServerProcess {
  readonly role: Exclude<Role, 'client'>;
  readonly pid: number;
}

/** How a load process is run. */
export interface LoadCommand {
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a load does; `pnpm bench` has a case of the same name for each. */
export const WORKLOADS = ['put', 'get', 'lock', 'unary-put', 'unary-get', 'handoff'] as const;
export type Workload = (typeof WORKLOADS)[number];

/**
 * All workers want one lock. `contended`: each in a session of its own, through the entry that its client chooses.
 * `queue`: so many that they are spread over all entries, in as many sessions.
 */
export type ContendedWorkload = 'contended' | 'queue';

export interface LoadSpec {
  readonly workload: Workload | 'writer' | ContendedWorkload;
  readonly inflight: number;
  /** The number of the first worker; client processes differ in it, and so in their locks and keys. */
  readonly firstWorker?: number;
  readonly seconds: number;
}

/** Where clients of the etcd API connect. The SDK is told all endpoints and finds the leader's gateway by itself. */
export type EntryChoice = 'leader' | 'follower';

export interface System {
  readonly name: string;
  readonly workloads: readonly Workload[];
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Which process is what now. `entry` is the follower that the load connects to, if it does connect to one. */
  processes(workload?: LoadSpec['workload']): Promise<readonly ServerProcess[]>;
  load(spec: LoadSpec): Promise<LoadCommand>;
}

/** A system whose members can be killed and started again. */
export interface Killable extends System {
  killLeader(): Promise<void>;
  /** Starts what was killed and waits until all are ready. */
  repair(): Promise<void>;
}

export function isKillable(system: System): system is Killable {
  return 'killLeader' in system;
}
