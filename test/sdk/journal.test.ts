import { SeededRandom } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import fc from 'fast-check';
import type { CommandIdentity, JournalPorts, Leadership, ProcessIdentity, RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
let disk: SimDisk;
let gone: Set<number>;
beforeEach(() => {
  world = new World();
  disk = new SimDisk({ random: new SeededRandom(1) });
  gone = new Set();
});

/** A client of the process with that id; its sessions would last for minutes after its death. */
function client(pid: number, on: JournalPorts['disk'] = disk.mount(), endpoints = GATEWAYS): Promise<RemoraClient> {
  const self: ProcessIdentity = { host: 'h', boot: 'b', space: 's', pid, start: '1' };
  const journal: JournalPorts = { disk: on, self, isGone: (process) => gone.has(process.pid) };
  return world.client({ sessionTtl: '5m', requestTimeout: '1s', endpoints }, 1, { journal });
}

const files = () => disk.list('');

describe('what a process held that is gone', () => {
  test('is given back by the next one', async () => {
    const first = await client(1);
    await world.until(first.lock('a').acquire());
    // It waits in a session of its own, which is given up too.
    const waiting = codeOf((await world.until(first.session())).lock('a').acquire());
    await world.run(20);
    gone.add(1);
    const second = await client(2);
    expect((await world.until(second.lock('a').acquire({ wait: '100ms' }))).state).toBe('active');
    await world.run(50);
    expect(await files()).toHaveLength(1);
    expect((await world.until(second.locks.show('a')))?.waiterCount).toBe(0);
    await world.until(waiting);
    expect(world.backend.sessions).toBe(1);
  });

  test('is given back later when the cluster does not answer', async () => {
    await world.until((await client(1)).lock('a').acquire());
    gone.add(1);
    for (const address of GATEWAYS) world.isolated.add(address);
    const second = await client(2);
    await world.run(30_000);
    expect([await files(), world.backend.sessions]).toEqual([[expect.any(String)], 1]);
    world.isolated.clear();
    await world.run(31_000);
    expect([await files(), world.backend.sessions]).toEqual([[], 0]);
    await world.until(second.close());
  });

  test('is given back as well when it was a client of this process that was closed, and could not end it', async () => {
    const cut = await client(1);
    await world.until(cut.lock('a').acquire({ ttl: 'never' }));
    await world.until(cut.lock('b').acquire());
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.until(cut.close());
    world.isolated.clear();
    const next = await client(1);
    for (const name of ['a', 'b']) {
      expect((await world.until(next.lock(name).acquire({ wait: '2s' }))).state).toBe('active');
    }
    expect(await files()).toHaveLength(1);
  });

  test('is looked for until the client is closed, and no longer', async () => {
    await world.until((await client(1)).lock('a').acquire());
    gone.add(1);
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.until((await client(2)).close());
    world.isolated.clear();
    const asked = world.backend.seen.length;
    await world.run(61_000);
    expect([world.backend.seen.length, world.backend.sessions]).toEqual([asked, 1]);
  });
});

test('closing a client does not wait for a disk that never answers', async () => {
  const real = disk.mount();
  let stuck = false;
  const open: typeof real.open = (path, options) => (stuck ? new Promise(() => {}) : real.open(path, options));
  const first = await client(1, { ...bound(real), open });
  await world.until(first.lock('a').acquire());
  await world.until(first.lock('b').acquire({ ttl: '5m' }));
  stuck = true;
  for (const address of GATEWAYS) world.isolated.add(address);
  await world.until(first.close(), 5_000);
});

function bound(of: JournalPorts['disk']): JournalPorts['disk'] {
  return {
    list: (dir) => of.list(dir),
    makeDir: (dir) => of.makeDir(dir),
    open: (path, options) => of.open(path, options),
    rename: (change) => of.rename(change),
    remove: (path) => of.remove(path),
    syncDir: (dir) => of.syncDir(dir),
  };
}

describe('a file that was never finished', () => {
  const real = () => disk.mount();

  /** A process that is killed between what it wrote and the name that was to be given to it. */
  async function killedBeforeRename(pid: number): Promise<void> {
    const on = { ...bound(real()), rename: () => new Promise<never>(() => {}) };
    void (await client(pid, on)).lock('a').acquire();
    await world.run(50);
    expect(await files()).toEqual([expect.stringMatching(/\.tmp$/)]);
  }

  test('goes when its process is gone', async () => {
    await killedBeforeRename(1);
    gone.add(1);
    await client(2);
    await world.run(50);
    expect(await files()).toEqual([]);
  });

  test('stays while its process may still be about to finish it', async () => {
    await killedBeforeRename(1);
    await client(2);
    await world.run(1_000);
    expect(await files()).toHaveLength(1);
  });

  test('that cannot be read keeps nothing from being given back', async () => {
    await world.until((await client(1)).lock('a').acquire());
    gone.add(1);
    await real().open('x.json.tmp', { create: true });
    const on = real();
    const open: typeof on.open = (path, options) =>
      path === 'x.json.tmp' ? Promise.reject(new Error('EACCES')) : on.open(path, options);
    const second = await client(2, { ...bound(on), open });
    expect((await world.until(second.lock('a').acquire({ wait: '500ms' }))).state).toBe('active');
  });

  test('stays when nobody knows whose it is', async () => {
    await real().open('x.json.tmp', { create: true });
    await client(2);
    await world.run(1_000);
    expect(await files()).toEqual(['x.json.tmp']);
  });
});

describe('a command that a client names (J6)', () => {
  const command: CommandIdentity = { host: 'h', boot: 'b', space: 's', pid: 7, start: '1', session: 7, mark: 'M=1' };

  test('keeps what its client held after the process of that is gone, until it is gone too', async () => {
    const first = await client(1);
    await world.until(first.lock('a').acquire());
    await world.until(first.nameCommand(command));
    gone.add(1);
    const second = await client(2);
    expect(await world.until(codeOf(second.lock('a').acquire({ wait: '20s' })), 30_000)).toBe('LOCK_TIMEOUT');
    gone.add(7);
    expect((await world.until(second.lock('a').acquire({ wait: '1s' }))).state).toBe('active');
    expect(await files()).toHaveLength(1);
  });

  test('keeps it also when its client was closed, and could not end it', async () => {
    const first = await client(1);
    await world.until(first.lock('a').acquire());
    await world.until(first.nameCommand(command));
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.until(first.close());
    world.isolated.clear();
    await client(2);
    await world.run(5_000);
    expect([(await files()).length, world.backend.sessions]).toEqual([1, 1]);
    gone.add(7);
    await world.run(1_000);
    expect([await files(), world.backend.sessions]).toEqual([[], 0]);
  });

  test('is on disk once its client says so, and changes nothing without a journal', async () => {
    const first = await client(1);
    await world.until(first.lock('a').acquire());
    await world.until(first.nameCommand(command));
    const [path = ''] = await files();
    const file = await disk.open(path, { create: false });
    expect(JSON.parse((await file.read(0, await file.size())).toString())).toMatchObject({ command });
    const bare = await world.client({ endpoints: GATEWAYS }, 1);
    await bare.nameCommand(command);
    expect(await codeOf(bare.nameCommand({ ...command, session: '7' } as never))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(bare.nameCommand(undefined as never))).toBe('INVALID_ARGUMENT');
  });
});

describe('nothing is taken', () => {
  test('from a process that may still be there', async () => {
    const held = await world.until((await client(1)).lock('a').acquire());
    expect(await world.until((await client(2)).lock('a').tryAcquire())).toBeUndefined();
    await world.run(1_000);
    expect([held.state, await world.until(held.check()), (await files()).length]).toEqual(['active', true, 2]);
  });

  test('that another process has taken over since', async () => {
    const first = await world.until((await client(1)).election('e').campaign());
    const standby = await client(2);
    gone.add(1);
    const resumed = await world.until(standby.election('e').resume(first.handle));
    await client(3);
    await world.run(1_000);
    expect([resumed.state, resumed.version, world.backend.sessions]).toEqual(['active', first.version, 1]);
    expect(await files()).toHaveLength(1);
    await world.until(resumed.release());
    await world.run(100);
    expect([await files(), world.backend.sessions]).toEqual([[], 0]);
  });

  test('that another process takes over while this one is still giving back what came before it', async () => {
    const first = await client(1);
    for (let i = 0; i < 20; i++) await world.until(first.lock(`a${i}`).acquire({ ttl: '5m' }));
    const led = await world.until(first.election('e').campaign());
    const standby = await client(3);
    gone.add(1);
    let resumed: Promise<Leadership> | undefined;
    world.backend.onApplied = ({ type }) => {
      if (type === 'leaseRevoke') resumed ??= standby.election('e').resume(led.handle);
    };
    await client(2);
    await world.run(1_000);
    const leads = resumed && (await world.until(resumed));
    expect([leads?.state, leads?.version, world.backend.sessions]).toEqual(['active', led.version, 1]);
    expect(await files()).toHaveLength(1);
  });

  test('that another process takes over while the gateway of this one takes no requests', async () => {
    const led = await world.until((await client(1)).election('e').campaign());
    const standby = await client(3, disk.mount(), ['a:1']);
    gone.add(1);
    world.overLimit.add('b:1');
    await client(2, disk.mount(), ['b:1']);
    await world.run(100);
    const refused = world.refused;
    const resumed = await world.until(standby.election('e').resume(led.handle));
    await world.run(1_500);
    world.overLimit.clear();
    await world.run(40_000);
    expect([refused > 0, resumed.state, resumed.version, world.backend.sessions]).toEqual([
      true,
      'active',
      led.version,
      1,
    ]);
  });

  test('while a journal cannot be read that may name it', async () => {
    const led = await world.until((await client(1)).election('e').campaign());
    const resumed = await world.until((await client(2)).election('e').resume(led.handle));
    gone.add(1);
    const full = disk.mount();
    const open = full.open.bind(full);
    let refuses = true;
    full.open = async (path, options) => {
      if (refuses) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
      return open(path, options);
    };
    await client(3, full);
    await world.run(5_000);
    expect([resumed.state, world.backend.sessions]).toEqual(['active', 1]);
    refuses = false;
    await world.run(40_000);
    expect([resumed.state, world.backend.sessions, (await files()).length]).toEqual(['active', 1, 1]);
  });

  test.each([
    { name: 'of another cluster', contents: { format: 2, cluster: 'other', leases: ['1'] } },
    { name: 'of a later format', contents: { format: 3, cluster: 'test-cluster', leases: ['1'] } },
    { name: 'with leases that are none', contents: { format: 2, cluster: 'test-cluster', leases: ['-1'] } },
    { name: 'that is no journal', contents: 'null' },
  ])('by a file $name, which stays', async ({ contents }) => {
    gone.add(9);
    const process: ProcessIdentity = { host: 'h', boot: 'b', space: 's', pid: 9, start: '1' };
    const text = typeof contents === 'string' ? contents : JSON.stringify({ ...contents, process });
    const file = await disk.open('x.json', { create: true });
    await new Promise((resolve) => file.write(0, [Buffer.from(text)], resolve));
    const next = await client(2);
    await world.run(100);
    expect(await files()).toEqual(['x.json']);
    expect(world.backend.seen.filter(({ command }) => command.type === 'leaseRevoke')).toEqual([]);
    await world.until(next.close());
  });
});

test('whatever else is in the directory, clients connect, and take nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (text) => {
      world = new World();
      disk = new SimDisk({ random: new SeededRandom(1) });
      const file = await disk.open('x.json', { create: true });
      await new Promise((resolve) => file.write(0, [Buffer.from(text)], resolve));
      const next = await client(2);
      await world.until(next.lock('a').acquire());
      await world.until(next.close());
      await world.run(100);
      expect([await files(), world.clock.pendingTimers]).toEqual([['x.json'], 0]);
    }),
    { numRuns: 30 },
  );
});

describe('a client with a journal', () => {
  test('leaves nothing in it once it is closed', async () => {
    const closed = await client(1);
    await world.until(closed.lock('a').acquire());
    expect(await files()).toHaveLength(1);
    await world.until(closed.close());
    expect(await files()).toEqual([]);
  });

  test('keeps what it could not end for the next one', async () => {
    const cut = await client(1);
    await world.until(cut.lock('a').acquire());
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.until(cut.close());
    expect(await files()).toHaveLength(1);
  });

  test('keeps what it asked to go on with and heard nothing of', async () => {
    const led = await world.until((await client(1)).election('e').campaign());
    gone.add(1);
    for (const address of GATEWAYS) world.isolated.add(address);
    const second = await client(2);
    expect(await codeOf(world.until(second.election('e').resume(led.handle)))).toBe('DEADLINE_EXCEEDED');
    expect(await files()).toHaveLength(2);
    await world.until(second.close());
    expect(await files()).toHaveLength(2);
  });

  test('does not keep what is lost, as the cluster ends it', async () => {
    const cut = await client(1);
    const session = await world.until(cut.session({ ttl: '2s' }));
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.run(3_000);
    expect([session.state, await files()]).toEqual(['lost', []]);
  });

  test('keeps what no time ends until the cluster has said that it has ended, be it lost or released', async () => {
    const cut = await client(1);
    const released = await world.until(cut.lock('a').acquire({ ttl: 'never' }));
    world.backend.onApplied = ({ type }) => {
      if (type === 'leaseChange') for (const address of GATEWAYS) world.isolated.add(address);
    };
    await world.until(codeOf(cut.lock('b').acquire({ ttl: 'never' })));
    await world.until(codeOf(released.release()));
    await world.run(200_000);
    expect([(await leasesOnDisk()).size, world.backend.sessions]).toEqual([2, 2]);
    world.isolated.clear();
    await world.run(31_000);
    expect([await files(), world.backend.sessions]).toEqual([[], 0]);
  });

  test('does not name what it has left to its TTL, nor when the machine loses its power then (J5)', async () => {
    const named: (readonly string[])[] = [];
    for (let seed = 0; seed < 10; seed++) {
      disk = new SimDisk({ random: new SeededRandom(seed) });
      const left = await client(1);
      const lock = await world.until(left.lock(`a${seed}`).acquire({ ttl: '10m' }));
      await world.until(lock.orphan());
      disk.crash();
      named.push(await files());
    }
    expect(named).toEqual(named.map(() => []));
  });

  test('tells when it cannot write that something is left to its TTL: who comes next would end it (J5)', async () => {
    const left = await client(1);
    await world.until(left.lock('other').acquire());
    const lock = await world.until(left.lock('a').acquire({ ttl: '10m' }));
    disk.failNext('sync');
    expect(await world.until(codeOf(lock.orphan()))).toBe('INTERNAL');
  });

  test.each(['write', 'sync'] as const)(
    'asks for nothing when a %s fails, and goes on afterwards',
    async (operation) => {
      const failing = await client(1);
      disk.failNext(operation);
      expect(await world.until(codeOf(failing.lock('a').acquire()))).toBe('INTERNAL');
      expect(world.backend.seen.filter(({ command }) => command.type === 'leaseGrant')).toEqual([]);
      expect((await world.until(failing.lock('a').acquire())).state).toBe('active');
      expect(await files()).toHaveLength(1);
    },
  );

  test('names each lease durably before it asks for it, so that no crash leaves one that is not named', async () => {
    const unnamed: string[] = [];
    for (let seed = 0; seed < 60; seed++) {
      disk = new SimDisk({ random: new SeededRandom(seed), clock: world.clock, latencyMs: 8 });
      const crashing = await client(1);
      const asked = world.backend.seen.length;
      const sessions = Array.from({ length: 4 }, () => codeOf(crashing.session()));
      await world.run(seed);
      disk.crash();
      const named = await leasesOnDisk();
      for (const { command } of world.backend.seen.slice(asked)) {
        if (command.type === 'leaseGrant' && !named.has(command.id)) unnamed.push(`${seed}: ${command.id}`);
      }
      await world.run(20);
      expect(sessions).toHaveLength(4);
    }
    expect(unnamed).toEqual([]);
    expect(world.backend.sessions).toBeGreaterThan(20);
  });
});

/** Fails on a file that is torn. */
async function leasesOnDisk(): Promise<Set<bigint>> {
  const finished = (await files()).filter((name) => name.endsWith('.json'));
  return new Set(
    finished.flatMap((name) => {
      const { leases } = JSON.parse(disk.contents(name).toString()) as { leases: string[] };
      return leases.map((lease) => BigInt(`0x${lease}`));
    }),
  );
}
