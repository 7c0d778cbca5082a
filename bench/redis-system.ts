import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../test/e2e/eventually.ts';
import { freePorts } from '../test/e2e/free-ports.ts';
import { Child } from '../test/support/child.ts';
import { compiledBench } from './compiled-bench.ts';
import type { LoadArguments } from './load-spec.ts';
import type { LoadCommand, LoadSpec, ServerProcess, System } from './system.ts';

const PROGRAM = '/usr/bin/redis-server';
const HOST = '127.0.0.1';
/** As the authors of Redlock advise. */
const REDLOCK_SERVERS = 5;

interface Server {
  readonly address: string;
  readonly child: Child;
}

/**
 * Redis as a lock service that keeps what it acknowledged: every write is synced (`appendfsync always`). `redis` is one
 * server, `redlock` five that know nothing of each other.
 */
export class RedisSystem implements System {
  readonly name: 'redis' | 'redlock';
  readonly workloads = ['lock'] as const;
  readonly #root: string;
  readonly #dir: string;
  #servers: readonly Server[] = [];

  /** @throws Error with advice when Redis is not installed. */
  constructor(name: 'redis' | 'redlock', { root, dir }: { readonly root: string; readonly dir: string }) {
    if (!existsSync(PROGRAM)) {
      throw new Error(`--peer ${name} needs ${PROGRAM}; on Debian: apt-get install redis-server`);
    }
    this.name = name;
    this.#root = root;
    this.#dir = join(dir, name);
  }

  async start(): Promise<void> {
    const ports = await freePorts(HOST, this.name === 'redis' ? 1 : REDLOCK_SERVERS);
    this.#servers = ports.map((port) => this.#serve(port));
    await Promise.all(
      this.#servers.map(({ child }) =>
        eventually(`${this.name} is ready`, () => child.logTail(3).includes('Ready to accept connections')),
      ),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map(({ child }) => child.stop()));
  }

  async processes(): Promise<readonly ServerProcess[]> {
    return this.#servers.map(({ child }) => ({ role: 'entry', pid: child.pid }));
  }

  async load({ inflight, seconds }: LoadSpec): Promise<LoadCommand> {
    const args: LoadArguments = {
      api: 'module',
      module: join(this.#root, 'bench/redis-drivers.mjs'),
      workload: 'lock',
      endpoints: this.#servers.map(({ address }) => address),
      inflight,
      seconds,
    };
    return { command: [process.execPath, compiledBench(this.#root, 'load-main.js'), JSON.stringify(args)] };
  }

  #serve(port: number): Server {
    const dir = join(this.#dir, String(port));
    mkdirSync(dir, { recursive: true });
    const flags = ['--bind', HOST, '--port', String(port), '--dir', dir, '--save', ''];
    const child = new Child({
      command: [PROGRAM, ...flags, '--appendonly', 'yes', '--appendfsync', 'always'],
      cwd: dir,
      logPath: `${dir}.log`,
    });
    return { address: `${HOST}:${port}`, child };
  }
}
