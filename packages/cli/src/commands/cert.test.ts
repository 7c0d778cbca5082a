import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { serialKey } from '@remora/base/node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readRevocationLists } from '../certs/revocation-lists.ts';
import { runCommandLine } from '../program.ts';
import type { Shell } from '../shell.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-cert-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function run(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let [out, err] = ['', ''];
  const shell = {
    env: {},
    out: (text: string) => {
      out += `${text}\n`;
    },
    err: (text: string) => {
      err += `${text}\n`;
    },
  } as unknown as Shell;
  const code = await runCommandLine(['cert', ...args], shell, () => Promise.reject(new Error('no node')));
  return { code, out, err };
}

const path = (name: string): string => join(dir, name);
const text = (name: string): string => readFileSync(path(name), 'utf8');
const pair = (name: string) => ({ cert: text(`${name}.crt`), key: text(`${name}.key`) });

beforeAll(async () => {
  for (const args of [['init'], ['node', 'n1', '--host', 'n1.example.com', '--host', '10.1.2.3'], ['client', 'ann']]) {
    expect(await run(...args, '--dir', dir)).toMatchObject({ code: 0, err: '' });
  }
});

/** What a client says of a server after a handshake, and what the server says of the client. */
async function handshake(
  server: TlsOptions,
  client: ConnectionOptions,
): Promise<{ readonly refused: string | undefined; readonly user: string | undefined }> {
  const listener = createServer(server);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const served = new Promise<string | undefined>((resolve) => {
    listener.once('secureConnection', (socket: TLSSocket) => resolve(String(socket.getPeerCertificate().subject?.CN)));
    listener.once('tlsClientError', () => resolve(undefined));
  });
  const socket = connect({ port: (listener.address() as AddressInfo).port, host: '127.0.0.1', ...client });
  const refused = await new Promise<string | undefined>((resolve) => {
    socket.once('secureConnect', () => resolve(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
  const user = await served;
  socket.destroy();
  listener.close();
  return { refused, user };
}

describe('the certificates', () => {
  const mutual = () => ({ ...pair('n1'), ca: text('ca.crt'), requestCert: true, rejectUnauthorized: true });

  test.each(['localhost', 'n1.example.com'])(
    'let clients verify a node as %s, and the node its user',
    async (servername) => {
      const client = { ca: text('ca.crt'), servername, ...pair('client-ann') };
      expect(await handshake(mutual(), client)).toEqual({ refused: undefined, user: 'ann' });
    },
  );

  test('let a client verify a node by its address', async () => {
    const client = { ca: text('ca.crt'), ...pair('client-ann') };
    expect(await handshake(mutual(), client)).toMatchObject({ refused: undefined });
  });

  test('are for no other host', async () => {
    const client = { ca: text('ca.crt'), servername: 'n2.example.com', ...pair('client-ann') };
    expect(await handshake(mutual(), client)).toMatchObject({ refused: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  test('of a client make no node, and no peer of nodes (C1)', async () => {
    const peers = { ...pair('n1-peer'), ca: text('peer-ca.crt'), requestCert: true, rejectUnauthorized: true };
    const asPeer = { ca: text('peer-ca.crt'), servername: 'localhost', ...pair('client-ann') };
    expect((await handshake(peers, asPeer)).user).toBeUndefined();
    const asNode = await handshake(pair('client-ann'), { ca: text('ca.crt'), servername: 'localhost' });
    expect(asNode.refused).toBeDefined();
  });

  test('of nodes name the node (C2), and serve both ends of a connection', async () => {
    const peers = { ...pair('n1-peer'), ca: text('peer-ca.crt'), requestCert: true, rejectUnauthorized: true };
    const client = { ca: text('peer-ca.crt'), servername: 'n1.example.com', ...pair('n1-peer') };
    expect(await handshake(peers, client)).toEqual({ refused: undefined, user: 'n1' });
    const { out } = await run('inspect', path('n1-peer.crt'), '--json');
    expect(JSON.parse(out)).toMatchObject([
      { subject: 'CN=n1', issuer: 'CN=Remora peer CA', uses: ['server', 'client'], daysLeft: 364 },
    ]);
    expect(JSON.parse(out)[0].names).toContain('URI:spiffe://remora/node/n1');
  });

  test('and keys can be read by their owner alone', () => {
    for (const name of ['ca', 'peer-ca', 'n1', 'n1-peer', 'client-ann']) {
      for (const kind of ['key', 'crt']) expect(statSync(path(`${name}.${kind}`)).mode & 0o777).toBe(0o600);
    }
  });
});

test('inspect shows what an operator looks for', async () => {
  const { code, out } = await run('inspect', path('n1.crt'), '--key', path('n1.key'));
  expect(code).toBe(0);
  expect(out).toMatch(/^subject {2}CN=n1\nissuer {3}CN=Remora CA\nnames {4}DNS:n1\.example\.com, /);
  expect(out).toMatch(/\(364 days left\)/);
  expect((await run('inspect', path('ca.crt'))).out).toMatch(/uses {5}authority/);
});

test('an expired certificate says since when', async () => {
  const { inspectCertificates } = await import('../certs/inspect-certificate.ts');
  const later = Date.now() + 400 * 86_400_000;
  expect(inspectCertificates(text('n1.crt'), later)[0]?.daysLeft).toBe(-36);
});

const noKey = path('no-key');
writeFileSync(noKey, 'nothing');
const damaged = path('damaged.crt');
writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');

const refusals: readonly { readonly name: string; readonly args: readonly string[]; readonly says: RegExp }[] = [
  { name: 'authorities that exist', args: ['init', '--dir', dir], says: /ca\.crt exists already; remove it/ },
  { name: 'a node that exists', args: ['node', 'n1', '--dir', dir], says: /n1\.crt exists already/ },
  { name: 'a user that exists', args: ['client', 'ann', '--dir', dir], says: /client-ann\.crt exists already/ },
  {
    name: 'a directory without authorities',
    args: ['node', 'n2', '--dir', path('none')],
    says: /ca\.crt cannot be read; make the authorities first: remora cert init/,
  },
  { name: 'a name with a slash', args: ['client', '../ann', '--dir', dir], says: /invalid name \.\.\/ann/ },
  { name: 'no days', args: ['client', 'bob', '--days', '0', '--dir', dir], says: /--days/ },
  { name: 'a file that is missing', args: ['inspect', path('none.crt')], says: /none\.crt cannot be read/ },
  { name: 'a file without a certificate', args: ['inspect', noKey], says: /contains no certificate in PEM form/ },
  { name: 'a damaged certificate', args: ['inspect', damaged], says: /damaged\.crt: / },
  {
    name: 'a key that does not match',
    args: ['inspect', path('n1.crt'), '--key', path('n1-peer.key')],
    says: /n1-peer\.key is not the key of the first certificate/,
  },
  { name: 'no key', args: ['inspect', path('n1.crt'), '--key', noKey], says: /contains no private key in PEM form/ },
];
test.each(refusals)('refused: $name', async ({ args, says }) => {
  const { code, err, out } = await run(...args);
  expect(code).not.toBe(0);
  expect(err).toMatch(says);
  expect(out).toBe('');
});

describe('revocation', () => {
  test('adds certificates to the list of their authority, and keeps those that are in it', async () => {
    for (const user of ['bob', 'eve']) expect(await run('client', user, '--dir', dir)).toMatchObject({ code: 0 });
    for (const user of ['bob', 'eve']) {
      const revoked = await run('revoke', path(`client-${user}.crt`), '--dir', dir);
      expect(revoked).toEqual({ code: 0, err: '', out: `${path('ca.crl')}\n` });
    }
    const authority = new X509Certificate(text('ca.crt'));
    const [list] = await readRevocationLists(text('ca.crl'), [authority]);
    const serials = ['bob', 'eve'].map((user) =>
      serialKey(new X509Certificate(text(`client-${user}.crt`)).serialNumber),
    );
    expect([...(list?.serials ?? [])].sort()).toEqual(serials.sort());
  });

  test('lists are there from the beginning, and empty', async () => {
    const [list] = await readRevocationLists(text('peer-ca.crl'), [new X509Certificate(text('peer-ca.crt'))]);
    expect(list?.serials.size).toBe(0);
  });

  test('refuses a certificate of another authority', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'remora-cert-'));
    await run('init', '--dir', elsewhere);
    const { code, err } = await run('revoke', path('client-ann.crt'), '--dir', elsewhere);
    rmSync(elsewhere, { recursive: true, force: true });
    expect(code).not.toBe(0);
    expect(err).toContain('client-ann.crt is not signed by an authority of');
  });
});
