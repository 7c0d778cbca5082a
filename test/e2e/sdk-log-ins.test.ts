// Programs that log in, at real nodes with authentication on.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { credentials as channel, Metadata } from '@grpc/grpc-js';
import { Permission_Type } from '@remora/protocol/etcd';
import { AuthClient } from '@remora/protocol/grpc-clients';
import { type ConnectOptions, connect, type RemoraClient } from 'remora';
import { AdminClient } from 'remora/admin';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const PATIENT = { requestTimeout: '30s', connectTimeout: '30s' } as const;

let cluster: Cluster;
let users: Users;

/** Manages users as root, through etcd's service. */
class Users {
  readonly #auth: AuthClient;
  token = '';

  constructor(endpoint: string) {
    this.#auth = new AuthClient(endpoint, channel.createInsecure());
  }

  async call(method: string, request: object): Promise<{ readonly token: string }> {
    const metadata = new Metadata();
    if (this.token !== '') metadata.set('token', this.token);
    return new Promise((resolve, reject) => {
      // biome-ignore lint/suspicious/noExplicitAny: one helper for all methods of the service.
      (this.#auth as any)[method](request, metadata, (error: Error | null, reply: { readonly token: string }) =>
        error === null ? resolve(reply) : reject(error),
      );
    });
  }

  async begin(): Promise<void> {
    await this.call('userAdd', { name: 'root', password: 'rootpw' });
    await this.call('roleAdd', { name: 'root' });
    await this.call('userGrantRole', { user: 'root', role: 'root' });
    await this.call('roleAdd', { name: 'app' });
    const perm = { permType: Permission_Type.READWRITE, key: Buffer.from('a'), rangeEnd: Buffer.from('b') };
    await this.call('roleGrantPermission', { name: 'app', perm });
    await this.add('ada', 'adapw');
    await this.call('authEnable', {});
    await this.logIn();
  }

  async add(name: string, password: string): Promise<void> {
    await this.call('userAdd', { name, password });
    await this.call('userGrantRole', { user: name, role: 'app' });
  }

  async logIn(): Promise<void> {
    this.token = '';
    this.token = await this.tokenOf('root', 'rootpw');
  }

  async tokenOf(name: string, password: string): Promise<string> {
    return (await this.call('authenticate', { name, password })).token;
  }

  close(): void {
    this.#auth.close();
  }
}

function open(more: Partial<ConnectOptions>): Promise<RemoraClient> {
  return connect({ endpoints: cluster.endpoints, ...PATIENT, ...more });
}

beforeAll(async () => {
  cluster = await Cluster.start();
  users = new Users(cluster.node(1).client);
  await users.begin();
});
afterAll(async () => {
  users?.close();
  await cluster?.stop();
});

test('a client logs in by password, and may do what its user may', async () => {
  await using ada = await open({ user: 'ada', password: 'adapw' });
  await ada.kv.put('a1', 'v');
  expect((await ada.kv.get('a1'))?.value.toString()).toBe('v');
  expect(inspect(ada, { depth: 20, showHidden: true })).not.toContain('adapw');
  await expect(ada.kv.put('b1', 'v')).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
});

test('a client without credentials, or with wrong ones, is refused at once', async () => {
  await expect(open({})).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  for (const wrong of [{ user: 'ada', password: 'wr0ng' }, { user: 'nobody', password: 'wr0ng' }, { token: 'wr0ng' }]) {
    const error: unknown = await open(wrong).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'UNAUTHENTICATED', retry: 'no' });
    expect(inspect(error, { depth: 9 })).not.toContain('wr0ng');
  }
});

test('a token suffices, as text or from a function', async () => {
  const token = await users.tokenOf('ada', 'adapw');
  await using text = await open({ token });
  await text.kv.put('a2', 'text');
  await using fresh = await open({ token: () => users.tokenOf('ada', 'adapw') });
  await fresh.kv.put('a2', 'function');
  expect((await text.kv.get('a2'))?.value.toString()).toBe('function');
});

test('an admin client logs in by password or token, and is refused with wrong ones', async () => {
  const limits = { endpoints: cluster.endpoints, timeoutMs: 30_000, connectTimeoutMs: 30_000 };
  const token = await users.tokenOf('root', 'rootpw');
  for (const root of [{ user: 'root', password: 'rootpw' }, { token }, { token: async () => token }]) {
    const admin = new AdminClient({ ...limits, ...root });
    expect((await admin.nodes()).nodes).toHaveLength(3);
    expect((await admin.nodes()).nodes).toHaveLength(3);
    admin.close();
  }
  for (const [wrong, code] of [
    [{ user: 'root', password: 'wr0ng' }, 'UNAUTHENTICATED'],
    [{ token: 'wr0ng' }, 'UNAUTHENTICATED'],
    [{}, 'UNAUTHENTICATED'],
    [{ user: 'ada', password: 'adapw' }, 'PERMISSION_DENIED'],
  ] as const) {
    const admin = new AdminClient({ ...limits, ...wrong });
    const error: unknown = await admin.compact(1).catch((caught: unknown) => caught);
    admin.close();
    expect(error).toMatchObject({ code });
    expect(inspect(error, { depth: 9 })).not.toContain('wr0ng');
  }
});

test('a password that changes while a client is connected: the client is refused from then on', async () => {
  await users.add('eva', 'first');
  await using eva = await open({ user: 'eva', password: 'first' });
  await eva.kv.put('a3', '1');
  await users.call('userChangePassword', { name: 'eva', password: 'second' });
  await expect(eva.kv.put('a3', '2')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await using again = await open({ user: 'eva', password: 'second' });
  await again.kv.put('a3', '3');
});

test('a user that is deleted while a client is connected: requests and watches end', async () => {
  await users.add('tim', 'timpw');
  await using tim = await open({ user: 'tim', password: 'timpw' });
  const watch = tim.kv.watch('a4');
  const ended = (async () => {
    for await (const _ of watch);
  })().catch((error: unknown) => error);
  await tim.kv.put('a4', '1');
  await users.call('userDelete', { name: 'tim' });
  await expect(tim.kv.put('a4', '2')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(await ended).toMatchObject({ code: expect.stringMatching(/^(UNAUTHENTICATED|PERMISSION_DENIED)$/) });
});

test.each([
  { name: 'by password', credentials: async () => ({ user: 'root', password: 'rootpw' }) },
  { name: 'with tokens of a function', credentials: async () => ({ tokens: await users.tokenOf('root', 'rootpw') }) },
])('a session whose thread is blocked is renewed by a thread that logs in $name', async ({ name, credentials }) => {
  const program = fileURLToPath(new URL('lock-frozen.mjs', import.meta.url));
  const args = [program, cluster.endpoints.join(','), `blocked ${name}`, JSON.stringify(await credentials())];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(child, 'exit');
  child.stdin.end('go\n');
  await ended;
  expect(said).toBe('held\nactive false true\n');
});

test('a client goes on at another node when its own one dies, without a further log-in by the program', async () => {
  await using ada = await open({ user: 'ada', password: 'adapw', endpoints: cluster.node(2).client });
  await ada.kv.put('a5', '1');
  await eventually('another gateway was discovered', async () => (await ada.status()).view.nodes.length === 3);
  await using other = await open({ user: 'ada', password: 'adapw' });
  cluster.kill(2, 'SIGKILL');
  await other.kv.put('a5', '2');
  await cluster.restart(2);
  await ada.kv.put('a5', '3');
});

test('without masters, requests of a logged-in client are refused as unavailable, and work again afterwards', async () => {
  await using ada = await open({ user: 'ada', password: 'adapw', endpoints: cluster.node(1).client });
  await ada.kv.put('a6', '1');
  cluster.kill(2, 'SIGKILL');
  cluster.kill(3, 'SIGKILL');
  const error: unknown = await ada.kv.put('a6', '2', { timeout: '2s' }).catch((caught: unknown) => caught);
  expect(error).not.toMatchObject({ code: 'UNAUTHENTICATED' });
  await cluster.restart(2);
  await cluster.restart(3);
  await cluster.untilReady();
  await ada.kv.put('a6', '3', { timeout: '30s' });
});
