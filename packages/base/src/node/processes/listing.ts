/**
 * A listing of processes on a system without a snapshot of them: first the ids are read, then each process is
 * inspected.
 *
 * LI1. A process may start another one after the ids were read, and end before it is inspected; then neither is found.
 *      So if a process has ended between the reading of its id and its inspection, the ids are read again and the new
 *      ones inspected, until no new process has ended this way. Then every process that lived when the ids were last
 *      read was inspected alive.
 * LI2. Reading the ids is not atomic either: once ids have wrapped around, a new process may get a lower id than those
 *      already read. So the ids are read at least twice.
 * LI3. One case is not detected: a process that, within one listing, gets the id of a process that ended in it.
 */
export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Undefined if the system does not report it. */
  readonly session: number | undefined;
}

export interface ProcessLook {
  ids(): readonly string[];
  /** `ended` also for a process that was not waited for yet; `hidden` if this user may not inspect it. */
  look(id: string): ProcessRow | 'ended' | 'hidden';
}

const READS_MIN = 2;
/** Each reads a directory and its new entries, usually a few processes. */
const READS_MAX = 100;

/** With `some`, reads once. @throws Error if processes come and go too fast to be listed. */
export function listProcesses({ ids, look }: ProcessLook, extent?: 'some'): readonly ProcessRow[] {
  const seen = new Set<string>();
  const rows: ProcessRow[] = [];
  for (let reads = 1; reads <= READS_MAX; reads++) {
    const added = ids().filter((id) => !seen.has(id));
    const looks = added.map(look);
    for (const id of added) seen.add(id);
    for (const found of looks) if (typeof found !== 'string') rows.push(found);
    if (extent === 'some' || (reads >= READS_MIN && !looks.includes('ended'))) return rows;
  }
  throw new Error(`processes start and end too fast to be listed; gave up after ${READS_MAX} attempts`);
}
