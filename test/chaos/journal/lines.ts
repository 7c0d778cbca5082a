/**
 * The journals of a run's processes: one JSON object per line, and a separate file for each process.
 *
 * J1. Times are nanoseconds since the run began, by the machine's monotonic clock: all processes share one clock.
 * J2. The line for an operation's beginning is in the file before the operation is sent, and stays there even if the
 *     process is killed right afterwards. Therefore everything that may have happened is known.
 * J3. A run is divided into rounds of the same length, and each round has separate keys. `over` says that nothing of
 *     this process that began in that round, or in an earlier one, is still in progress.
 */

/** How an operation ended, as its client may conclude. `refused`: certainly without effect. */
export type How = 'done' | 'unknown' | 'refused';

export type Workload =
  | 'registers'
  | 'lists'
  | 'txns'
  | 'counters'
  | 'bank'
  | 'mirrors'
  | 'locks'
  | 'fences'
  | 'kinds'
  | 'terms'
  | 'elections'
  | 'barriers'
  | 'listeners'
  | 'leases'
  | 'watches'
  | 'visits'
  | 'audit'
  | 'changes';

export interface BeginLine {
  readonly e: 'begin';
  readonly id: number;
  readonly w: Workload;
  readonly r: number;
  readonly t: number;
  /** The request, in the workload's own form. */
  readonly q: object;
}

interface EndLine {
  readonly e: 'end';
  readonly id: number;
  readonly t: number;
  readonly how: How;
  readonly code?: string;
  /** The answer, in the workload's own form. */
  readonly a?: object;
}

export interface NoteLine {
  readonly e: 'note';
  readonly w: Workload;
  readonly r: number;
  readonly t: number;
  readonly n: object;
}

interface OverLine {
  readonly e: 'over';
  readonly r: number;
}

/** The first line of a client's file. The client has no part in the rounds before `r`. */
interface StartLine {
  readonly e: 'start';
  readonly r: number;
}

/** The last line of a client that ended normally. */
interface StopLine {
  readonly e: 'stop';
}

export type Line = BeginLine | EndLine | NoteLine | OverLine | StartLine | StopLine;

export const NS_PER_MS = 1e6;
/** J3. */
export const ROUND_MS = 10_000;
