// Sessions of users over HTTP, at several gateways: OW1 and OW2 of packages/gateway/src/authorisation/lease-needs.ts.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(async () => {
  await cluster?.stop();
});

interface Answer {
  readonly status: number;
  readonly body: {
    readonly session?: string;
    readonly sessions?: readonly Listed[];
    readonly [field: string]: unknown;
  };
}
interface Listed {
  readonly session: string;
  readonly owner?: string;
}

/** `user`: with its password, as in `ada:pw`. */
async function ask(node: number, method: string, path: string, user?: string, body?: object): Promise<Answer> {
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(user !== undefined && { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const url = `http://${cluster.node(node).http}${path}`;
  const response = await fetch(url, { method, headers, ...text });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

async function open(node: number, user?: string): Promise<string> {
  const { status, body } = await ask(node, 'POST', '/v1/sessions', user, { ttl: '60s' });
  expect([status, typeof body.session]).toEqual([200, 'string']);
  return body.session ?? '';
}

const renew = async (node: number, session: string, user?: string): Promise<number> =>
  (await ask(node, 'POST', `/v1/sessions/${session}/renew`, user, {})).status;

test('a session belongs to the user who began it, at every gateway, and root ends it', async () => {
  const admin = async (call: string, body: object, user?: string) =>
    expect((await ask(1, 'POST', `/v3/auth/${call}`, user, body)).status, call).toBe(200);
  for (const name of ['root', 'ada', 'bob']) await admin('user/add', { name, password: `${name}-pw` });
  await admin('user/grant', { user: 'root', role: 'root' });
  const [root, ada, bob] = ['root:root-pw', 'ada:ada-pw', 'bob:bob-pw'];
  // A node identifies users once it has heard of them.
  let early = '';
  await eventually('ada is known at node 2', async () => {
    early = await open(2, ada);
    const { body } = await ask(3, 'GET', '/v1/sessions?owner=ada');
    return body.sessions?.some(({ session }) => session === early);
  });
  const nobodys = await open(1);
  expect(await renew(3, nobodys, bob)).toBe(200);
  await admin('enable', {});

  for (const node of [1, 2, 3]) {
    expect([await renew(node, nobodys), await renew(node, nobodys, bob), await renew(node, nobodys, ada)]).toEqual([
      ...[401, 403, 403],
    ]);
    expect([await renew(node, early, ada), await renew(node, early, bob)]).toEqual([200, 403]);
  }
  const own = await open(3, bob);
  expect((await ask(1, 'DELETE', `/v1/sessions/${own}`, ada)).status).toBe(403);
  expect((await ask(1, 'GET', `/v1/sessions/${own}`, ada)).status).toBe(403);
  expect((await ask(1, 'GET', `/v1/sessions/${own}`, bob)).body).toMatchObject({ session: own, owner: 'bob' });
  expect((await ask(1, 'GET', '/v1/sessions?owner=bob', ada)).status).toBe(403);
  expect((await ask(1, 'GET', '/v1/sessions', ada)).status).toBe(403);
  expect((await ask(2, 'GET', '/v1/sessions?owner=bob', bob)).body.sessions).toMatchObject([{ session: own }]);
  const all = (await ask(2, 'GET', '/v1/sessions', root)).body.sessions ?? [];
  expect(
    all
      .filter(({ session }) => [early, own, nobodys].includes(session))
      .map(({ owner }) => owner)
      .sort(),
  ).toEqual([...['', 'ada', 'bob']]);

  await admin('user/changepw', { name: 'ada', password: 'new' }, root);
  expect([await renew(2, early, ada), await renew(2, early, 'ada:new')]).toEqual([401, 200]);
  await cluster.node(1).end();
  expect([await renew(2, early, bob), await renew(3, early, 'ada:new')]).toEqual([403, 200]);
  expect((await ask(3, 'DELETE', `/v1/sessions/${early}`, root)).body).toEqual({ closed: true });
  expect((await ask(3, 'DELETE', `/v1/sessions/${own}`, bob)).body).toEqual({ closed: true });
});
