/**
 * The client processes of a run: several that load the cluster, and one that audits it.
 *
 * C1. The judge learns of a process before the process begins to write, and of its end after its last line.
 * C2. The resources that locks protect are kept in this process, so that they outlive the clients. Accepted writes are
 *     in this process's journal before the client gets the answer.
 */
import { join } from 'node:path';
import type { Random } from '@remora/base';
import { ServiceError } from '@remora/base';
import { connect, type RemoraClient } from 'remora';
import type { Finding } from '../../checkers/index.ts';
import { violation } from '../../checkers/index.ts';
import { Journal } from '../journal/journal.ts';
import type { ToJudge } from '../judges/messages.ts';
import { type Access, type ClientAccess, connectOptions, secured } from '../users/access.ts';
import type { Passwords } from '../users/rights.ts';
import type { LoadName } from '../workloads/index.ts';
import { FencedNumbers } from './fenced-numbers.ts';
import type { ClientArguments, FromClient, ToClient } from './messages.ts';
import { Program } from './program.ts';

const AUDITOR = 'auditor';
const OPERATOR = 'operator';
const TICK_MS = 200;

export interface FleetOptions {
  readonly dir: string;
  /** The folder of the compiled programs. */
  readonly programs: string;
  readonly clients: number;
  /** The load that each of them runs. */
  readonly load: LoadName;
  readonly seed: number;
  readonly endpoints: readonly string[];
  /** Every other client is of this version. Absent: all are of this tree's. */
  readonly otherVersion?: string;
  readonly beganNs: bigint;
  readonly roundMs: number;
  readonly thinkMs: number;
  readonly tellJudge: (message: ToJudge) => void;
  readonly report: (finding: Finding) => void;
  /** Absent: plain text, and no users. */
  readonly access?: { readonly root: Access; readonly clients: ClientAccess } | undefined;
}

interface Life {
  readonly name: string;
  readonly program: Program<FromClient, ToClient>;
  readonly ready: Promise<void>;
  readonly stopped: Promise<void>;
  /** Its end was requested. */
  mayEnd: boolean;
}

export class ClientFleet {
  readonly #options: FleetOptions;
  readonly #lives: (Life | undefined)[];
  readonly #numbers = new FencedNumbers();
  /** Records the actions of this process itself. */
  readonly #journal: Journal;
  readonly #ticking: NodeJS.Timeout;
  readonly #ended: Promise<unknown>[] = [];
  #auditor: Life | undefined;
  #operator: RemoraClient | undefined;
  #passwords: Passwords = {};
  #born = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#lives = Array.from({ length: options.clients }, () => undefined);
    this.#journal = new Journal({ ...options, file: this.#announce(OPERATOR) });
    this.#ticking = setInterval(() => this.#journal.tick(), TICK_MS);
  }

  /** The number of clients that load the cluster. */
  get size(): number {
    return this.#lives.length;
  }

  /** The journal for actions of this process. */
  get journal(): Journal {
    return this.#journal;
  }

  /** Starts all clients. The auditor starts first, because no round may pass without it. */
  async start(): Promise<void> {
    const { endpoints, access } = this.#options;
    const root = connectOptions(access?.root);
    this.#operator = await connect({ endpoints: secured(endpoints, access), discover: false, ...root });
    this.#auditor = this.#begin('auditor', 0);
    await this.#auditor.ready;
    await this.replaceGone();
  }

  /** Kills the ith client in the middle of its work. Resolves to its name. */
  async kill(i: number): Promise<string> {
    const life = this.#life(i);
    life.mayEnd = true;
    life.program.signal('SIGKILL');
    await life.program.ended;
    return life.name;
  }

  /** Starts a new client for each one that is gone. */
  async replaceGone(): Promise<void> {
    for (const [i, life] of this.#lives.entries()) {
      if (life === undefined || !life.program.running) this.#lives[i] = this.#begin('load', i);
    }
    await Promise.all(this.#lives.map((life) => life?.ready));
  }

  pause(i: number): { readonly name: string; readonly goOn: () => void } {
    const { name, program } = this.#life(i);
    program.signal('SIGSTOP');
    return { name, goOn: () => program.signal('SIGCONT') };
  }

  /** Clients use these passwords from now on. */
  tellPasswords(passwords: Passwords): void {
    this.#passwords = passwords;
    for (const life of this.#lives) life?.program.send({ type: 'passwords', passwords });
  }

  /** Forgets all revisions except this many latest ones. */
  compact(back: number): void {
    this.#auditor?.program.send({ type: 'compact', back });
  }

  /** Breaks a lock that is in use now. Resolves to its name. */
  async breakLock(random: Random): Promise<string | undefined> {
    const remora = this.#operator;
    const r = this.#journal.round;
    const held = await remora?.locks
      .list({ prefix: `lock/${r}/` })
      .page()
      .catch(unlessRefused);
    const names = (held?.items ?? []).map(({ lock }) => Buffer.from(lock.name).toString());
    const k = names[random.int(Math.max(1, names.length))];
    if (remora === undefined || k === undefined) return undefined;
    const operation = this.#journal.begin('locks', r, { c: OPERATOR, k, op: 'force' });
    try {
      await remora.locks.forceRelease(k);
      operation.end('done');
    } catch (error) {
      // Whatever the error was, the lock may have been broken.
      operation.end('unknown', { code: unlessRefused(error) ?? 'REFUSED' });
    }
    return k;
  }

  /** Ends the load: every client finishes its current operation. */
  async stopLoad(): Promise<void> {
    await this.replaceGone();
    await Promise.all(this.#lives.map((life) => (life === undefined ? undefined : stop(life))));
  }

  /** The auditor reads what is left. Afterwards no process writes any more. */
  async finish(): Promise<void> {
    if (this.#auditor !== undefined) await stop(this.#auditor);
    await this.close();
  }

  /** Ends everything at once, and waits until the judge knows. */
  async close(): Promise<void> {
    clearInterval(this.#ticking);
    for (const life of [...this.#lives, this.#auditor]) {
      if (life === undefined) continue;
      life.mayEnd = true;
      if (life.program.running) life.program.signal('SIGKILL');
    }
    await Promise.all(this.#ended);
    await this.#operator?.close();
    this.#journal.stop();
    this.#options.tellJudge({ type: 'ended', process: OPERATOR });
  }

  #life(i: number): Life {
    const life = this.#lives[i];
    if (life === undefined) throw new Error(`there is no client ${i}`);
    return life;
  }

  #begin(role: ClientArguments['role'], i: number): Life {
    const { dir, programs, load, seed, endpoints, beganNs, roundMs, thinkMs, otherVersion, access } = this.#options;
    const birth = this.#born++;
    const name = role === 'auditor' ? AUDITOR : `c${i + 1}-${birth}`;
    const argument: ClientArguments = {
      ...{ role, load, name, endpoints, roundMs, thinkMs, passwords: this.#passwords },
      ...(access && { access: role === 'auditor' ? { load: access.root, visitors: {} } : access.clients }),
      journal: this.#announce(name),
      beganNs: String(beganNs),
      home: i % endpoints.length,
      seed: seed * 1_000 + birth,
    };
    const told = new Map<FromClient['type'], () => void>();
    const program: Program<FromClient, ToClient> = new Program({
      ...(otherVersion !== undefined && i % 2 === 1 && { nodeArguments: ofVersion(otherVersion) }),
      file: join(programs, 'clients/client-main.js'),
      argument,
      logPath: join(dir, `${name}.log`),
      onMessage: (message: FromClient) => {
        told.get(message.type)?.();
        if ('lock' in message) program.send({ type: 'answer', id: message.id, value: this.#useNumber(message) });
      },
    });
    const hears = (type: FromClient['type']): Promise<void> => {
      const heard = new Promise<void>((resolve) => told.set(type, resolve));
      return Promise.race([heard, program.ended.then(() => undefined)]);
    };
    const life: Life = { name, program, ready: hears('ready'), stopped: hears('stopped'), mayEnd: false };
    this.#ended.push(program.ended.then((how) => this.#gone(life, how)));
    return life;
  }

  #gone({ name, program, mayEnd }: Life, how: string): void {
    this.#options.tellJudge({ type: 'ended', process: name });
    if (!mayEnd) {
      this.#options.report(violation('clients go on', `${name} ended with ${how}:\n${program.lastWords()}`));
    }
  }

  /** C1. */
  #announce(process: string): string {
    const file = join(this.#options.dir, `${process}.jsonl`);
    this.#options.tellJudge({ type: 'opened', process, file });
    return file;
  }

  /** C2. */
  #useNumber(message: Extract<FromClient, { readonly lock: string }>): number | null {
    const { type, lock, version } = message;
    if (type === 'read') return this.#numbers.read(lock, version) ?? null;
    const { value } = message;
    if (!this.#numbers.write(lock, version, value)) return null;
    this.#journal.note('locks', Number(lock.split('/')[1]), { accepted: { lock, version, value } });
    return value;
  }
}

/** A process in which the SDK is that of another release: the constant that a bundler would set is a global one. */
function ofVersion(version: string): readonly string[] {
  return ['--import', `data:text/javascript,globalThis.REMORA_NEWEST_VERSION=${JSON.stringify(version)}`];
}

/** Requests the process's end, and waits for it. The process may take a while to finish its current operation. */
async function stop(life: Life): Promise<void> {
  life.mayEnd = true;
  life.program.send({ type: 'stop' });
  await life.stopped;
  await life.program.ended;
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error;
  return undefined;
}
