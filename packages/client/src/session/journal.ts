// J1. A lease is on disk before it is asked for, and until it has ended for certain: whatever crashes when, a lease that
//     may exist and that nobody keeps is named by some file.
// J2. A file is replaced as a whole: a reader finds the old one or the new one, never a part.
// J3. Each client has a file of its own, which names its process. Only what a process left that is certainly gone is ended, and
//     what a client says that it could not end itself before it was closed: its process may go on for long. Where that cannot be told (another machine's, another container's) it is left to the leases' TTL.
// J4. A file of another client is removed only when the cluster that it belongs to has said of each lease that it is gone, but
//     for those that a process has taken over that may still be there (election.ts): its own file names them. What others have
//     is looked up before each request, which is given up soon: who takes over a lease while it is under way may lose it.
//     A file that was never finished names none that was asked for (J1): it goes with its process, too.
// J5. A lease that is left to its TTL is named no more, durably, once its client has been told so: who comes next would end it.
// J6. A client may run a command under what it holds, and name it before it begins: nothing is ended while a process of that
//     command may be left, whatever has become of the client's own process. It is looked for until then, as it is being ended.
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
/** Far above what a file of one process can come to; what is larger is none of ours. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

interface JournalFile {
  readonly format: typeof FORMAT;
  readonly cluster: string;
  readonly process: ProcessIdentity;
  /** J6. */
  readonly command?: CommandIdentity;
  /** Their ids, in hexadecimal. */
  readonly leases: readonly string[];
  /** Its client is closed: nobody keeps them. */
  readonly closed?: boolean;
}

/**
 * The leases of one client, in a file: all that the client holds belongs to them, so who ends them gives all of it back.
 * Naming leases rather than locks costs one write for each session, not for each lock.
 */
export class LeaseJournal {
  readonly #ports: JournalPorts;
  readonly #cluster: string;
  readonly #path: string;
  readonly #leases = new Set<bigint>();
  /** The write under way. */
  #writing: Promise<void> = Promise.resolve();
  /** The write after that one, for all who came meanwhile. */
  #next: Promise<void> | undefined;
  #command: CommandIdentity | undefined;
  #closed = false;

  constructor(ports: JournalPorts, options: { readonly cluster: string; readonly random: Random }) {
    this.#ports = ports;
    this.#cluster = options.cluster;
    this.#path = `${randomGuid(options.random)}${EXTENSION}`;
  }

  /** J1. @throws ServiceError INTERNAL when it cannot be written; then the lease may not be asked for. */
  async add(lease: bigint): Promise<void> {
    this.#leases.add(lease);
    try {
      await this.#save();
    } catch (cause) {
      this.#leases.delete(lease);
      throw notWritten(cause);
    }
  }

  /** Of a lease that has ended. What cannot be written now is one to be found ended at the next start. */
  async remove(lease: bigint): Promise<void> {
    await this.leave(lease).catch(() => {});
  }

  /** J5. @throws ServiceError INTERNAL when it cannot be written. */
  async leave(lease: bigint): Promise<void> {
    if (!this.#leases.delete(lease)) return;
    try {
      await this.#save();
    } catch (cause) {
      throw notWritten(cause);
    }
  }

  /** J6, durably once this resolves; instead of a command that was named before. @throws ServiceError INTERNAL when it cannot be written. */
  async nameCommand(command: CommandIdentity): Promise<void> {
    this.#command = command;
    await this.#save().catch((cause) => Promise.reject(notWritten(cause)));
  }

  /** J3. Its client is closed: whoever comes next ends what is still named. If that cannot be written, who comes after the process. */
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
    const contents: JournalFile = { format: FORMAT, cluster: this.#cluster, process: self, leases, ...more };
    await disk.makeDir('');
    await replaceFile(disk, this.#path, Buffer.from(`${JSON.stringify(contents)}\n`));
  }
}

interface Leftover {
  readonly path: string;
  readonly leases: readonly bigint[];
}

/** Short, as a lease may be taken over meanwhile (J4). */
const END_TIMEOUT_MS = 1_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;
/** While a command goes on whose client's process is gone (J6). */
const COMMAND_PAUSE_MS = 500;

interface RecoveryOptions {
  readonly requester: Requester;
  /** Ends the trying. */
  readonly signal: AbortSignal;
}

/** Ends what clients that are gone have left in this cluster; what does not succeed is tried again, until `signal`. */
export async function endLeftovers(ports: JournalPorts, cluster: string, options: RecoveryOptions): Promise<void> {
  const { requester, signal } = options;
  const { clock, logger } = requester.ports;
  for (let pauseMs = PAUSE_MIN_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
    try {
      const journals = () => readJournals(ports, cluster, logger);
      const { left, commands } = await journals();
      const ended = await Promise.all(left.map((one) => endLeftover(one, journals, { ...options, disk: ports.disk })));
      // Last, and once: what cannot be removed may be by the next client, and keeps nothing from being given back.
      if (commands > 0) pauseMs = COMMAND_PAUSE_MS;
      else if (ended.every((done) => done)) return await removeUnfinished(ports).catch(() => {});
    } catch (error) {
      logger.warn({ error: String(error) }, 'the journal directory could not be read');
    }
    await sleep(clock, pauseMs, signal).catch(() => {});
  }
}

interface Journals {
  /** Of processes that are gone, and of clients that were closed. */
  readonly left: readonly Leftover[];
  /** What the others name. */
  readonly inUse: ReadonlySet<bigint>;
  /** How many of those are only in use by a command that goes on (J6). */
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

/** J4. One that names no process may be another's, who is about to write it. */
async function removeUnfinished({ disk, isGone }: JournalPorts): Promise<void> {
  for (const path of (await disk.list('')).filter((name) => name.endsWith(unfinished(EXTENSION)))) {
    const file = await readJournal(disk, path);
    if (file !== undefined && isGone(file.process)) await removeFile(disk, path);
  }
}

/** J4. Whether nothing is left of it. */
async function endLeftover(
  { path, leases }: Leftover,
  journals: () => Promise<Journals>,
  { disk, requester, signal }: RecoveryOptions & { readonly disk: Disk },
): Promise<boolean> {
  const { logger } = requester.ports;
  try {
    for (const id of leases) {
      // Read anew for each: another process may take one up while this one is still busy with those before it.
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

/** Undefined when it is none, or none any more. What cannot be read may be that of a process which is there: it throws. */
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

/** J2, durably once this resolves. A file whose sync failed is not written to again: who tries again makes a new one. */
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

/** The name of a file until it is whole. */
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
