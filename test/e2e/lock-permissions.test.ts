// Users take, see and steer the locks that their roles allow: by the command line and over HTTP, at real nodes.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const USERS = ['root', 'worker', 'other', 'reader', 'boss', 'nightly', 'stranger'] as const;
type User = (typeof USERS)[number];

/** What was said to the command line before authentication was on. */
const SETUP = [
  'user grant-role root root',
  'role add worker',
  'grant worker acquire orders/ --prefix',
  'role add reader',
  'grant reader read orders/ --prefix --lock',
  'role add boss',
  'grant boss steer --all --all-namespaces',
  'role add nightly',
  'grant nightly acquire nightly',
  'user grant-role worker worker',
  'user grant-role other worker',
  'user grant-role reader reader',
  'user grant-role boss boss',
  'user grant-role nightly nightly',
  'enable',
];

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly version: number;
    readonly waiterCount: number;
    readonly error?: { readonly code: string; readonly message: string };
    readonly [field: string]: unknown;
  };
}

describe('permissions on locks', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 3 });
    for (const user of USERS) await auth({ REMORA_NEW_PASSWORD: `${user}-pw` }, 'user', 'add', user);
    for (const line of SETUP) await auth({}, ...line.split(' '));
  });
  afterAll(() => cluster?.stop());

  /** As root, once authentication is on. */
  async function auth(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<string> {
    const { code, out, err } = await runHere(cluster.endpoints, ['auth', ...args], { env });
    if (code !== 0) throw new Error(`remora auth ${args.join(' ')}: exit code ${code}: ${err}`);
    return out;
  }

  /** Of a user, or of nobody, about a lock of the namespace `default`; each at another node. */
  async function ask(user: User | undefined, method: string, path: string, body?: object): Promise<Answer> {
    const node = cluster.nodes[(user ?? '').length % cluster.nodes.length];
    const credentials = Buffer.from(`${user}:${user}-pw`).toString('base64');
    const response = await fetch(`http://${node?.http}/v1/${path}`, {
      method,
      headers: {
        ...(user !== undefined && { authorization: `Basic ${credentials}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] };
  }

  const lock = (name: string, call = '') => `locks/default/${encodeURIComponent(name)}${call}`;
  const acquire = (user: User | undefined, name: string, more: object = {}) =>
    ask(user, 'POST', lock(name, '/acquire'), { ttl: '30s', ...more });
  const holders = async (name: string) => (await ask('reader', 'GET', lock(name))).body;

  test('a worker takes a lock, another one waits for it and gets it once it is released', async () => {
    const held = await acquire('worker', 'orders/1');
    expect(held.status).toBe(200);
    const waiting = acquire('other', 'orders/1', { wait: '55s' });
    await eventually('the other one waits', async () => (await holders('orders/1')).waiterCount === 1);
    expect((await ask('worker', 'POST', lock('orders/1', '/release'), held.body)).body).toMatchObject({
      released: true,
    });
    const next = await waiting;
    expect(next.body.version).toBeGreaterThan(held.body.version);
    const check = { checks: [{ name: 'orders/1', version: next.body.version }] };
    expect((await ask('reader', 'POST', 'check', check)).body).toEqual({ current: [true] });
    await ask('other', 'POST', lock('orders/1', '/release'), next.body);
  });

  test('who may steer it releases a lock by force, and cannot take it', async () => {
    const held = await acquire('worker', 'orders/2');
    expect((await acquire('boss', 'orders/2')).status).toBe(403);
    expect((await ask('boss', 'POST', lock('orders/2', '/force-release'), { reason: 'stuck' })).status).toBe(200);
    const check = { checks: [{ name: 'orders/2', version: held.body.version }] };
    expect((await ask('reader', 'POST', 'check', check)).body).toEqual({ current: [false] });
  });

  /** What each user may do with `orders/3`, which the worker holds. */
  const calls: Readonly<
    Record<string, { readonly users: readonly User[]; readonly call: (user?: User) => Promise<Answer> }>
  > = {
    show: { users: ['worker', 'other', 'reader', 'boss', 'root'], call: (user) => ask(user, 'GET', lock('orders/3')) },
    list: {
      users: ['worker', 'other', 'reader', 'boss', 'root'],
      call: (user) => ask(user, 'GET', 'locks/default?prefix=orders/'),
    },
    'list all': { users: ['boss', 'root'], call: (user) => ask(user, 'GET', 'locks/default') },
    check: {
      users: ['worker', 'other', 'reader', 'boss', 'root'],
      call: (user) => ask(user, 'POST', 'check', { checks: [{ name: 'orders/3', version: 1 }] }),
    },
    acquire: { users: ['worker', 'other', 'root'], call: (user) => acquire(user, 'orders/3', { wait: '0s' }) },
    'acquire in another namespace': {
      users: ['root'],
      call: (user) => ask(user, 'POST', 'locks/shop/orders%2F3/acquire', { ttl: '1s' }),
    },
    'acquire exactly one': {
      users: ['nightly', 'root'],
      call: (user) => acquire(user, 'nightly', { ttl: '1s', wait: '9s' }),
    },
    'acquire what begins with its name': {
      users: ['root'],
      call: (user) => acquire(user, 'nightly/2', { ttl: '1s' }),
    },
    revoke: { users: ['boss', 'root'], call: (user) => ask(user, 'POST', lock('orders/3', '/revoke'), {}) },
    capacity: {
      users: ['boss', 'root'],
      call: (user) => ask(user, 'PUT', lock('orders/permits', '/capacity'), { capacity: 2 }),
    },
  };

  test.each(Object.entries(calls))('%s: those who may, and no others', async (_name, { users, call }) => {
    const held = await acquire('worker', 'orders/3');
    for (const user of USERS) {
      const { status, body } = await call(user);
      if (users.includes(user)) expect([user, [200, 423].includes(status), body]).toEqual([user, true, body]);
      else {
        expect([user, status, body.error?.code]).toEqual([user, 403, 'PERMISSION_DENIED']);
        expect(body.error?.message).toMatch(
          new RegExp(`^the user "${user}" may not (read|acquire|steer) .*(lock|locks)`),
        );
      }
    }
    const nobody = await call(undefined);
    expect([nobody.status, nobody.body.error?.code]).toEqual([401, 'UNAUTHENTICATED']);
    expect(nobody.headers.get('www-authenticate')).toBe('Bearer realm="remora"');
    if (held.status === 200) await ask('worker', 'POST', lock('orders/3', '/release'), held.body);
  });
});
