/**
 * Runs the services of a compose file as plain processes, for machines without Docker: with the user, the environment,
 * the entrypoint and the command of the image, a read-only root, and a /data and a /tmp of their own.
 *
 * What differs from containers: all services share one network, so each node listens on an address of its own. The root
 * is that of this machine. Memory and CPU have no limits, and system calls no filter.
 */
import { type ChildProcess, type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

type Environment = Readonly<Record<string, string>>;
type Program = ChildProcessByStdio<null, Readable, Readable>;

export interface Service {
  readonly environment?: Environment;
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
}

export interface Image {
  readonly env: Environment;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

const SANDBOX = fileURLToPath(new URL('sandbox.sh', import.meta.url));
const ENTER = fileURLToPath(new URL('enter.sh', import.meta.url));
const PATH = '/opt/remora/bin:/usr/local/bin:/usr/bin:/bin';

/** What a Dockerfile says about the processes of its image. */
export function imageOf(dockerfile: string): Image {
  const lines = readFileSync(dockerfile, 'utf8').replaceAll(/\\\n\s*/g, '');
  const instruction = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(lines)?.[1] ?? '';
  const check = /CMD (\[.*\])$/.exec(instruction('HEALTHCHECK'))?.[1] ?? '[]';
  return {
    env: Object.fromEntries(
      instruction('ENV')
        .split(/\s+/)
        .map((pair) => pair.split('=') as [string, string]),
    ),
    user: instruction('USER'),
    entrypoint: JSON.parse(instruction('ENTRYPOINT')),
    command: JSON.parse(instruction('CMD')),
    healthcheck: JSON.parse(check),
  };
}

export function servicesOf(compose: string): ReadonlyMap<string, Service> {
  return new Map(Object.entries<Service>(parse(readFileSync(compose, 'utf8'), { merge: true }).services));
}

/** Why this machine cannot run containers in this way. */
export function missingForContainers(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root makes namespaces with other users';
  const tools = 'ip link set lo up && setpriv --version && nsenter --version && grep overlay /proc/filesystems';
  try {
    execFileSync('unshare', ['--mount', '--net', 'sh', '-c', tools], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'unshare, nsenter, setpriv, ip or overlayfs is missing or not permitted';
  }
}

/**
 * The containers of one compose file. The nodes have addresses that are not loopback, as in a network of containers.
 * Only the first one listens for probes on 127.0.0.1, which the health check of the image asks.
 */
export class Containers {
  readonly #dir: string;
  readonly #image: Image;
  readonly #services: ReadonlyMap<string, Service>;
  readonly #hosts: ReadonlyMap<string, string>;
  readonly #running = new Map<string, Program>();
  #sandbox: ChildProcess | undefined;

  /** `dir` contains what is installed as `opt`. */
  constructor(dir: string, image: Image, services: ReadonlyMap<string, Service>) {
    this.#dir = dir;
    this.#image = image;
    this.#services = services;
    const nodes = [...services.keys()].filter((name) => /^n\d$/.test(name));
    this.#hosts = new Map(nodes.map((name, index) => [name, `10.89.0.${index + 1}`]));
  }

  get nodes(): readonly string[] {
    return [...this.#hosts.keys()];
  }

  async open(): Promise<void> {
    const hosts = [['localhost', '127.0.0.1'], ...this.#hosts].map(([name, address]) => `${address} ${name}`);
    const args = ['--mount', '--net', 'sh', SANDBOX, this.#dir, hosts.join('\n')];
    const sandbox = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#sandbox = sandbox;
    const [line] = await once(sandbox.stdout, 'data');
    if (String(line) !== 'ready\n') throw new Error(`the sandbox did not start: ${line}`);
  }

  /** Starts a service, as `docker compose up` does. */
  up(name: string): void {
    this.#running.set(name, this.#start(name));
  }

  /** Runs a service until it ends, and returns its exit code. */
  async run(name: string): Promise<number | null> {
    const [code] = await once(this.#start(name), 'exit');
    return code;
  }

  /** Runs a program in the container of a service, and returns what it writes; rejects if it fails. */
  async exec(name: string, ...program: readonly string[]): Promise<string> {
    const child = this.#spawn(name, program);
    const [out, err] = [text(child.stdout), text(child.stderr)];
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${program.join(' ')} ended with ${code}: ${await err}${await out}`);
    return out;
  }

  healthcheck(name: string): Promise<string> {
    return this.exec(name, ...this.#image.healthcheck);
  }

  /** Stops a service as Docker does, and returns its exit code. */
  async stop(name: string): Promise<number | null> {
    const child = this.#running.get(name);
    if (child === undefined) throw new Error(`${name} does not run`);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const [code] = await ended;
    this.#running.delete(name);
    return code;
  }

  close(): void {
    for (const child of this.#running.values()) child.kill('SIGKILL');
    this.#sandbox?.kill('SIGKILL');
  }

  #serviceOf(name: string): Service {
    const service = this.#services.get(name);
    if (service === undefined) throw new Error(`there is no service ${name}`);
    return service;
  }

  #start(name: string): Program {
    const { entrypoint = this.#image.entrypoint, command = this.#image.command } = this.#serviceOf(name);
    const child = this.#spawn(name, [...entrypoint, ...command]);
    child.stdout.resume();
    child.stderr.resume();
    return child;
  }

  /** Every step executes the next one, so the child is the program itself. */
  #spawn(name: string, program: readonly string[]): Program {
    const { environment = {}, user = this.#image.user } = this.#serviceOf(name);
    const env = { PATH, HOME: '/data', ...this.#image.env, ...environment, ...this.#listening(name) };
    const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const inside = ['sh', ENTER, join(this.#dir, 'root'), this.#dataOf(name, user), user, ...variables];
    const target = ['--target', String(this.#sandbox?.pid), '--mount', '--net', 'unshare', '--mount'];
    return spawn('nsenter', [...target, ...inside, ...program.map((one) => one.replaceAll('$$', '$'))], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** A container has a network of its own, and listens on all addresses of it. */
  #listening(name: string): Environment {
    const own = this.#hosts.get(name) ?? '';
    const all = Object.entries(this.#image.env).filter(([, value]) => value.startsWith('0.0.0.0:'));
    const hostFor = (key: string): string => (key.includes('HEALTH') && name === this.nodes[0] ? '127.0.0.1' : own);
    return Object.fromEntries(all.map(([key, value]) => [key, value.replace('0.0.0.0', hostFor(key))]));
  }

  #dataOf(name: string, user: string): string {
    const data = join(this.#dir, `data-${name}`);
    mkdirSync(data, { recursive: true, mode: 0o700 });
    const [uid = 0, gid = 0] = user.split(':').map(Number);
    chownSync(data, uid, gid);
    return data;
  }
}
