/** Redis servers of their own for a test: on loopback, in memory, ended with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePorts } from '../free-ports.ts';

const PROGRAM = '/usr/bin/redis-server';
const HOST = '127.0.0.1';
/** Ends the server when the pipe closes that it reads from, so that no server outlives the test, however that ends. */
const GUARD = '"$@" & read _; kill -9 $!; wait $!';

/** Says what is missing, and how to install it; undefined if Redis is installed. */
export function missingRedis(): string | undefined {
  return existsSync(PROGRAM) ? undefined : `${PROGRAM} is not installed; on Debian: apt-get install redis-server`;
}

function startGuarded(args: readonly string[]): ChildProcess {
  return spawn('/bin/sh', ['-c', GUARD, 'redis', PROGRAM, ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
    // Ctrl-C at a terminal is for the test, which ends its servers itself.
    detached: true,
  });
}

export class RedisServers {
  readonly #dir = mkdtempSync(join(tmpdir(), 'remora-redis-'));
  readonly #servers: { readonly port: number; readonly child: ChildProcess }[] = [];
  readonly #clients: Redis[] = [];

  static async start(count: number): Promise<RedisServers> {
    const all = new RedisServers();
    for (const port of await freePorts(HOST, count)) {
      const flags = { port, bind: HOST, save: '', appendonly: 'no', dir: all.#dir, 'protected-mode': 'no' };
      const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
      all.#servers.push({ port, child: startGuarded(args) });
    }
    await Promise.all(all.clients().map((client) => client.ping()));
    return all;
  }

  /** Where they listen. */
  get urls(): readonly string[] {
    return this.#servers.map(({ port }) => `redis://${HOST}:${port}`);
  }

  /** A new client of each server. They wait until it answers. */
  clients(): readonly Redis[] {
    return this.#connect(null);
  }

  /** Clients whose calls fail at once while a server is gone. */
  impatientClients(): readonly Redis[] {
    return this.#connect(0);
  }

  #connect(maxRetriesPerRequest: number | null): readonly Redis[] {
    const made = this.#servers.map(({ port }) => {
      const client = new Redis({ port, host: HOST, retryStrategy: () => 50, maxRetriesPerRequest });
      client.on('error', () => {}); // Until the server has started, and after it was ended.
      return client;
    });
    this.#clients.push(...made);
    return made;
  }

  /** Ends the nth server, counted from 1. */
  async end(n: number): Promise<void> {
    const child = this.#servers[n - 1]?.child;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.stdin?.end();
    await ended;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await Promise.all(this.#servers.map((_, at) => this.end(at + 1)));
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
