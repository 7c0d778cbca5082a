/**
 * The processes of a command: how they are identified, and how all of them are ended.
 *
 * CP1. Only processes of the command are reported. The session id of a command with its own session is the id of its
 *      first process, which the system does not reuse while a process of that session exists. So if that id belongs to
 *      a process with another start time, the command has ended. In a session shared with others, the processes of the
 *      command are its first process (known by id and start time), its descendants, and processes whose environment has
 *      the mark.
 * CP2. No process of the command is missed, except those that left it: by starting their own session (setsid, as
 *      daemons do) or, in a shared session, by dropping the mark from their environment, once their parents have ended.
 *      If the system does not report sessions, the process group of the first process replaces its session. If it does
 *      not report environments, descendants are known only while their parents live.
 * CP3. Ending the command does not rely on one listing: a process may start another one in the meantime, so SIGKILL is
 *      sent repeatedly until no process is found.
 * CP4. One complete listing proves that no process is left; no chain of processes that start one another escapes it
 *      (listing.ts LI1). In a shared session the listing is repeated if one of its processes ended before its
 *      environment was read, because it may have started another process of the command. If no listing can be complete,
 *      the state is unknown, and the command counts as running. Signals go to the processes of any listing, so a
 *      command that keeps starting processes is ended as well.
 */
import { type Clock, sleep } from '../../clock.ts';
import type { CommandIdentity } from '../../process-identity.ts';
import type { ProcessRow } from './listing.ts';
import type { ProcessTable } from './process-table.ts';

/** Returns their ids. @throws Error if the system cannot list them: then some may be left. */
export function processesOf(command: CommandIdentity, table: ProcessTable): readonly number[] {
  return rowsOf(command, table).map(({ pid }) => pid);
}

/** Sends a signal to every process that is found. Returns false if it was not permitted for one of them. */
function signalAll(command: CommandIdentity, signal: NodeJS.Signals, table: ProcessTable): boolean {
  const rows = orNone(() => rowsOf(command, table, 'some')) ?? [];
  // Signals a whole group at once, so that none of its processes can start another in between. A group never extends
  // beyond its session.
  const targets = hasOwnSession(command) ? rows.map(({ group }) => -group) : rows.map(({ pid }) => pid);
  const outcomes = [...new Set(targets)].map((target) => table.signal(target, signal));
  return !outcomes.includes('refused');
}

export interface Ending {
  readonly table: ProcessTable;
  readonly clock: Clock;
  /** The time between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /**
   * Called once if a process may not be signalled, for example because it belongs to another user: it is waited for all
   * the same.
   */
  readonly onRefused?: () => void;
}

/** Asks every process of the command to end, then kills them (CP3). Resolves when none is left. */
export async function endCommand(command: CommandIdentity, ending: Ending): Promise<void> {
  const { table, clock, graceMs } = ending;
  let refused = !signalAll(command, 'SIGTERM', table);
  // A stopped process receives the signal only after it continues.
  signalAll(command, 'SIGCONT', table);
  if (refused) ending.onRefused?.();
  const killAtMs = clock.monotonicMs() + graceMs;
  if (await isOver(command, table, clock, killAtMs)) return;
  for (let againMs = KILL_AGAIN_MIN_MS; ; againMs = Math.min(2 * againMs, KILL_AGAIN_MAX_MS)) {
    const isRefused = !signalAll(command, 'SIGKILL', table);
    if (isRefused && !refused) ending.onRefused?.();
    refused ||= isRefused;
    if (await isOver(command, table, clock, clock.monotonicMs() + againMs)) return;
  }
}

/** Resolves when no process of the command is left. */
export async function commandOver(command: CommandIdentity, table: ProcessTable, clock: Clock): Promise<void> {
  await isOver(command, table, clock, Number.POSITIVE_INFINITY);
}

const KILL_AGAIN_MIN_MS = 100;
const KILL_AGAIN_MAX_MS = 10_000;
/** Successive looks in a shared session while its processes end too early to be recognized (CP4). */
const LOOKS_MAX = 100;
const LOOK_MIN_MS = 10;
/** Reading the table of a busy machine takes some milliseconds. */
const LOOK_MAX_MS = 500;

/** Looks until no process is left, or until that time; then returns false. */
async function isOver(command: CommandIdentity, table: ProcessTable, clock: Clock, untilMs: number): Promise<boolean> {
  for (let pauseMs = LOOK_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.5, LOOK_MAX_MS)) {
    if (orNone(() => processesOf(command, table))?.length === 0) return true;
    const leftMs = untilMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await sleep(clock, Math.min(pauseMs, leftMs));
  }
}

/** Undefined if the system cannot answer, for example because too many files are open: the caller asks again. */
function orNone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

function hasOwnSession({ pid, session }: CommandIdentity): boolean {
  return session === pid;
}

function rowsOf(command: CommandIdentity, table: ProcessTable, extent?: 'some'): readonly ProcessRow[] {
  const start = table.startOf(command.pid);
  const isFirst = start !== undefined && (start === command.start || start === '' || command.start === '');
  if (hasOwnSession(command)) {
    if (start !== undefined && !isFirst) return []; // CP1
    return ownSession(command, table, extent);
  }
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const rows = table.list(extent) ?? [];
    const found = sharedSession(command, rows, table, isFirst);
    const listed = found.some(({ pid }) => pid === command.pid);
    // The first process may be hidden from the list although it exists.
    if (isFirst && !listed) return [...found, rowFor(command)];
    if (found.length > 0 || extent === 'some' || !someEnded(command, rows, table)) return found;
  }
  throw new Error(`processes of session ${command.session} start and end too fast to be assigned to their owner`);
}

/**
 * Whether a process of the session ended after it was listed, so that its environment could not be read. Where the
 * system does not report sessions it does not report environments either, and another look would not help: `ps` lists
 * itself each time.
 */
function someEnded({ session }: CommandIdentity, rows: readonly ProcessRow[], table: ProcessTable): boolean {
  return rows.some((row) => row.session === session && table.startOf(row.pid) === undefined);
}

function ownSession(command: CommandIdentity, table: ProcessTable, extent?: 'some'): readonly ProcessRow[] {
  const rows = table.list(extent);
  const found = rows?.filter(({ session, group }) => (session ?? group) === command.pid) ?? [];
  if (found.length > 0) return found;
  // The list is empty: the system lists nothing, or hides the processes of other users.
  const isThere =
    rows === undefined ? table.signal(-command.pid, 0) !== 'gone' : table.startOf(command.pid) !== undefined;
  return isThere ? [rowFor(command)] : [];
}

function sharedSession(
  { pid: first, session, mark }: CommandIdentity,
  all: readonly ProcessRow[],
  table: ProcessTable,
  isFirst: boolean,
): readonly ProcessRow[] {
  const descendants = isFirst ? descendantsOf(first, all) : new Set<number>();
  return all.filter((row) => {
    if (row.session !== undefined && row.session !== session) return false; // CP2
    return descendants.has(row.pid) || (mark !== '' && table.hasVariable(row.pid, mark));
  });
}

/** Includes the process itself. */
function descendantsOf(first: number, all: readonly ProcessRow[]): ReadonlySet<number> {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of all) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const found = new Set([first]);
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child);
  return found;
}

function rowFor({ pid, session }: CommandIdentity): ProcessRow {
  return { pid, parent: 0, group: pid, session };
}
