/** What `npm run release` makes, as its users install it: without this workspace, and without a network. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SLOW = 300_000;
/** The ports of a node follow one another; those of the next one are ten higher. */
const PORTS_APART = 10;

let dir: string;
let out: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-release-'));
  out = release('first');
}, SLOW);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Makes a release in a directory of its own; the tree may have changes while it is worked on. */
function release(name: string): string {
  const args = ['scripts/release/main.mjs', '--allow-changes', '--out', join(dir, name)];
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: 'pipe' });
  return join(dir, name);
}

function textFiles(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(js|cjs|mjs|json|md|txt|yaml|service)$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name));
}

function output(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  return execFileSync(program, args, { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] }).toString();
}

test('the same tree makes the same bytes', () => {
  const again = release('second');
  expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(readFileSync(join(out, 'SHA256SUMS'), 'utf8'));
});

test('no path of the build, no source map and no package of the workspace is in it', () => {
  for (const file of ['remora', 'remora-server'].flatMap((name) => textFiles(join(out, name)))) {
    const text = readFileSync(file, 'utf8');
    const found = [ROOT, '//# sourceMappingURL=', 'workspace:'].filter((what) => text.includes(what));
    expect({ file, found: file.includes('/node_modules/') ? found.filter((what) => what === ROOT) : found }).toEqual({
      file,
      found: [],
    });
  }
});

test('the bill of materials names every package that comes with the server, with its licence', () => {
  const { components } = JSON.parse(readFileSync(join(out, 'remora-server/sbom.cdx.json'), 'utf8'));
  const names = components.map(({ group, name }: { group?: string; name: string }) =>
    group === undefined ? name : `${group}/${name}`,
  );
  expect(names).toEqual(expect.arrayContaining(['msgpackr', 'commander', 'classic-level', 'buffer']));
  expect(names.filter((name: string) => /grpc/.test(name))).toEqual([]);
  expect(components.filter((one: { licenses?: unknown[] }) => one.licenses?.length !== 1)).toEqual([]);
});

describe('the server, installed from its tarball into an empty prefix without a network', () => {
  let remora: string;
  beforeAll(() => {
    const prefix = join(dir, 'prefix');
    const tarball = readdirSync(out).find((name) => /^remora-server-.*\.tgz$/.test(name)) ?? '';
    output('npm', ['install', '--global', '--offline', '--prefix', prefix, join(out, tarball)]);
    remora = join(prefix, 'bin/remora');
  }, SLOW);

  test(
    'runs a cluster of three nodes, its commands, and what they start',
    async () => {
      const [port = 0] = await freePorts('127.0.0.1', 1);
      const ends = [port, port + PORTS_APART, port + 2 * PORTS_APART].map((one) => `127.0.0.1:${one}`).join(',');
      const env = { ...process.env, REMORA_ENDPOINTS: ends };
      const dev = spawn(remora, ['dev', '--data-dir', join(dir, 'dev'), '--base-port', `${port}`], { stdio: 'ignore' });
      try {
        await eventually('the cluster answers', async () => output(remora, ['kv', 'put', 'a', 'b'], env) !== '');
        expect(output(remora, ['kv', 'get', 'a'], env)).toBe('b');
        expect(output(remora, ['lock', 'run', 'job', '--', 'echo', 'held'], env)).toBe('held\n');
      } finally {
        const ended = new Promise((resolve) => dev.once('exit', resolve));
        dev.kill('SIGTERM');
        await ended;
      }
    },
    SLOW,
  );

  test('says which version it is, and makes certificates', () => {
    expect(output(remora, ['--version'])).toMatch(/^\d+\.\d+\.\d+\n$/);
    output(remora, ['cert', 'init', '--dir', join(dir, 'certs')]);
    expect(existsSync(join(dir, 'certs'))).toBe(true);
  });
});

/** Why the Debian package cannot be installed on this machine. */
function missingForDebian(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root installs packages';
  if (!succeeds('dpkg-query', '-W', 'nodejs')) return 'the package nodejs is not installed';
  if (!succeeds('systemd-analyze', '--version')) return 'systemd-analyze is not installed';
  if (succeeds('dpkg-query', '-W', 'remora')) return 'the package remora is installed already';
  return undefined;
}

function succeeds(program: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describeWith(missingForDebian(), 'the Debian package', () => {
  beforeAll(() => {
    const architecture = output('dpkg', ['--print-architecture']).trim();
    const file = readdirSync(out).find((name) => name.endsWith(`_${architecture}.deb`)) ?? '';
    output('dpkg', ['--install', join(out, file)]);
  }, SLOW);
  afterAll(() => {
    execFileSync('dpkg', ['--purge', 'remora'], { stdio: 'pipe' });
    rmSync('/var/lib/remora', { recursive: true, force: true });
  });

  test.each(['remora.service', 'remora-backup.service', 'remora-backup.timer'])('its unit %s is valid', (unit) => {
    output('systemd-analyze', ['verify', `/usr/lib/systemd/system/${unit}`]);
  });

  test(
    'the command of its unit runs as its user, with its configuration, and stops cleanly',
    async () => {
      const unit = readFileSync('/usr/lib/systemd/system/remora.service', 'utf8');
      const [program = '', ...args] = (/^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '').split(' ');
      const [client = 0, peer = 0, http = 0, health = 0] = await freePorts('127.0.0.1', 4);
      execFileSync('install', ['-d', '-m', '0700', '-o', 'remora', '-g', 'remora', '/var/lib/remora']);
      const env = {
        PATH: process.env.PATH,
        REMORA_CLIENT_LISTEN: `127.0.0.1:${client}`,
        REMORA_PEER_LISTEN: `127.0.0.1:${peer}`,
        REMORA_HTTP_LISTEN: `127.0.0.1:${http}`,
        REMORA_HEALTH_LISTEN: `127.0.0.1:${health}`,
      };
      const as = ['--reuid', 'remora', '--regid', 'remora', '--clear-groups', program, ...args];
      const node = spawn('setpriv', as, { env, stdio: 'ignore' });
      const ended = new Promise((resolve) => node.once('exit', resolve));
      try {
        const endpoints = { ...process.env, REMORA_ENDPOINTS: `127.0.0.1:${client}` };
        await eventually('the node answers', async () => output('remora', ['kv', 'put', 'a', 'b'], endpoints) !== '');
        node.kill('SIGHUP'); // ExecReload
        expect(output('remora', ['kv', 'get', 'a'], endpoints)).toBe('b');
      } finally {
        node.kill('SIGTERM');
      }
      expect(await ended).toBe(0);
    },
    SLOW,
  );
});
