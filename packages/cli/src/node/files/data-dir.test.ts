import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FIRST_AUTH } from '@remora/auth';
import { OWN_UMASK, SeededRandom, versionOf } from '@remora/base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Founders } from '../cluster/cluster-identity.ts';
import { type DataDir, type OpenDataDirOptions, openDataDir } from './data-dir.ts';

let dir: string;
const opened: DataDir[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-data-dir-'));
});

afterEach(async () => {
  for (const dataDir of opened.splice(0)) await dataDir.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function open(options: Partial<OpenDataDirOptions> = {}): Promise<DataDir> {
  const dataDir = await openDataDir({ dir, name: 'n1', random: new SeededRandom(1), ...options });
  opened.push(dataDir);
  return dataDir;
}

async function closeAll(): Promise<void> {
  for (const dataDir of opened.splice(0)) await dataDir.close();
}

function read(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(dir, name), 'utf8'));
}

describe('users and roles', () => {
  const user = { name: 'root', passwordHash: '$scrypt$x', version: 3, roles: ['root'] };
  const IMAGE = { ...FIRST_AUTH, enabled: true, revision: 7, users: [user], tokenKey: Buffer.from([1, 2]) };

  test('are known to the next life, and readable by nobody else', async () => {
    const dataDir = await open();
    expect(dataDir.knownAuth).toBeUndefined();
    dataDir.rememberAuth(IMAGE);
    await closeAll();
    expect((await open()).knownAuth).toEqual(IMAGE);
    expect(statSync(join(dir, 'users.json')).mode & OWN_UMASK).toBe(0);
  });

  test('that are damaged end the start: the node could not tell that authentication is on', async () => {
    (await open()).rememberAuth(IMAGE);
    await closeAll();
    writeFileSync(join(dir, 'users.json'), JSON.stringify({ formatVersion: 1, image: 'AAAA' }));
    await expect(open()).rejects.toThrow('users.json is damaged');
  });
});

describe('the version in force', () => {
  test('is known to the next life, beside the identity, and written as people read it', async () => {
    const dataDir = await open();
    expect(dataDir.clusterVersion).toBeUndefined();
    dataDir.rememberVersion(versionOf('0.2') ?? 0);
    await dataDir.assign({ clusterId: 'c', nodeId: 3 });
    await closeAll();
    const again = await open();
    expect([again.clusterVersion, again.identity.nodeId]).toEqual([versionOf('0.2'), 3]);
    expect(read('node.json')).toMatchObject({ clusterVersion: '0.2', nodeId: 3 });
  });

  test('that is damaged ends the start: the node could write what others do not read', async () => {
    await open();
    await closeAll();
    writeFileSync(join(dir, 'node.json'), JSON.stringify({ ...read('node.json'), clusterVersion: 'new' }));
    await expect(open()).rejects.toThrow('node.json is damaged');
  });
});

describe('where the nodes of the cluster are', () => {
  const NODES = [
    { nodeId: 1, name: 'n1', peerAddress: '127.0.0.1:7501', incarnation: 'a', removed: false },
    { nodeId: 4, name: 'n4', peerAddress: '127.0.0.1:7531', incarnation: '', removed: true },
  ];

  test('is known to the next life (KN1)', async () => {
    const dataDir = await open();
    expect(dataDir.knownNodes).toEqual([]);
    dataDir.rememberNodes(NODES);
    await closeAll();
    expect((await open()).knownNodes).toEqual(NODES);
  });

  test('is on disk when the call has ended, and counts for this life when it cannot be (I3)', async () => {
    const dataDir = await open();
    mkdirSync(join(dir, 'nodes.json.tmp')); // where it would be written
    expect(() => dataDir.rememberNodes(NODES)).toThrow();
    expect(dataDir.knownNodes).toEqual(NODES);
    rmdirSync(join(dir, 'nodes.json.tmp'));
    dataDir.rememberNodes(NODES.slice(0, 1));
    expect(read('nodes.json')).toEqual({ formatVersion: 1, nodes: NODES.slice(0, 1) });
  });

  test('is written again after a write that failed, although nothing has changed since', async () => {
    const dataDir = await open();
    mkdirSync(join(dir, 'nodes.json.tmp')); // where it would be written
    expect(() => dataDir.rememberNodes(NODES)).toThrow();
    expect(() => dataDir.rememberNodes(NODES)).toThrow();
    rmdirSync(join(dir, 'nodes.json.tmp'));
    dataDir.rememberNodes(NODES);
    expect(read('nodes.json')).toEqual({ formatVersion: 1, nodes: NODES });
  });

  test('is completed by what an earlier version kept of their incarnations, until the masters answer', async () => {
    await open();
    await closeAll();
    const older = NODES.map(({ nodeId, name, peerAddress }) => ({ nodeId, name, peerAddress }));
    writeFileSync(join(dir, 'nodes.json'), JSON.stringify({ formatVersion: 1, nodes: older }));
    writeFileSync(join(dir, 'peers.json'), JSON.stringify({ formatVersion: 1, peers: { 1: 'a' } }));
    const dataDir = await open();
    expect(dataDir.knownNodes).toEqual(NODES.slice(0, 1));
    dataDir.rememberNodes(NODES);
    expect(existsSync(join(dir, 'peers.json'))).toBe(false);
  });

  test.each(['', '{', '[]', '{"nodes":7}', '{"nodes":[{"nodeId":"1"}]}', '{"nodes":[null]}'])(
    'is a hint: damaged as %j it is unknown, and nothing else is amiss (KN2)',
    async (text) => {
      const { identity } = await open();
      await closeAll();
      writeFileSync(join(dir, 'nodes.json'), text);
      const again = await open();
      expect(again.knownNodes).toEqual([]);
      expect(again.identity).toEqual(identity);
    },
  );
});

describe('the parts of a directory', () => {
  const NODES = [{ nodeId: 1, name: 'n1', peerAddress: '127.0.0.1:7501', incarnation: 'a', removed: false }];
  const rows: readonly { name: string; there: readonly string[]; taken: boolean; lost?: string }[] = [
    { name: 'of a node that has never come so far', there: [], taken: false },
    { name: 'of one that ended in its first start', there: ['log'], taken: false },
    { name: 'of one that was never taken', there: ['log', 'engine'], taken: false },
    { name: 'of a member', there: ['log', 'engine'], taken: true },
    { name: 'of one without its log', there: ['engine'], taken: false, lost: 'log' },
    { name: 'of a member without its log', there: ['engine'], taken: true, lost: 'log' },
    { name: 'of a member without its engine', there: ['log'], taken: true, lost: 'engine' },
    { name: 'of a member without both', there: [], taken: true, lost: 'log' },
  ];
  test.each(rows)('$name: $lost is missed (I5)', async ({ there, taken, lost }) => {
    const dataDir = await open({ planned: founding('c1') });
    if (taken) dataDir.rememberNodes(NODES);
    await closeAll();
    for (const part of ['log', 'engine']) mkdirSync(join(dir, part));
    for (const part of there) writeFileSync(join(dir, part, 'something'), '');
    if (lost === undefined) return void (await open());
    const refused = { exit: 'dataDir', message: expect.stringContaining(`${lost}/ is empty`) };
    await expect(open()).rejects.toMatchObject(refused);
    rmSync(join(dir, lost), { recursive: true });
    await expect(open()).rejects.toMatchObject(refused);
  });
});

describe('identity', () => {
  test('a new directory gets an incarnation that stays over restarts (I1, I2)', async () => {
    const first = (await open({ planned: founding('c1') })).identity;
    await closeAll();
    const second = (await open({ planned: founding('c1'), random: new SeededRandom(2) })).identity;
    expect(second).toEqual(first);
    const founders = ['n1', 'n2', 'n3'];
    expect(read('node.json')).toMatchObject({ formatVersion: 1, name: 'n1', clusterId: 'c1', nodeId: 1, founders });
  });

  test('a node that joins learns its cluster and id later, once', async () => {
    const dataDir = await open();
    expect(dataDir.identity.nodeId).toBeUndefined();
    await dataDir.assign({ clusterId: 'c1', nodeId: 4 });
    await dataDir.assign({ clusterId: 'c1', nodeId: 4 });
    await expect(dataDir.assign({ clusterId: 'c1', nodeId: 5 })).rejects.toThrow(
      'belongs to node id 4, not to node id 5',
    );
    await closeAll();
    expect((await open()).identity).toMatchObject({ clusterId: 'c1', nodeId: 4 });
  });

  const refusals: readonly { name: string; given: Partial<OpenDataDirOptions>; says: string }[] = [
    {
      name: 'another name',
      given: { name: 'n2', planned: founding('c1') },
      says: 'belongs to node n1, not to node n2',
    },
    {
      name: 'other founders, before the cluster is founded',
      given: { planned: founding('c2') },
      says: 'was made for another --initial-cluster or --cluster-token',
    },
  ];
  test.each(refusals)('a directory is refused to a node with $name (I1, I6)', async ({ given, says }) => {
    await open({ planned: founding('c1') });
    await closeAll();
    await expect(open(given)).rejects.toThrow(says);
    // A refusal lets the directory go.
    await open({ planned: founding('c1') });
  });

  test('once the masters have named a founder, its options may name other addresses, or none (I6)', async () => {
    const dataDir = await open({ planned: founding('c1') });
    const { identity } = dataDir;
    dataDir.rememberNodes([
      { nodeId: 1, name: 'n1', peerAddress: 'h:1', incarnation: identity.incarnation, removed: false },
    ]);
    await closeAll();
    for (const part of ['log', 'engine']) {
      mkdirSync(join(dir, part));
      writeFileSync(join(dir, part, 'something'), '');
    }
    for (const planned of [founding('c2'), { ...founding('c2'), names: ['n0', 'n1'], ownNodeId: 2 }, undefined]) {
      expect((await open({ planned })).identity).toEqual(identity);
      await closeAll();
    }
  });

  test('a node that has joined is not made a founder by its options', async () => {
    await (await open()).assign({ clusterId: 'c1', nodeId: 1_004 });
    await closeAll();
    expect((await open({ planned: founding('c2') })).identity).toMatchObject({ clusterId: 'c1', nodeId: 1_004 });
    await closeAll();
    expect((await open({ planned: founding('c2') })).identity.founders).toBeUndefined();
  });

  test('the directory of a founder that does not name the others yet is completed', async () => {
    await (await open()).assign({ clusterId: 'c1', nodeId: 1 });
    await closeAll();
    expect((await open({ planned: founding('c1') })).identity.founders).toEqual(['n1', 'n2', 'n3']);
    await closeAll();
    expect((await open()).identity.founders).toEqual(['n1', 'n2', 'n3']);
  });

  test('a newer format is refused', async () => {
    writeFileSync(join(dir, 'node.json'), '{"formatVersion":99,"name":"n1","incarnation":"x"}');
    await expect(open()).rejects.toThrow('has format 99; this program reads up to 1; use a newer version of remora');
  });

  test.each(['', '{', '{}', '{"formatVersion":1}', '[]'])(
    'a damaged identity is refused, not replaced: %s',
    async (text) => {
      writeFileSync(join(dir, 'node.json'), text);
      await expect(open()).rejects.toMatchObject({ exit: 'dataDir', message: expect.stringContaining('is damaged') });
      expect(readFileSync(join(dir, 'node.json'), 'utf8')).toBe(text);
    },
  );

  test('a directory with other contents and no identity is not taken for a new one', async () => {
    writeFileSync(join(dir, 'thesis.doc'), 'x');
    await expect(open()).rejects.toThrow('is not empty (thesis.doc) but has no node.json');
  });
});

describe('lock (D1)', () => {
  test('a directory that this process holds cannot be opened twice', async () => {
    await open();
    await expect(open()).rejects.toThrow(`in use by another process (process ${process.pid})`);
  });

  test('another process is refused while the owner lives, and let in once it was killed', async () => {
    const owner = await startOwner();
    await expect(open()).rejects.toMatchObject({
      exit: 'dataDir',
      message: expect.stringContaining(`in use by another process (process ${owner.pid})`),
    });
    const gone = new Promise((resolve) => owner.once('exit', resolve));
    owner.kill('SIGKILL');
    await gone;
    await open();
  });

  test('an owner file that names a living process does not lock anything (D2)', async () => {
    await open();
    await closeAll();
    writeFileSync(join(dir, 'lock', 'owner.json'), JSON.stringify({ pid: process.ppid }));
    await open();
  });
});

/** A process that holds `dir` through the same kernel lock, until it is killed. */
async function startOwner(): Promise<ChildProcess> {
  const program = `
    import { mkdirSync, writeFileSync } from 'node:fs';
    import { Level } from ${JSON.stringify(import.meta.resolve('level'))};
    const lock = ${JSON.stringify(join(dir, 'lock'))};
    mkdirSync(lock, { recursive: true });
    const level = new Level(lock);
    await level.open();
    writeFileSync(lock + '/owner.json', JSON.stringify({ pid: process.pid }));
    process.send('locked');
    setInterval(() => level.status, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  children.push(child);
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the owner ended with ${code}`)));
  });
  return child;
}

function founding(clusterId: string): Founders {
  return { clusterId, names: ['n1', 'n2', 'n3'], ownNodeId: 1 };
}
