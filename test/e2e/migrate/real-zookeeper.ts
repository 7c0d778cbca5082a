/** A real ZooKeeper of one server for a test: on loopback, with its own data, ended with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import zooKeeper, { type Client } from 'node-zookeeper-client';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

const HOST = '127.0.0.1';
const JAVA = '/usr/bin/java';
const JAR = '/usr/share/java/zookeeper.jar';
const SERVER = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
/** The shortest session that a server grants is two of these. */
const TICK_MS = 500;
const SESSION_MAX_MS = 60_000;
const PROBE_MS = 1_000;
const START_MS = 60_000;
/** Ends the server when the pipe closes that it reads from, so that no server outlives the test, however that ends. */
const GUARD = '"$@" & read _; kill -9 $!; wait $!';

/** Says what is missing, and how to install it; undefined if ZooKeeper is installed. */
export function missingZooKeeper(): string | undefined {
  const missing = [JAVA, JAR].find((file) => !existsSync(file));
  return missing && `${missing} is missing; on Debian: apt-get install --no-install-recommends zookeeper`;
}

export class RealZooKeeper {
  readonly #dir = mkdtempSync(join(tmpdir(), 'remora-zookeeper-'));
  readonly #clients: Client[] = [];
  readonly endpoint: string;
  readonly #child: ChildProcess;

  private constructor(port: number) {
    this.endpoint = `${HOST}:${port}`;
    const settings = {
      ...{ clientPort: port, clientPortAddress: HOST, dataDir: this.#dir, tickTime: TICK_MS, maxClientCnxns: 0 },
      ...{ maxSessionTimeout: SESSION_MAX_MS, 'admin.enableServer': false, '4lw.commands.whitelist': 'srvr' },
    };
    const config = join(this.#dir, 'zoo.cfg');
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(config, lines.join(''));
    this.#child = spawn('/bin/sh', ['-c', GUARD, 'zookeeper', JAVA, '-Xmx128m', '-cp', JAR, SERVER, config], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: {},
      detached: true, // Ctrl-C at a terminal is for the test, which ends its server itself.
    });
  }

  static async start(): Promise<RealZooKeeper> {
    const [port = 0] = await freePorts(HOST, 1);
    const server = new RealZooKeeper(port);
    await eventually('ZooKeeper serves', () => serves(port), { timeoutMs: START_MS });
    return server;
  }

  /** A client with a session of its own, connected. */
  async client(sessionTimeout: number): Promise<Client> {
    const client = zooKeeper.createClient(this.endpoint, { sessionTimeout, retries: 0 });
    this.#clients.push(client);
    const connected = new Promise<void>((resolve) => client.once('connected', resolve));
    client.connect();
    await connected;
    return client;
  }

  /** Ends the server as a crash would. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.stdin?.end();
    await ended;
  }

  async stop(): Promise<void> {
    await this.end();
    for (const client of this.#clients) client.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** It listens before it serves, and does not answer clients that connect in between. */
function serves(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, HOST, () => socket.write('srvr'));
    socket.on('data', (bytes) => {
      answer += bytes.toString();
    });
    socket.setTimeout(PROBE_MS, () => socket.destroy());
    socket.once('error', () => {});
    socket.once('close', () => resolve(answer.includes('Mode: standalone')));
  });
}
