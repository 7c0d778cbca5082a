/**
 * What the processes of a run write down, one JSON object per line, each process into a file of its own.
 *
 * J1. Times are nanoseconds since the run began, of the machine's monotonic clock: one clock for all processes.
 * J2. The line that an operation begins is in the file before the operation leaves, and stays there when the process is
 *     killed the moment after; so whatever may have happened is known.
 * J3. A run is cut into rounds of the same length, and each round has keys of its own. `over` says that nothing of this
 *     process that began in that round, or in an earlier one, is still under way.
 */

/** How an operation ended, as its client may conclude. `refused`: certainly without effect. */
export type How = 'done' | 'unknown' | 'refused';

export type Workload =
  | 'registers'
  | 'lists'
  | 'txns'
  | 'locks'
  | 'fences'
  | 'kinds'
  | 'terms'
  | 'elections'
  | 'barriers'
  | 'listeners'
  | 'leases'
  | 'watches'
  | 'audit'
  | 'changes';

export interface BeginLine {
  readonly e: 'begin';
  readonly id: number;
  readonly w: Workload;
  readonly r: number;
  readonly t: number;
  /** What was asked for, in the workload's own form. */
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

/** The first line of a client's file; the rounds before `r` are none of its business. */
interface StartLine {
  readonly e: 'start';
  readonly r: number;
}

/** The last line of a client that ended as it should. */
interface StopLine {
  readonly e: 'stop';
}

export type Line = BeginLine | EndLine | NoteLine | OverLine | StartLine | StopLine;

export const NS_PER_MS = 1e6;
