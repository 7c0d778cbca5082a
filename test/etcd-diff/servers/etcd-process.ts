/** A real etcd of one member, as it is installed, with its defaults. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../e2e/eventually.ts';
import { freePorts } from '../../e2e/free-ports.ts';

const PROGRAM = '/usr/bin/etcd';
const HOST = '127.0.0.1';
const READY_MS = 60_000;
const PROBE_TIMEOUT_MS = 1_000;
const LOG_SHOWN = 2_000;

/** Says what is missing, and how to install it; undefined if etcd is installed. */
export function missingEtcd(): string | undefined {
  return existsSync(PROGRAM) ? undefined : `${PROGRAM} is not installed; on Debian: apt-get install etcd-server`;
}

/** Ends the server when the pipe closes that it reads from, so that no server outlives the test, however that ends. */
const GUARD = '"$@" & read _; kill -9 $!; wait $!';

export class EtcdProcess {
  /** `host:port` for clients. */
  readonly client: string;
  readonly #dir: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  #log = '';

  private constructor(dir: string, { client, peer }: { readonly client: number; readonly peer: number }) {
    this.client = `${HOST}:${client}`;
    this.#dir = dir;
    const peerUrl = `http://${HOST}:${peer}`;
    const flags = {
      name: 'etcd',
      'data-dir': dir,
      'listen-client-urls': `http://${this.client}`,
      'advertise-client-urls': `http://${this.client}`,
      'listen-peer-urls': peerUrl,
      'initial-advertise-peer-urls': peerUrl,
      'initial-cluster': `etcd=${peerUrl}`,
      logger: 'zap',
      'log-outputs': 'stderr',
    };
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]);
    this.#child = spawn('/bin/sh', ['-c', GUARD, 'etcd', PROGRAM, ...args], {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: {},
      // Ctrl-C at a terminal is for the test, which ends its servers itself.
      detached: true,
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-LOG_SHOWN);
    });
    this.#exit = new Promise((resolve) => {
      this.#child.once('close', () => resolve());
    });
  }

  static async start(): Promise<EtcdProcess> {
    const [client = 0, peer = 0] = await freePorts(HOST, 2);
    const server = new EtcdProcess(mkdtempSync(join(tmpdir(), 'remora-etcd-')), { client, peer });
    try {
      await eventually('etcd is ready', () => server.#isReady(), { timeoutMs: READY_MS, pollMs: 50 });
      return server;
    } catch (cause) {
      await server.stop();
      throw new Error(`etcd did not get ready; the end of its log:\n${server.#log}`, { cause });
    }
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await this.#exit;
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #isReady(): Promise<boolean> {
    const health = await fetch(`http://${this.client}/health`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    return health.ok && (await health.text()).includes('"true"');
  }
}
