// The journal: files that name the leases of clients, so that the leases of a dead process can be ended before their
// TTL.
//
// J1. A lease is on disk before it is requested, and stays there until it has certainly ended: whatever crashes at
//     whatever time, some file names every lease that may exist and that nobody keeps.
// J2. A file is replaced as a whole: a reader finds the old file or the new one, never a part of one.
// J3. Each client has a file of its own, which names its process. Only the leases of a process that is certainly gone
//     are ended, and those that a closed client could not end itself, as its process may run on for long. If it is
//     unknown whether a process is gone (on another machine, in another container), its leases are left to their TTL.
// J4. The file of another client is removed only once its cluster has confirmed that each of its leases is gone. Leases
//     that another process, which may still run, has taken over (election.ts) are left out: the file of that process
//     names them. The other files are read again before each request, and the request has a short time-out: a process
//     that takes a lease over meanwhile may lose it. An unfinished file names no lease that was requested (J1), and is
//     removed once its process is gone.
// J5. A lease that is left to its TTL is removed from the file, durably, before the caller hears that: the next client
//     would end it.
// J6. A client may run a command under its locks, and name it in the file before it starts. Nothing is ended while a
//     process of that command may be left, whatever has happened to the client's own process. Until then the command is
//     looked up again and again.
import {
  type CommandIdentity,
  type Disk,
  type DiskFile,
  type Logger,
  type ProcessIdentity,
  type Random,
  randomGuid,
  ServiceError,
  sleep,
} from '@remora/base';
import type { JournalPorts } from '../ports.ts';
import type { Requester } from '../transport/requester.ts';

const FORMAT = 2;
const EXTENSION = '.json';
/** Far more than the file of one process needs; a larger file is not a journal. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

interface JournalFile {
  readonly format: typeof FORMAT;
  readonly cluster: string;
  readonly process: ProcessIdentity;
  /** J6. */
  readonly command?: CommandIdentity;
  /** Their ids, in hexadecimal. */
  readonly leases: readonly string[];
  /** The client is closed: nobody keeps the leases alive. */
  readonly closed?: boolean;
}

/**
 * The leases of one client, in a file. Everything that the client holds belongs to a lease, so ending the leases
 * releases all of it. Naming leases rather than locks costs one write for each session, and not for each lock.
 */
export class LeaseJournal {
  readonly #ports: JournalPorts;
  readonly #cluster: Promise<string>;
  readonly #path: string;
  readonly #leases = new Set<bigint>();
  /** The write in progress. */
  #writing: Promise<void> = Promise.resolve();
  /** The write after that one, for all changes made meanwhile. */
  #next: Promise<void> | undefined;
  #command: CommandIdentity | undefined;
  #closed = false;

  constructor(ports: JournalPorts, options: { readonly cluster: string | Promise<string>; readonly random: Random }) {
    this.#ports = ports;
    this.#cluster = Promise.resolve(options.cluster);
    this.#cluster.catch(() => {}); // Reported by each write.
    this.#path = `${randomGuid(options.random)}${EXTENSION}`;
  }

  /** Resolves when the cluster is known: nothing is written before. */
  get found(): Promise<unknown> {
    return this.#cluster;
  }

  /** J1. @throws ServiceError INTERNAL when the file cannot be written; the lease must not be requested then. */
  async add(lease: bigint): Promise<void> {
    this.#leases.add(lease);
    try {
      await this.#save();
    } catch (cause) {
      this.#leases.delete(lease);
      throw notWritten(cause);
    }
  }

  /** The lease has ended. If that cannot be written, the next client will find that it has ended. */
  async remove(lease: bigint): Promise<void> {
    await this.leave(lease).catch(() => {});
  }

  /** J5. @throws ServiceError INTERNAL when the file cannot be written. */
  async leave(lease: bigint): Promise<void> {
    if (!this.#leases.delete(lease)) return;
    try {
      await this.#save();
    } catch (cause) {
      throw notWritten(cause);
    }
  }

  /**
   * J6. On disk once this resolves; replaces a command named before.
   *
   * @throws ServiceError INTERNAL when the file cannot be written.
   */
  async nameCommand(command: CommandIdentity): Promise<void> {
    this.#command = command;
    await this.#save().catch((cause) => Promise.reject(notWritten(cause)));
  }

  /**
   * J3. The client is closed: the next client ends the leases that are left. If that cannot be written, a client after
   *     this process.
   */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#leases.size > 0) await this.#save().catch(() => {});
  }

  #save(): Promise<void> {
    this.#next ??= this.#writing.then(() => {
      this.#next = undefined;
      const write = this.#write();
      this.#writing = write.catch(() => {});
      return write;
    });
    return this.#next;
  }

  async #write(): Promise<void> {
    const { disk, self } = this.#ports;
    if (this.#leases.size === 0) {
      await removeFile(disk, this.#path);
      return disk.syncDir('');
    }
    const leases = [...this.#leases].map((lease) => lease.toString(16));
    const more = {
      ...(this.#command === undefined ? {} : { command: this.#command }),
      ...(this.#closed ? { closed: true } : {}),
    };
    const cluster = await this.#cluster;
    const contents: JournalFile = { format: FORMAT, cluster, process: self, leases, ...more };
    await disk.makeDir('');
    await replaceFile(disk, this.#path, Buffer.from(`${JSON.stringify(contents)}\n`));
  }
}

interface Leftover {
  readonly path: string;
  readonly leases: readonly bigint[];
}

/** Short, as another process may take a lease over meanwhile (J4). */
const END_TIMEOUT_MS = 1_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;
/** The pause while a command runs whose client's process is gone (J6). */
const COMMAND_PAUSE_MS = 500;

interface RecoveryOptions {
  readonly requester: Requester;
  /** Stops the retries. */
  readonly signal: AbortSignal;
}

/** Ends the leases that dead clients have left in this cluster, with retries until `signal` aborts. */
export async function endLeftovers(ports: JournalPorts, cluster: string, options: RecoveryOptions): Promise<void> {
  const { requester, signal } = options;
  const { clock, logger } = requester.ports;
  for (let pauseMs = PAUSE_MIN_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
    try {
      const journals = () => readJournals(ports, cluster, logger);
      const { left, commands } = await journals();
      const ended = await Promise.all(left.map((one) => endLeftover(one, journals, { ...options, disk: ports.disk })));
      // Last, and once: a file that cannot be removed prevents nothing, and the next client may remove it.
      if (commands > 0) pauseMs = COMMAND_PAUSE_MS;
      else if (ended.every((done) => done)) return await removeUnfinished(ports).catch(() => {});
    } catch (error) {
      logger.warn({ error: String(error) }, 'the journal directory could not be read');
    }
    await sleep(clock, pauseMs, signal).catch(() => {});
  }
}

interface Journals {
  /** The files of dead processes and of closed clients. */
  readonly left: readonly Leftover[];
  /** The leases in the other files. */
  readonly inUse: ReadonlySet<bigint>;
  /** How many of the other files are only in use by a running command (J6). */
  readonly commands: number;
}

/** J3, J6. */
async function readJournals({ disk, isGone }: JournalPorts, cluster: string, logger: Logger): Promise<Journals> {
  const left: Leftover[] = [];
  const inUse = new Set<bigint>();
  let commands = 0;
  for (const path of (await disk.list('')).filter((name) => name.endsWith(EXTENSION))) {
    const file = await readJournal(disk, path);
    if (file === undefined) logger.warn({ path }, 'ignored a file in the journal directory that is not a journal');
    if (file?.cluster !== cluster) continue;
    const leases = file.leases.map((lease) => BigInt(`0x${lease}`));
    const isOver = file.closed || isGone(file.process);
    const runs = file.command !== undefined && !isGone(file.command);
    if (isOver && runs) commands++;
    if (isOver && !runs) left.push({ path, leases });
    else for (const lease of leases) inUse.add(lease);
  }
  return { left, inUse, commands };
}

/** J4. A file that names no process may be about to be written by another one. */
async function removeUnfinished({ disk, isGone }: JournalPorts): Promise<void> {
  for (const path of (await disk.list('')).filter((name) => name.endsWith(unfinished(EXTENSION)))) {
    const file = await readJournal(disk, path);
    if (file !== undefined && isGone(file.process)) await removeFile(disk, path);
  }
}

/** J4. Ends the leases of a file and removes it. Returns whether that succeeded. */
async function endLeftover(
  { path, leases }: Leftover,
  journals: () => Promise<Journals>,
  { disk, requester, signal }: RecoveryOptions & { readonly disk: Disk },
): Promise<boolean> {
  const { logger } = requester.ports;
  try {
    for (const id of leases) {
      // Read again for each lease: another process may have taken it over while the leases before it were ended.
      if ((await journals()).inUse.has(id)) continue;
      const revoke = { type: 'leaseRevoke', id, incarnation: 0 } as const;
      await requester.command(revoke, { timeoutMs: END_TIMEOUT_MS, signal }).catch(ignoreEnded);
    }
    await removeFile(disk, unfinished(path));
    await removeFile(disk, path);
    logger.info({ path, leases: leases.length }, 'released what a client had left behind');
    return true;
  } catch (error) {
    if (!signal.aborted)
      logger.warn({ path, error: String(error) }, 'could not release what a client had left behind; retrying');
    return false;
  }
}

function notWritten(cause: unknown): ServiceError {
  return new ServiceError('INTERNAL', `the journal could not be written: ${String(cause)}`, { cause });
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== 'LEASE_NOT_FOUND') throw error;
}

/**
 * Undefined when the file is not a journal, or does not exist any more. Throws if it cannot be read: its process may be
 * running.
 */
async function readJournal(disk: Disk, path: string): Promise<JournalFile | undefined> {
  const file = await unlessGone(disk.open(path, { create: false }));
  if (file === undefined) return undefined;
  try {
    const size = await file.size();
    return size > FILE_BYTES_MAX ? undefined : parseJournal((await file.read(0, size)).toString());
  } finally {
    await file.close();
  }
}

function parseJournal(text: string): JournalFile | undefined {
  let value: Partial<JournalFile> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { format, cluster, process: owner, command, leases, closed } = value ?? {};
  if (format !== FORMAT || typeof cluster !== 'string' || !isIdentity(owner)) return undefined;
  if (command !== undefined && !isCommand(command)) return undefined;
  if (!Array.isArray(leases) || !leases.every((lease) => /^[0-9a-f]{1,16}$/.test(String(lease)))) return undefined;
  return { format, cluster, process: owner, leases, closed: closed === true, ...(command && { command }) };
}

export function isCommand(value: Partial<CommandIdentity> | undefined): value is CommandIdentity {
  const { session, mark } = value ?? {};
  return isIdentity(value) && Number.isSafeInteger(session) && typeof mark === 'string';
}

function isIdentity(value: Partial<ProcessIdentity> | undefined): value is ProcessIdentity {
  const { host, boot, space, pid, start } = value ?? {};
  return [host, boot, space, start].every((text) => typeof text === 'string') && Number.isSafeInteger(pid);
}

/** J2. On disk once this resolves. A file whose sync failed is not written again: the next attempt makes a new one. */
async function replaceFile(disk: Disk, path: string, bytes: Buffer): Promise<void> {
  const temporary = unfinished(path);
  await removeFile(disk, temporary);
  const file = await disk.open(temporary, { create: true });
  try {
    await finished((done) => file.write(0, [bytes], done));
    await finished((done) => file.sync(done));
  } finally {
    await file.close();
  }
  await disk.rename({ from: temporary, to: path });
  await disk.syncDir('');
}

/** The name of a file until it is complete. */
function unfinished(path: string): string {
  return `${path}.tmp`;
}

function finished(start: (done: Parameters<DiskFile['sync']>[0]) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error === null ? resolve() : reject(error))));
}

async function removeFile(disk: Disk, path: string): Promise<void> {
  await unlessGone(disk.remove(path));
}

async function unlessGone<T>(done: Promise<T>): Promise<T | undefined> {
  try {
    return await done;
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error;
    return undefined;
  }
}
