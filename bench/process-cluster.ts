import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../test/e2e/eventually.ts';
import { freePorts } from '../test/e2e/free-ports.ts';
import { Child } from '../test/support/child.ts';
import type { LoadArguments } from './load-spec.ts';
import type { EntryChoice, Killable, LoadCommand, LoadSpec, ServerProcess, Workload } from './system.ts';

const HOST = '127.0.0.1';
const MEMBERS = 3;
const READY_TIMEOUT_MS = 60_000;

export interface MemberAddress {
  /** n1, n2, n3. */
  readonly name: string;
  readonly dataDir: string;
  /** `host:port` each. */
  readonly client: string;
  readonly peer: string;
  readonly http: string;
  readonly health: string;
}

/** How clients get in where they have to say who they are. */
export interface Access {
  /** Paths of the authority's certificate, and of a user's certificate and key. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Called once, when all members are ready for the first time. */
  prepare(clientAddress: string): Promise<void>;
  /** For programs that cannot show a certificate. */
  token(clientAddress: string): Promise<string>;
}

/** What tells one kind of server from another. */
export interface ServerKind {
  readonly name: string;
  readonly workloads: readonly Workload[];
  readonly cwd: string;
  command(member: MemberAddress, all: readonly MemberAddress[]): readonly [string, ...string[]];
  isReady(member: MemberAddress): Promise<boolean>;
  isLeader(member: MemberAddress): Promise<boolean>;
  /** The API that a workload goes through. */
  api(workload: LoadSpec['workload']): LoadArguments['api'];
  /** Undefined: anybody may do anything, in plain text. */
  readonly access?: Access;
  /** Takes `LoadArguments` as JSON behind it. */
  readonly loadProgram: readonly [string, ...string[]];
}

interface Member {
  readonly address: MemberAddress;
  child: Child | undefined;
}

/** Three server processes with data in a directory of their own. */
export class ProcessCluster implements Killable {
  readonly #kind: ServerKind;
  readonly #dir: string;
  readonly #entry: EntryChoice;
  #members: readonly Member[] = [];

  constructor(kind: ServerKind, options: { readonly dir: string; readonly entry: EntryChoice }) {
    this.#kind = kind;
    this.#dir = options.dir;
    this.#entry = options.entry;
  }

  get name(): string {
    return this.#kind.name;
  }

  get access(): Access | undefined {
    return this.#kind.access;
  }

  get workloads(): readonly Workload[] {
    return this.#kind.workloads;
  }

  async start(): Promise<void> {
    const ports = (await freePorts(HOST, 4 * MEMBERS)).map((port) => `${HOST}:${port}`);
    this.#members = Array.from({ length: MEMBERS }, (_, i) => {
      const name = `n${i + 1}`;
      const [client = '', peer = '', http = '', health = ''] = ports.slice(4 * i, 4 * i + 4);
      const dataDir = join(this.#dir, this.name, name);
      mkdirSync(dataDir, { recursive: true });
      return { address: { name, dataDir, client, peer, http, health }, child: undefined };
    });
    await this.repair();
    await this.#kind.access?.prepare(await this.entryAddress());
  }

  async repair(): Promise<void> {
    const all = this.#members.map(({ address }) => address);
    for (const member of this.#members) {
      if (member.child?.running) continue;
      member.child = new Child({
        command: this.#kind.command(member.address, all),
        cwd: this.#kind.cwd,
        logPath: `${member.address.dataDir}.log`,
      });
    }
    await Promise.all(this.#members.map((member) => this.#untilReady(member)));
    await this.#leader();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ child }) => child?.stop()));
  }

  async killLeader(): Promise<void> {
    const { child } = await this.#leader();
    child?.signal('SIGKILL');
    await child?.exit;
  }

  async processes(workload?: LoadSpec['workload']): Promise<readonly ServerProcess[]> {
    const [leader, entry] = await this.#leaderAndEntry();
    const chosen = workload !== undefined && this.#kind.api(workload) === 'etcd' ? entry : leader;
    return this.#members.map((member) => {
      const role = member === leader ? 'leader' : member === chosen ? 'entry' : 'follower';
      if (member.child === undefined) throw new Error(`${member.address.name} does not run`);
      return { role, pid: member.child.pid };
    });
  }

  /** Where clients connect. */
  async entryAddress(): Promise<string> {
    const [, entry] = await this.#leaderAndEntry();
    return entry.address.client;
  }

  async load({ workload, inflight, seconds, firstWorker = 0 }: LoadSpec): Promise<LoadCommand> {
    const [, entry] = await this.#leaderAndEntry();
    const others = this.#members.filter((member) => member !== entry);
    const { access } = this.#kind;
    const args: LoadArguments = {
      api: this.#kind.api(workload),
      workload: workload === 'unary-put' ? 'put' : workload === 'unary-get' ? 'get' : workload,
      endpoints: [entry, ...others].map(({ address }) => `${access === undefined ? '' : 'https://'}${address.client}`),
      inflight,
      firstWorker,
      seconds,
      ...(access !== undefined && { tls: { ca: access.ca, cert: access.cert, key: access.key } }),
    };
    return { command: [...this.#kind.loadProgram, JSON.stringify(args)] };
  }

  async #leaderAndEntry(): Promise<readonly [leader: Member, entry: Member]> {
    const leader = await this.#leader();
    if (this.#entry === 'leader') return [leader, leader];
    return [leader, this.#members.find((member) => member !== leader) ?? leader];
  }

  async #leader(): Promise<Member> {
    return eventually(
      `${this.name} has a leader`,
      async () => {
        const running = this.#members.filter(({ child }) => child?.running);
        const leads = await Promise.all(running.map(({ address }) => this.#kind.isLeader(address)));
        return running.find((_, i) => leads[i]);
      },
      { timeoutMs: READY_TIMEOUT_MS, pollMs: 50 },
    );
  }

  async #untilReady({ address, child }: Member): Promise<void> {
    const probe = async (): Promise<boolean> => {
      if (child?.running !== true) throw new Error(`it has ended`);
      return this.#kind.isReady(address);
    };
    await eventually(`${this.name} ${address.name} is ready`, probe, { timeoutMs: READY_TIMEOUT_MS, pollMs: 50 }).catch(
      (cause: unknown) => {
        throw new Error(`${this.name} ${address.name} did not get ready:\n${child?.logTail(8)}`, { cause });
      },
    );
  }
}
