/** What `npm run release` makes, as its users install it: without this workspace, and without a network. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { Containers, imageOf, missingForContainers, servicesOf } from './release/containers.ts';
import { PRINTED, PROGRAMS, TYPED_PROGRAM } from './release/programs.ts';
import { jest, nodeVersions, oldTypeScript } from './release/runtimes.ts';
import { lockTests, TESTING_PRINTED, TESTING_PROGRAMS } from './release/testing-programs.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SLOW = 300_000;
/** The ports of a node follow one another; those of the next one are ten higher. */
const PORTS_APART = 10;

/** Before the suites are declared: what cannot be downloaded is skipped, and the names of the suites say why. */
const dir = mkdtempSync(join(tmpdir(), 'remora-release-'));
const NODES = nodeVersions(dir);
const OLD_TYPESCRIPT = oldTypeScript(dir);
const JEST = jest(dir);

let out: string;
beforeAll(() => {
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

test.each(['remora', 'remora-server'])('the package %s is complete', (name) => {
  for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json']) {
    expect(readFileSync(join(out, name, file), 'utf8').length, file).toBeGreaterThan(100);
  }
  const manifest = JSON.parse(readFileSync(join(out, name, 'package.json'), 'utf8'));
  expect(manifest).toMatchObject({ name, version: expect.stringMatching(/^\d+\.\d+\.\d+$/), license: 'Apache-2.0' });
  expect(manifest.engines).toEqual({ node: '>=20' });
  expect(manifest.description).toEqual(expect.any(String));
});

test('the documents of the server link to nothing that is not in the package', () => {
  const pages = textFiles(join(out, 'remora-server')).filter((file) =>
    /remora-server\/(docs\/.*|README)\.md$/.test(file),
  );
  expect(pages.length).toBeGreaterThan(50);
  const broken = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, file = '']) => join(page, '..', file))
      .filter((file) => !existsSync(file)),
  );
  expect(broken).toEqual([]);
});

test('the storage engine comes compiled for the platforms of the packages', () => {
  const compiled = readdirSync(join(out, 'remora-server/node_modules/classic-level/prebuilds'));
  expect(compiled).toEqual(expect.arrayContaining(['linux-x64', 'linux-arm64', 'darwin-x64+arm64', 'win32-x64']));
});

function tarball(name: string): string {
  return join(out, readdirSync(out).find((file) => new RegExp(`^${name}-\\d.*\\.tgz$`).test(file)) ?? '');
}

describe('installed from their tarballs into empty prefixes without a network', () => {
  let remora: string;
  let program: string;
  beforeAll(() => {
    const prefix = join(dir, 'prefix');
    output('npm', ['install', '--global', '--offline', '--prefix', prefix, tarball('remora-server')]);
    remora = join(prefix, 'bin/remora');
    program = join(dir, 'program');
    mkdirSync(program);
    output('npm', ['install', '--offline', '--prefix', program, tarball('remora'), tarball('remora-server')]);
    const programs = { ...PROGRAMS, ...TESTING_PROGRAMS };
    for (const [name, text] of Object.entries(programs)) writeFileSync(join(program, name), text);
  }, SLOW);

  describe.each(NODES)('with Node.js $version', ({ path, missing }) => {
    describeWith(missing, 'the packages work', () => {
      test(
        'a cluster of three nodes, its commands and what they start, and programs with import and require',
        async () => {
          const [port = 0] = await freePorts('127.0.0.1', 1);
          const ends = [port, port + PORTS_APART, port + 2 * PORTS_APART].map((one) => `127.0.0.1:${one}`).join(',');
          const env = { ...process.env, REMORA_ENDPOINTS: ends };
          const command = (...args: readonly string[]): string => output(path, [remora, ...args], env);
          const data = mkdtempSync(join(dir, 'dev-'));
          const options = ['dev', '--data-dir', data, '--base-port', `${port}`];
          const dev = spawn(path, [remora, ...options], { stdio: 'ignore' });
          try {
            await eventually('the cluster answers', async () => command('kv', 'put', 'a', 'b') !== '');
            expect(command('kv', 'get', 'a')).toBe('b');
            expect(command('lock', 'run', 'job', '--', 'echo', 'held')).toBe('held\n');
            await eventually(
              'three nodes',
              async () => command('admin', 'nodes', '--json').match(/"up"/g)?.length === 3,
            );
            for (const name of Object.keys(PROGRAMS)) {
              expect(output(path, [join(program, name), ends]), name).toBe(PRINTED);
            }
          } finally {
            const ended = new Promise((resolve) => dev.once('exit', resolve));
            dev.kill('SIGTERM');
            await ended;
          }
        },
        SLOW,
      );

      test.each(Object.keys(TESTING_PROGRAMS))('the node for tests: %s', (name) => {
        expect(output(path, [join(program, name)])).toBe(TESTING_PRINTED);
      });
    });
  });

  describeWith(JEST.missing, 'under Jest', () => {
    test('the fifty lock tests pass', async () => {
      writeFileSync(join(program, 'locks.test.cjs'), await lockTests('jest', 'cjs'));
      const results = join(program, 'results.json');
      const config = JSON.stringify({ rootDir: program, testMatch: ['**/locks.test.cjs'], testTimeout: SLOW });
      output(process.execPath, [JEST.path, '--config', config, '--json', '--outputFile', results]);
      expect(JSON.parse(readFileSync(results, 'utf8'))).toMatchObject({ numPassedTests: 50, numFailedTests: 0 });
    });
  });

  test('the server says which version it is, and makes certificates', () => {
    expect(output(remora, ['--version'])).toMatch(/^\d+\.\d+\.\d+\n$/);
    output(remora, ['cert', 'init', '--dir', join(dir, 'certs')]);
    expect(existsSync(join(dir, 'certs'))).toBe(true);
  });

  /** Compiles a program that uses the types, with all declarations checked. */
  function compile(tsc: string, resolution: string, types: string): void {
    const module = resolution === 'node16' ? 'node16' : resolution === 'node10' ? 'commonjs' : 'esnext';
    writeFileSync(join(program, 'typed.ts'), TYPED_PROGRAM);
    const compilerOptions = {
      ...{ strict: true, noEmit: true, skipLibCheck: false, target: 'es2022', lib: ['es2023', 'esnext.disposable'] },
      ...{ module, moduleResolution: resolution, types: ['node'], typeRoots: [types] },
    };
    writeFileSync(join(program, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
    output(process.execPath, [tsc, '-p', program]);
  }

  const NODE_TYPES = join(ROOT, 'node_modules/@types');

  test.each(['node16', 'bundler'])('the types compile with the newest TypeScript and %s', (resolution) => {
    compile(join(ROOT, 'node_modules/typescript/bin/tsc'), resolution, NODE_TYPES);
  });

  describeWith(OLD_TYPESCRIPT.missing, 'the types compile with TypeScript 5.2', () => {
    test.each(['node16', 'bundler', 'node10'])('and %s', (resolution) => {
      compile(OLD_TYPESCRIPT.path, resolution, NODE_TYPES);
    });
  });
});

describeWith(missingForContainers(), 'the services of compose.yaml, run as plain processes', () => {
  let containers: Containers;
  beforeAll(async () => {
    const deploy = join(ROOT, 'deploy/docker');
    const own = join(dir, 'containers');
    output('npm', ['install', '--global', '--offline', '--prefix', join(own, 'opt'), tarball('remora-server')]);
    containers = new Containers(own, imageOf(join(deploy, 'Dockerfile')), servicesOf(join(deploy, 'compose.yaml')));
    await containers.open();
    expect(await containers.run('certificates')).toBe(0);
    for (const name of containers.nodes) containers.up(name);
  }, SLOW);
  afterAll(() => containers?.close());

  test(
    'are healthy, serve clients that have certificates, and stop cleanly',
    async () => {
      expect(containers.nodes).toEqual(['n1', 'n2', 'n3']);
      const check = (): Promise<string> => containers.exec('n1', 'remora', 'admin', 'check');
      await eventually('the cluster is founded', async () => (await check()).includes('no problems found'));
      expect(await check()).toContain('authentication is on; users with the role root: root');
      await containers.exec('n1', 'remora', 'kv', 'put', 'greeting', 'hello');
      expect(await containers.exec('n2', 'remora', 'kv', 'get', 'greeting')).toBe('hello');
      await containers.healthcheck('n1');
      for (const name of containers.nodes) expect(await containers.stop(name), name).toBe(0);
    },
    SLOW,
  );

  test('run as the user of the image, and write to /data and /tmp alone', async () => {
    expect(await containers.exec('n1', 'id', '-u')).toBe('10001\n');
    await containers.exec('n1', 'sh', '-c', 'touch /data/here /tmp/here');
    for (const place of ['/here', '/opt/remora/here', '/var/lib/here']) {
      await expect(containers.exec('n1', 'touch', place)).rejects.toThrow(/touch/);
    }
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
