// The command line logs in as a user, and manages users, roles and permissions.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { runHere } from './command-line.ts';
import { Cluster } from './harness.ts';
import { nicenessOfThreads } from './process-state.ts';

const ROOT = { REMORA_USER: 'root', REMORA_PASSWORD: 'root-pw' };
const ANN = { REMORA_USER: 'ann', REMORA_PASSWORD: 'ann-pw' };

describe('remora auth', () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-auth-'));
  let cluster: Cluster;
  const command = new RemoraCommand(() => cluster.endpoints);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await done({ REMORA_NEW_PASSWORD: 'root-pw' }, 'auth user add root');
    await done({ REMORA_NEW_PASSWORD: 'ann-pw' }, 'auth user add ann');
    for (const line of SETUP) await done({}, line);
  });
  afterEach(() => command.endAll());
  afterAll(async () => {
    await cluster?.stop();
    rmSync(dir, { recursive: true });
  });

  const SETUP = [
    'auth user grant-role root root',
    'auth role add shop',
    'auth grant shop readwrite orders/ --prefix',
    'auth grant shop acquire orders/ --prefix',
    'auth user grant-role ann shop',
    'auth enable',
  ];

  const run = (env: Readonly<Record<string, string>>, line: string) =>
    runHere(cluster.endpoints, line.split(' '), { env });

  async function done(env: Readonly<Record<string, string>>, line: string): Promise<string> {
    const { code, out, err } = await run(env, line);
    if (code !== 0) throw new Error(`remora ${line}: exit code ${code}: ${err}`);
    return out;
  }

  test.runIf(process.platform === 'linux')(
    'passwords are hashed by a thread that gives way to all others',
    async () => {
      await done(ANN, 'kv put orders/1 v'); // It logs in, so the thread has hashed.
      const pid = cluster.nodes[0]?.pid ?? 0;
      const own = nicenessOfThreads(pid);
      const usual = Math.min(...own);
      expect(own.filter((nice) => nice > usual)).toEqual([usual + constants.priority.PRIORITY_BELOW_NORMAL]);
    },
  );

  test('a user does what its roles allow, by the SDK and by the calls of administration', async () => {
    await done(ANN, 'kv put orders/1 v');
    expect(await done(ANN, 'kv get orders/1')).toContain('v');
    expect(await done(ANN, 'lock run orders/1 -- true')).toBe('');
    expect(await done(ROOT, 'admin nodes')).toContain('n1');
    expect(await run(ANN, 'admin nodes')).toMatchObject({ code: 1, err: expect.stringContaining('PERMISSION_DENIED') });
    expect(await run(ANN, 'kv get stock')).toMatchObject({
      code: 1,
      err: expect.stringContaining('the user "ann" may not read the key "stock"'),
    });
    expect(await run({}, 'kv get orders/1')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Log in with --user NAME'),
    });
  });

  test('a wrong password is refused, and is not shown', async () => {
    for (const line of ['kv get orders/1', 'auth whoami']) {
      const { code, out, err } = await run({ ...ANN, REMORA_PASSWORD: 'hunter2' }, line);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain('UNAUTHENTICATED');
      expect(err).not.toContain('hunter2');
    }
  });

  test('whoami shows the user and what it may do; without a user, that nobody has logged in', async () => {
    expect(await done(ANN, 'auth whoami')).toBe(
      `${[
        'ann, by token',
        'ROLE  MAY        TARGET',
        'shop  readwrite  orders/ --prefix',
        'shop  acquire    orders/ --prefix',
      ].join('\n')}\n`,
    );
    expect(await done({}, 'auth whoami')).toBe('nobody: log in with --user NAME or with a certificate\n');
  });

  test('can explains by the permissions of the user, and what it says to grant is enough', async () => {
    expect(await run(ANN, 'auth can ann acquire orders/42')).toMatchObject({
      code: 0,
      out: 'ann may acquire orders/42:\n  the role shop may acquire orders/ --prefix\n',
    });
    const refused = await run(ANN, 'auth can ann steer orders/42');
    expect(refused.code).toBe(1);
    const [, line = ''] = /^ {2}remora (auth grant .*)$/m.exec(refused.out) ?? [];
    expect(line).toBe('auth grant shop steer orders/42');
    await done(ROOT, line);
    expect((await run(ANN, 'auth can ann steer orders/42')).code).toBe(0);
    await done(ROOT, 'auth revoke shop steer orders/42');
    expect((await run(ANN, 'auth can ann steer orders/42')).code).toBe(1);
    expect(await run(ANN, 'auth can root administer')).toMatchObject({ code: 1, out: '' });
  });

  test('what is shown of a role is what can be revoked', async () => {
    await done(ROOT, 'auth role add all');
    const granted = ['read --all', 'write 00ff --hex', 'steer --all --all-namespaces', 'read nightly --lock'];
    for (const words of granted) await done(ROOT, `auth grant all ${words}`);
    const lines = (await done(ROOT, 'auth role show all')).trim().split('\n').slice(1);
    expect(lines).toHaveLength(granted.length);
    for (const line of lines) await done(ROOT, `auth revoke ${line.replace(/ +/g, ' ')}`);
    expect(await done(ROOT, 'auth role show all')).toMatch(/^all +-$/m);
  });

  test('a wait for a lock ends when the permission is revoked', async () => {
    const endpoints = cluster.endpoints;
    await using root = await connect({ endpoints, user: 'root', password: 'root-pw' });
    await using ann = await connect({ endpoints, user: 'ann', password: 'ann-pw' });
    await using held = await root.lock('orders/9').acquire();
    const waiting = ann.lock('orders/9').acquire({ wait: '60s' });
    const refused = expect(waiting).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await expect.poll(async () => (await root.locks.show('orders/9'))?.waiters.length, { timeout: 60_000 }).toBe(1);
    await done(ROOT, 'auth revoke shop acquire orders/ --prefix');
    await refused;
    expect(held.signal.aborted).toBe(false);
    await done(ROOT, 'auth grant shop acquire orders/ --prefix');
  });

  test('refusals say what is wrong', async () => {
    expect(await run(ROOT, 'auth user show nobody')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no user "nobody" (AUTH_REFUSED)'),
    });
    expect(await run(ROOT, 'auth role add shop')).toMatchObject({
      code: 1,
      err: expect.stringContaining('AUTH_REFUSED'),
    });
    expect(await run(ROOT, 'auth role delete shop')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    expect(await run({}, 'kv get a --user ann:pw')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--user takes a name alone'),
    });
  });

  test('a password is asked for on a terminal, and not shown', async () => {
    const asked = command.begin(['kv', 'get', 'orders/1', '--user', 'ann'], { terminal: 'itself', open: true });
    await expect.poll(() => asked.out, { timeout: 60_000 }).toContain('Password of ann: ');
    asked.child.stdin?.write('ann-pw\r');
    const { code, out } = await asked.ended;
    expect([code, out.includes('ann-pw')]).toEqual([0, false]);
  });

  test('a password comes from a file', async () => {
    const file = join(dir, 'password');
    writeFileSync(file, 'ann-pw\n', { mode: 0o600 });
    expect(await done({}, `auth whoami --user ann --password-file ${file}`)).toContain('ann, by token');
    expect(await done({}, `kv get orders/1 --user ann --password-file ${file}`)).toContain('v');
  });
});
