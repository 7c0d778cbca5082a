/** A PostgreSQL server of its own for a test: on loopback, in a temporary directory, ended with it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

/** Debian has a folder for each version. */
const VERSIONS = '/usr/lib/postgresql';
const HOST = '127.0.0.1';
const USER = 'postgres';
/**
 * Ends the server when the pipe closes that it reads from, so that no server outlives the test, however that ends.
 * SIGQUIT ends it at once, and lets it give back its shared memory.
 */
const GUARD = '"$@" & read _; kill -QUIT $!; wait $!';
const LOG_SHOWN = 2_000;

/** Says what is missing, and how to install it; undefined if PostgreSQL is installed. */
export function missingPostgres(): string | undefined {
  return existsSync(programs() ?? '')
    ? undefined
    : 'PostgreSQL is not installed; on Debian: apt-get install postgresql';
}

/** The folder of the newest version's programs. */
function programs(): string | undefined {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
  const [newest] = versions.sort((a, b) => Number(b) - Number(a));
  return newest === undefined ? undefined : join(VERSIONS, newest, 'bin');
}

/** It refuses to run as root: root starts it as the user that the package has made. */
function owner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, USER], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export class PostgresServer {
  /** `postgres://…`, for clients. */
  readonly url: string;
  readonly #dir: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  #log = '';

  private constructor(dir: string, port: number) {
    this.url = `postgres://${USER}@${HOST}:${port}/postgres`;
    this.#dir = dir;
    const settings = { listen_addresses: HOST, unix_socket_directories: '', fsync: 'off' };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const args = [join(programs() ?? '', 'postgres'), '-D', join(dir, 'data'), '-p', String(port), ...flags];
    // Detached, because Ctrl-C at a terminal is for the test, which ends its servers itself.
    const stdio: ('pipe' | 'ignore')[] = ['pipe', 'ignore', 'pipe'];
    this.#child = spawn('/bin/sh', ['-c', GUARD, 'postgres', ...args], {
      ...{ cwd: dir, detached: true, env: {}, stdio },
      ...owner(),
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-LOG_SHOWN);
    });
    this.#exit = new Promise((resolve) => {
      this.#child.once('close', () => resolve());
    });
  }

  static async start(): Promise<PostgresServer> {
    const dir = mkdtempSync(join(tmpdir(), 'remora-postgres-'));
    const { uid, gid } = owner();
    if (uid !== undefined && gid !== undefined) chownSync(dir, uid, gid);
    const args = ['-D', join(dir, 'data'), '-U', USER, '-A', 'trust', '--no-sync', '--no-locale', '-E', 'UTF8'];
    execFileSync(join(programs() ?? '', 'initdb'), args, { cwd: dir, stdio: 'pipe', ...owner() });
    const [port = 0] = await freePorts(HOST, 1);
    const server = new PostgresServer(dir, port);
    try {
      const args = ['-q', '-h', HOST, '-p', String(port)];
      const isReady = () => {
        execFileSync(join(programs() ?? '', 'pg_isready'), args);
        return true;
      };
      await eventually('PostgreSQL is ready', isReady, { pollMs: 50 });
      return server;
    } catch (cause) {
      await server.stop();
      throw new Error(`PostgreSQL did not get ready; the end of its log:\n${server.#log}`, { cause });
    }
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await this.#exit;
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
