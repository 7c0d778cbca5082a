/** A real etcd of one member, where it is installed. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

export const hasEtcd = spawnSync('etcd', ['--version'], { stdio: 'ignore' }).status === 0;

export class RealEtcd {
  readonly dir = mkdtempSync(join(tmpdir(), 'remora-real-etcd-'));
  endpoint = '';
  #child: ReturnType<typeof spawn> | undefined;

  async start(): Promise<void> {
    const [client, peer] = await freePorts('127.0.0.1', 2);
    this.endpoint = `127.0.0.1:${client}`;
    const urls = [`--listen-client-urls=http://${this.endpoint}`, `--advertise-client-urls=http://${this.endpoint}`];
    const peers = `http://127.0.0.1:${peer}`;
    const cluster = [`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`];
    const args = [`--data-dir=${this.dir}`, ...urls, ...cluster, `--initial-cluster=default=${peers}`];
    this.#child = spawn('etcd', args, { stdio: 'ignore' });
    await eventually('etcd serves', () => this.#serves(), { timeoutMs: 30_000 });
  }

  async #serves(): Promise<boolean> {
    const answer = await fetch(`http://${this.endpoint}/health`).catch(() => undefined);
    return answer?.ok === true && ((await answer.json()) as { readonly health?: string }).health === 'true';
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }
}
