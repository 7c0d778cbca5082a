import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../test/support/child.ts';
import { nodeCommand } from './profiled.ts';
import type { LoadCommand, LoadSpec, ServerProcess, System } from './system.ts';

/** The yardstick of `bare-pipeline.mjs`, its roles as processes of the benchmark. */
export class BareSystem implements System {
  readonly name = 'bare';
  readonly workloads = ['lock'] as const;
  readonly #program: string;
  readonly #dir: string;
  readonly #profileDir: string | undefined;
  #children: readonly { readonly role: 'leader' | 'follower'; readonly child: Child }[] = [];
  #port = 0;

  constructor(options: {
    readonly root: string;
    readonly dir: string;
    readonly profileDir: string | undefined;
  }) {
    this.#profileDir = options.profileDir;
    this.#program = join(options.root, 'bench/bare-pipeline.mjs');
    this.#dir = join(options.dir, 'bare');
  }

  async start(): Promise<void> {
    mkdirSync(this.#dir, { recursive: true });
    const ports = [await this.#serve('follower', 'f1', ''), await this.#serve('follower', 'f2', '')];
    this.#port = await this.#serve('leader', 'l', ` ${ports.join(' ')}`);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map(({ child }) => child.stop()));
  }

  async processes(): Promise<readonly ServerProcess[]> {
    return this.#children.map(({ role, child }) => ({ role, pid: child.pid }));
  }

  async load({ inflight, seconds }: LoadSpec): Promise<LoadCommand> {
    const env = { BARE_ROLE: `client ${this.#port} ${inflight} ${seconds}` };
    return { command: [...nodeCommand(this.#profileDir, 'bare-client'), this.#program], env };
  }

  async #serve(role: 'leader' | 'follower', name: string, followers: string): Promise<number> {
    const path = join(this.#dir, name);
    const env = { BARE_ROLE: `${role} ${path}${followers}` };
    const child = new Child({
      command: [...nodeCommand(this.#profileDir, `bare-${name}`), this.#program],
      env,
      cwd: this.#dir,
      logPath: `${path}.log`,
    });
    this.#children = [...this.#children, { role, child }];
    const { port } = await child.message('listening');
    return Number(port);
  }
}
