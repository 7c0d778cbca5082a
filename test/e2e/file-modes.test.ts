/** Nobody but its own user reads what a node, a backup, a journal or a local cluster writes, whatever the umask is. */
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { Cluster } from './harness.ts';

const usual = process.umask(0); // the processes that this one begins have it, too
let cluster: Cluster;
let dir: string;
const command = new RemoraCommand(() => cluster.endpoints);

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remora-modes-'));
  cluster = await Cluster.start({ nodes: 1 });
});
afterAll(async () => {
  await command.endAll();
  await cluster?.stop();
  rmSync(dir, { recursive: true, force: true });
  process.umask(usual);
});

/** Everything at and below a path that others than its user may do something with. */
function loose(path: string): readonly string[] {
  const entry = lstatSync(path);
  const own = (entry.mode & 0o077) === 0 ? [] : [`${path} ${(entry.mode & 0o777).toString(8)}`];
  return entry.isDirectory() ? [...own, ...readdirSync(path).flatMap((name) => loose(join(path, name)))] : own;
}

function filesBelow(path: string): readonly string[] {
  const found = readdirSync(path, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map(({ name }) => name);
}

test('a data directory, while the node runs and after it was started again', async () => {
  const node = cluster.node(1);
  await using client = await connect({ endpoints: cluster.endpoints });
  await client.kv.put('a', Buffer.alloc(1 << 20));
  expect(loose(node.dataDir)).toEqual([]);
  await cluster.restart(1); // writes a checkpoint
  await client.kv.put('b', 'x');
  expect(filesBelow(node.dataDir)).toEqual(
    expect.arrayContaining(['node.json', 'nodes.json', 'owner.json', 'CURRENT']),
  );
  expect(loose(node.dataDir)).toEqual([]);
});

test('a backup, also where an earlier one was cut off', async () => {
  const path = join(dir, 'keys.backup');
  writeFileSync(`${path}.unfinished`, '');
  const { code, err } = await command.run('admin', 'backup', path);
  expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' });
  expect(loose(path)).toEqual([]);
});

test.each(['sdk', 'lock run'])('the journal of %s', async (by) => {
  const journal = join(dir, by, 'journal');
  if (by === 'sdk') {
    await using client = await connect({ endpoints: cluster.endpoints, journal });
    await using _held = await client.lock('journalled').acquire();
    await eventually('the journal is there', () => filesBelow(journal).length > 0);
    expect(loose(join(dir, by))).toEqual([]);
    return;
  }
  const run = command.begin(['lock', 'run', 'other', '--journal', journal, '--', 'sleep', '60']);
  await eventually('the journal is there', () => filesBelow(journal).length > 0);
  expect(loose(join(dir, by))).toEqual([]);
  run.child.kill('SIGTERM');
  await run.ended;
});

test('the command of lock run has the umask of its caller', async () => {
  const { out } = await command.run('lock', 'run', 'umask', '--', 'sh', '-c', 'umask');
  expect(out.trim()).toMatch(/^0+$/);
});

test('a local cluster', async () => {
  const [basePort = 0] = await freePorts('127.0.0.1', 4);
  const local = join(dir, 'dev');
  const run = command.begin(['dev', '--nodes', '1', '--data-dir', local, '--base-port', String(basePort)]);
  await eventually('it runs', () => run.out.includes(String(basePort)));
  expect(filesBelow(local)).toContain('CURRENT');
  expect(loose(local)).toEqual([]);
  run.child.kill('SIGTERM');
  await run.ended;
});

test('a node warns of a directory that others may enter, says what to run, and leaves it as it is', async () => {
  const node = cluster.node(1);
  await node.end('SIGTERM');
  expect(node.log()).not.toContain('accessible to other users');
  chmodSync(node.dataDir, 0o755);
  await cluster.restart(1);
  expect(node.log()).toContain('the data directory is accessible to other users');
  expect(node.log()).toContain(`chmod -R go-rwx ${node.dataDir}`);
  expect(lstatSync(node.dataDir).mode & 0o777).toBe(0o755);
});

test('a node warns of an audit log that others may read or replace, and says what to run', async () => {
  const node = cluster.node(1);
  await node.end('SIGTERM');
  const logs = join(dir, 'logs');
  const file = join(logs, 'audit.log');
  mkdirSync(logs);
  writeFileSync(file, '');
  chmodSync(file, 0o644);
  chmodSync(logs, 0o777);
  node.start({ 'audit-log': file });
  await node.untilReady();
  expect(node.log()).toContain(`chmod 600 ${file}`);
  expect(node.log()).toContain(`chmod go-w ${logs}`);
});
