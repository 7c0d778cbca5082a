/** Certificates and tokens that a real node has to refuse: with the reason, once in its log, and with the address. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ConnectionOptions } from 'node:tls';
import { signToken, TOKEN_LIFE_MS } from '@remora/auth';
import { nodeClock, ServiceError } from '@remora/base';
import { AuthImage, dialPipe, LinkCaller, pipeGateways, schema, unpack } from '@remora/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeRevocationList } from '../../packages/cli/src/certs/revocation-lists.ts';
import { expired, fresh, notYetValid, TestAuthority, TestFiles } from '../../packages/cli/test/tls/authority.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

const PASSWORD = 'correct horse battery staple';
const files = new TestFiles();
let [ca, other]: TestAuthority[] = [];
let cluster: Cluster;
let node: NodeProcess;
let trusting: ConnectionOptions;
let revoked: ConnectionOptions;

type Line = Readonly<Record<string, unknown>>;

beforeAll(async () => {
  ca = await TestAuthority.make('Clients');
  other = await TestAuthority.make('Others');
  trusting = { ca: ca.certificate };
  const server = files.writePair('n1', await ca.server());
  const ofAnn = await ca.client('ann');
  revoked = { ...trusting, cert: ofAnn.certificate, key: ofAnn.key };
  const { X509Certificate } = await import('node:crypto');
  const list = await makeRevocationList([new X509Certificate(ofAnn.certificate)], undefined, ca.credentials, fresh());
  cluster = await Cluster.start({
    nodes: 1,
    flagsOf: (name, dir) => {
      const password = join(dir, 'root.password');
      writeFileSync(password, PASSWORD, { mode: 0o600 });
      return {
        ...{ 'tls-cert': server.certificate, 'tls-key': server.key, 'initial-root-password-file': password },
        ...{ 'tls-client-ca': files.write('ca.crt', ca?.certificate ?? ''), 'tls-client-certificates': 'optional' },
        ...{ 'tls-client-revoked': files.write('ca.crl', list), 'audit-log': join(dir, `${name}.audit`) },
      };
    },
  });
  node = cluster.node(1);
});
afterAll(async () => {
  await cluster?.stop();
  files.close();
});

async function of(authority: TestAuthority | undefined, validity = fresh()): Promise<ConnectionOptions> {
  const { certificate, key } = (await authority?.client('root', validity)) ?? expect.fail('no authority');
  return { ...trusting, cert: certificate, key };
}

async function asServer(): Promise<ConnectionOptions> {
  const { certificate, key } = (await ca?.server()) ?? expect.fail('no authority');
  return { ...trusting, cert: certificate, key };
}

/** Writes a key over HTTP, and returns the status and the answer. */
function put(
  tls: ConnectionOptions,
  authorization?: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const [host, port] = node.http.split(':');
  const body = JSON.stringify({ key: 'YQ==', value: 'dg==' });
  const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) };
  return new Promise((resolve, reject) => {
    const options = { host, port, path: '/v3/kv/put', method: 'POST', agent: false, headers } as const;
    const sent = request({ ...options, ...tls }, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
    });
    sent.on('error', reject).end(body);
  });
}

/** What a client of the Pipe hears: the error, or nothing if it is let in. */
function askPipe(tls: ConnectionOptions): Promise<string> {
  const clock = nodeClock();
  const caller = new LinkCaller({ link: dialPipe(node.client, { clock, tls }), clock });
  return new Promise((resolve) => {
    caller.call(pipeGateways, undefined, { timeoutMs: 60_000 }, (error) => {
      caller.close(new ServiceError('CANCELED', 'the test is over'));
      resolve(error?.message ?? '');
    });
  });
}

function linesOf(content: string): readonly Line[] {
  return content
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
}

/** The lines about tokens: those about other requests may be written later. */
function audited(): readonly Line[] {
  const path = join(cluster.dir, 'n1.audit');
  const lines = existsSync(path) ? linesOf(readFileSync(path, 'utf8')) : [];
  return lines.filter(({ action }) => action === 'useToken');
}

describe('a certificate of a client', () => {
  const rows: readonly {
    readonly name: string;
    readonly tls: () => Promise<ConnectionOptions>;
    readonly says: string;
  }[] = [
    { name: 'that has expired', tls: () => of(ca, expired()), says: 'the certificate has expired' },
    { name: 'of tomorrow', tls: () => of(ca, notYetValid()), says: 'not valid yet' },
    { name: 'of another authority', tls: () => of(other), says: 'an authority that is not trusted here' },
    { name: 'that was revoked', tls: async () => revoked, says: 'the certificate is revoked' },
    { name: 'of a server', tls: asServer, says: 'not for this purpose' },
  ];
  test.each(rows)('$name is refused at both ports with the reason, and logged once with the address', async (row) => {
    const tls = await row.tls();
    for (let i = 0; i < 2; i++) {
      expect(await askPipe(tls)).toContain(row.says);
      const { status, body } = await put(tls);
      expect([status >= 400, body]).toEqual([true, expect.stringContaining(row.says)]);
    }
    const refused = linesOf(node.log()).filter(({ reason }) => String(reason).includes(row.says));
    // Each of the two ports logs the first one of a minute.
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused.length).toBeLessThanOrEqual(2);
    for (const { level, address } of refused) expect([level, address]).toEqual(['warn', expect.stringMatching(/^127/)]);
  });

  test('of the right authority is let in, as the user whom it names', async () => {
    expect((await put(await of(ca))).status).toBe(200);
    expect(await askPipe(await of(ca))).toBe('');
    expect((await put(trusting)).body).toContain('user name is empty');
  });

  test('whose node has another name is refused by the client, which says which names it has', async () => {
    const tls = { ...trusting, servername: 'db.example.com' };
    expect(await askPipe(tls)).toMatch(/other names.*db\.example\.com/s);
  });
});

describe('a token', () => {
  /** As the cluster signs them: a thief of its key could do no more. */
  async function signed(endsInMs: number, more: { readonly user?: string; readonly version?: number } = {}) {
    const image = await imageOf();
    const { version } = image.users.find(({ name }) => name === 'root') ?? expect.fail('no root');
    return signToken({ user: 'root', version, endsMs: Date.now() + endsInMs, ...more }, image.tokenKey);
  }

  function imageOf(): Promise<AuthImage> {
    return eventually('the node keeps users on its disk', () => {
      const path = join(node.dataDir, 'users.json');
      if (!existsSync(path)) return undefined;
      const { image } = JSON.parse(readFileSync(path, 'utf8')) as { readonly image: string };
      const read = schema.closedCodec(AuthImage).decode(unpack(Buffer.from(image, 'base64'), 0)) as AuthImage;
      return read.users.length > 0 ? read : undefined;
    });
  }

  async function ofAnotherCluster(): Promise<string> {
    const another = await Cluster.start({
      nodes: 1,
      flagsOf: (_name, dir) => {
        const password = join(dir, 'root.password');
        writeFileSync(password, PASSWORD, { mode: 0o600 });
        return { 'initial-root-password-file': password };
      },
    });
    try {
      const { http } = another.node(1);
      const body = JSON.stringify({ name: 'root', password: PASSWORD });
      const response = await fetch(`http://${http}/v3/auth/authenticate`, { method: 'POST', body });
      return String(((await response.json()) as Line).token);
    } finally {
      await another.stop();
    }
  }

  const rows: readonly { readonly name: string; readonly token: () => Promise<string>; readonly why: string }[] = [
    { name: 'that has expired', token: () => signed(-1), why: 'it has expired' },
    { name: 'of an earlier password', token: () => signed(60_000, { version: 0 }), why: 'the password of its user' },
    {
      name: 'of a user who is not there',
      token: () => signed(60_000, { user: 'eve' }),
      why: 'its user does not exist',
    },
    { name: 'of another cluster', token: ofAnotherCluster, why: 'none of this cluster' },
    { name: 'with another signature', token: async () => `${await signed(60_000)}x`, why: 'none of this cluster' },
    { name: 'of 10 kB', token: async () => `r1.${'x'.repeat(10_240)}.x`, why: 'none of this cluster' },
  ];
  test.each(rows)('$name is refused, and recorded once with the reason and the address', async ({ token, why }) => {
    const sent = await token();
    const before = audited().length;
    const { status, body } = await put(trusting, `Bearer ${sent}`);
    expect([status, body]).toEqual([401, expect.stringContaining('invalid auth token')]);
    const lines = await eventually('it is recorded', () => {
      const found = audited().slice(before);
      return found.length > 0 ? found : undefined;
    });
    expect(lines).toEqual([
      expect.objectContaining({
        ...{ action: 'useToken', decision: 'failed', principal: null, method: 'token', address: '127.0.0.1' },
        reason: expect.stringContaining(why),
      }),
    ]);
    expect(node.log() + readFileSync(join(cluster.dir, 'n1.audit'), 'utf8')).not.toContain(sent);
  });

  test('that is as good as one of the cluster is let in until it ends', async () => {
    expect((await put(trusting, `Bearer ${await signed(TOKEN_LIFE_MS)}`)).status).toBe(200);
  });
});
