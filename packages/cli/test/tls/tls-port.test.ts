/** TLS at a port of frames: real sockets, certificates and files. */

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import {
  dialFrames,
  type FramePort,
  type FrameStream,
  type Hello,
  type Logger,
  nodeClock,
  openFramePort,
  type StreamEnd,
  silentLogger,
} from '@remora/base';
import { TlsAcceptor, type TlsAcceptorOptions, TlsConnector, TlsIdentity } from '@remora/base/node';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeRevocationList, readRevocationLists } from '../../src/certs/revocation-lists.ts';
import { expired, fresh, notYetValid, TestAuthority, TestFiles } from './authority.ts';

const clock = nodeClock();
let ca: TestAuthority;
let other: TestAuthority;
const cleanups: (() => void)[] = [];

beforeAll(async () => {
  [ca, other] = [await TestAuthority.make(), await TestAuthority.make('Other CA')];
});
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

interface Given extends Partial<TlsAcceptorOptions> {
  readonly helloMs?: number;
}

/** A port with TLS that greets each stream of frames, and what it logged. */
async function startPort(given: Given = {}) {
  const files = new TestFiles();
  files.writePair('node', await ca.peer('n1'));
  files.write('ca.crt', ca.certificate);
  files.write('ca.crl', await makeRevocationList([], undefined, ca.credentials, fresh()));
  const logged: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (fields: Readonly<Record<string, unknown>>, message: string) => void logged.push({ fields, message }),
  };
  const at = (name: string) => ({ path: `${files.dir}/${name}`, option: `--${name}` });
  const set = {
    ...{ certificate: at('node.crt'), key: at('node.key'), ca: at('ca.crt'), revocations: at('ca.crl') },
    isMutual: true,
  };
  const deps = { clock, logger, readRevocations: readRevocationLists, purpose: 'test' };
  const identity = await TlsIdentity.open(set, deps);
  const options = { isRequired: true, clientCertificates: 'off', protocols: ['remora', 'h2'], ...given } as const;
  const acceptor = new TlsAcceptor(options, { identity, clock, logger });
  const served: FrameStream[] = [];
  const port: FramePort = await openFramePort({
    ...{ clock, host: '127.0.0.1', port: 0, secure: acceptor, purpose: 'This port is for tests.' },
    ...(given.helloMs === undefined ? {} : { helloMs: given.helloMs }),
    services: [
      {
        name: 'echo',
        open(_hello, stream) {
          served.push(stream);
          stream.sayHello({ user: stream.peerCertificate?.commonName ?? 'nobody' });
          stream.handle({ onFrame: (frame) => void stream.send(frame), onDrain() {}, onEnd() {} });
        },
      },
    ],
  });
  cleanups.push(
    () => identity.stop(),
    () => port.close(),
    () => files.close(),
  );
  return { port, address: `127.0.0.1:${port.port}`, files, identity, acceptor, logged, served };
}

interface Heard {
  hello?: Hello;
  end?: StreamEnd;
  readonly frames: string[];
}

function dial(address: string, options: { readonly tls?: ConnectionOptions; readonly connector?: TlsConnector }) {
  const heard: Heard = { frames: [] };
  const stream = dialFrames(
    address,
    { service: 'echo' },
    { clock, ...options },
    {
      onHello: (hello) => {
        heard.hello = hello;
      },
      onFrame: (frame) => void heard.frames.push(frame.toString()),
      onDrain() {},
      onEnd: (end) => {
        heard.end = end;
      },
    },
  );
  cleanups.push(() => stream.destroy());
  return { heard, stream };
}

/** What a client hears first. */
async function answer(address: string, tls?: ConnectionOptions): Promise<Hello | StreamEnd> {
  const { heard } = dial(address, tls === undefined ? {} : { tls });
  await expect.poll(() => heard.hello ?? heard.end, { interval: 5 }).toBeDefined();
  return heard.hello ?? heard.end ?? { message: 'nothing' };
}

const trusting = (): ConnectionOptions => ({ ca: ca.certificate });

async function clientOf(user: string, authority = ca, validity = fresh()): Promise<ConnectionOptions> {
  const { certificate, key } = await authority.client(user, validity);
  return { ...trusting(), cert: certificate, key };
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)('frames pass over %s', async (version) => {
  const { address } = await startPort();
  const { heard, stream } = dial(address, { tls: { ...trusting(), minVersion: version, maxVersion: version } });
  stream.send(Buffer.from('one'));
  await expect.poll(() => heard.frames).toEqual(['one']);
  expect(heard.hello).toEqual({ user: 'nobody' });
});

test('TLS 1.1 is refused', async () => {
  const { address } = await startPort();
  const old = { ...trusting(), minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  expect(await answer(address, old)).toHaveProperty('message');
});

test('ALPN offers h2 and the name for streams of frames, and refuses other protocols', async () => {
  const { port } = await startPort();
  const chosen = async (ALPNProtocols: string[]): Promise<string | false | null> => {
    const socket = connectTls({ ...trusting(), port: port.port, host: '127.0.0.1', ALPNProtocols });
    cleanups.push(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket.alpnProtocol;
  };
  expect(await chosen(['h2'])).toBe('h2');
  expect(await chosen(['h2', 'remora'])).toBe('remora');
  await expect(chosen(['smtp'])).rejects.toThrow();
});

describe('a port that requires TLS', () => {
  test('tells a client in plain text what to use', async () => {
    const { address } = await startPort();
    expect(await answer(address)).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('requires TLS'),
    });
  });

  test('tells a browser in plain text what to use', async () => {
    const { port } = await startPort();
    const socket = connect(port.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1.1 400.*requires TLS/s);
  });
});

test('a port that allows both serves both', async () => {
  const { address } = await startPort({ isRequired: false });
  expect(await answer(address)).toEqual({ user: 'nobody' });
  expect(await answer(address, trusting())).toEqual({ user: 'nobody' });
});

test('a client with TLS hears of a port without it that it does not speak TLS', async () => {
  const port = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: [] });
  cleanups.push(() => port.close());
  const heard = await answer(`127.0.0.1:${port.port}`, trusting());
  expect(heard).toEqual({ message: 'the other end does not speak TLS' });
});

describe('client certificates', () => {
  test('give the port the name of the client', async () => {
    const { address } = await startPort({ clientCertificates: 'required' });
    expect(await answer(address, await clientOf('ann'))).toEqual({ user: 'ann' });
  });

  test('may be optional', async () => {
    const { address } = await startPort({ clientCertificates: 'optional' });
    expect(await answer(address, trusting())).toEqual({ user: 'nobody' });
    expect(await answer(address, await clientOf('ann'))).toEqual({ user: 'ann' });
  });

  const rows = [
    { name: 'of another authority', tls: () => clientOf('ann', other), says: 'an authority that is not trusted here' },
    { name: 'that has expired', tls: () => clientOf('ann', ca, expired()), says: 'the certificate has expired' },
    { name: 'of tomorrow', tls: () => clientOf('ann', ca, notYetValid()), says: 'not valid yet' },
  ];
  test.each(rows)(
    '$name are refused with the reason, also where they are optional, and logged once with the address',
    async ({ tls, says }) => {
      const { address, logged } = await startPort({ clientCertificates: 'optional' });
      for (let i = 0; i < 3; i++) {
        const end = await answer(address, await tls());
        expect(end).toMatchObject({ code: 'UNAUTHENTICATED', message: expect.stringContaining(says) });
      }
      expect(logged).toEqual([
        expect.objectContaining({
          fields: { address: expect.stringMatching(/^127\.0\.0\.1:\d+$/), reason: expect.stringContaining(says) },
        }),
      ]);
    },
  );

  test('that are missing where they are required are asked for in the refusal', async () => {
    const { address, logged } = await startPort({ clientCertificates: 'required' });
    const end = await answer(address, trusting());
    expect(end).toMatchObject({ code: 'UNAUTHENTICATED', message: 'this port requires a client certificate' });
    expect(logged).toHaveLength(1);
  });

  test('with the certificate of a server are refused: it is not for this purpose', async () => {
    const { address } = await startPort({ clientCertificates: 'required' });
    const { certificate, key } = await ca.server();
    const end = await answer(address, { ...trusting(), cert: certificate, key });
    expect(end).toMatchObject({ code: 'UNAUTHENTICATED', message: expect.stringContaining('purpose') });
  });
});

describe('a session of TLS', () => {
  const rows = (['TLSv1.2', 'TLSv1.3'] as const).flatMap((version) => [
    { version, clientCertificates: 'off', resumes: true } as const,
    { version, clientCertificates: 'optional', resumes: false } as const,
    { version, clientCertificates: 'required', resumes: false } as const,
  ]);
  test.each(rows)(
    'of $version is resumed where certificates are $clientCertificates: $resumes (TA5)',
    async ({ version, clientCertificates, resumes }) => {
      const { address, identity } = await startPort({ clientCertificates });
      const tls = { ...(await clientOf('ann')), minVersion: version, maxVersion: version };
      const session = await sessionOf(address, tls);
      expect(await isResumed(address, { ...tls, ...(session !== undefined && { session }) })).toBe(resumes);
      await identity.reload();
      const next = await sessionOf(address, tls);
      expect(await isResumed(address, { ...tls, ...(next !== undefined && { session: next }) })).toBe(resumes);
    },
  );
});

describe('a server certificate', () => {
  test('of an authority that the client does not trust is refused by the client, and logged once', async () => {
    const { address, logged } = await startPort();
    for (let i = 0; i < 2; i++) {
      const end = await answer(address, { ca: other.certificate });
      expect(end).toEqual({ message: 'the certificate is signed by an authority that is not trusted here' });
    }
    await expect.poll(() => logged.length).toBe(1);
    expect(logged[0]?.fields).toMatchObject({
      address: expect.stringMatching(/^127/),
      reason: expect.stringContaining('does not trust'),
    });
  });

  test('for another name is refused by the client, which says which names it has', async () => {
    const { address } = await startPort();
    const end = await answer(address, { ...trusting(), servername: 'db.example.com' });
    expect(end).toMatchObject({ message: expect.stringMatching(/other names.*db\.example\.com.*localhost/s) });
  });
});

describe('a reload', () => {
  test('changes the certificate for new connections, and connections that exist go on (TI1)', async () => {
    const { address, files, identity } = await startPort();
    const before = dial(address, { tls: trusting() });
    await expect.poll(() => before.heard.hello).toBeDefined();
    files.writePair('node', await ca.peer('n2'));
    await identity.reload();
    const socket = connectTls({ ...trusting(), port: Number(address.split(':')[1]), host: '127.0.0.1' });
    cleanups.push(() => socket.destroy());
    await once(socket, 'secureConnect');
    expect(socket.getPeerCertificate().subject.CN).toBe('n2');
    before.stream.send(Buffer.from('still here'));
    await expect.poll(() => before.heard.frames).toEqual(['still here']);
  });

  test('happens by itself when files change (TI2)', async () => {
    const { files, identity } = await startPort();
    files.writePair('node', await ca.peer('n2'));
    await expect.poll(() => identity.material.certificate.subject).toBe('CN=n2');
  });

  test('keeps what is in use when the new files do not fit, and logs that once', async () => {
    const { address, files, identity, logged } = await startPort();
    files.write('node.crt', (await ca.peer('n2')).certificate); // its key is not there yet
    for (let i = 0; i < 3; i++) await identity.reload();
    expect(identity.material.certificate.subject).toBe('CN=n1');
    expect(await answer(address, trusting())).toEqual({ user: 'nobody' });
    const about = logged.filter(({ message }) => message.includes('cannot be used'));
    expect(about).toEqual([
      expect.objectContaining({ fields: { purpose: 'test', reason: expect.stringContaining('--node.key') } }),
    ]);
  });

  test('changes the ticket keys: sessions of before are not resumed (TI3)', async () => {
    const { address, files, identity } = await startPort();
    const first = await resumable(address);
    expect((await resumable(address, first.session)).isReused).toBe(true);
    files.writePair('node', await ca.peer('n1'));
    await identity.reload();
    expect((await resumable(address, first.session)).isReused).toBe(false);
  });

  test('closes the connections of certificates that were revoked, and no others (TI4)', async () => {
    const { address, files, identity, logged } = await startPort({ clientCertificates: 'required' });
    const revoked = await clientOf('ann');
    const [ann, bob] = [dial(address, { tls: revoked }), dial(address, { tls: await clientOf('bob') })];
    for (const { heard } of [ann, bob]) await expect.poll(() => heard.hello).toBeDefined();
    const list = await makeRevocationList(
      [new X509Certificate(String(revoked.cert))],
      undefined,
      ca.credentials,
      fresh(),
    );
    files.write('ca.crl', list);
    await identity.reload();
    await expect.poll(() => ann.heard.end).toBeDefined();
    expect(bob.heard.end).toBeUndefined();
    expect(logged.map(({ fields }) => fields.reason)).toContain('the certificate is revoked');
    expect(await answer(address, revoked)).toMatchObject({
      code: 'UNAUTHENTICATED',
      message: 'the certificate is revoked',
    });
  });

  test('closes the connections of an authority that is no longer trusted (TI4)', async () => {
    const { address, files, identity } = await startPort({ clientCertificates: 'required' });
    files.write('ca.crt', ca.certificate + other.certificate);
    await identity.reload();
    const { heard } = dial(address, { tls: await clientOf('ann', other) });
    await expect.poll(() => heard.hello).toEqual({ user: 'ann' });
    files.write('ca.crt', ca.certificate);
    await identity.reload();
    await expect.poll(() => heard.end).toBeDefined();
  });
});

test('a connection is closed when the certificate of its other end expires (TI4)', async () => {
  const { address } = await startPort({ clientCertificates: 'required' });
  // The five minutes by which clocks may differ come first, so that it is valid for four seconds from now.
  const { heard } = dial(address, { tls: await clientOf('ann', ca, { nowMs: Date.now(), days: 4_000 / 86_400_000 }) });
  await expect.poll(() => heard.hello).toEqual({ user: 'ann' });
  await expect.poll(() => heard.end).toBeDefined();
});

describe('handshakes', () => {
  /** Begins a handshake, and sends no more of it. */
  function stalled(port: number): Socket {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]));
    cleanups.push(() => socket.destroy());
    return socket;
  }

  test('that stall hold up no other, and those beyond the bound end the oldest (TA2)', async () => {
    const limits = { max: 20, perAddressMax: 10 };
    const { port, address, acceptor } = await startPort({ limits, helloMs: 60_000 });
    const sockets = Array.from({ length: 40 }, () => stalled(port.port));
    await expect.poll(() => acceptor.stats.inProgress).toBe(10);
    await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length).toBe(30);
    expect(await answer(address, trusting())).toEqual({ user: 'nobody' });
  });

  test('that do not end are ended in time', async () => {
    const { port, acceptor } = await startPort({ helloMs: 200 });
    const socket = stalled(port.port);
    await once(socket, 'close');
    await expect.poll(() => acceptor.stats.inProgress).toBe(0);
  });
});

describe('a connector of nodes', () => {
  async function connectorOf(name: string, authority = ca, isRequired = true): Promise<TlsConnector> {
    const files = new TestFiles();
    files.writePair('peer', await authority.peer(name));
    files.write('ca.crt', authority.certificate);
    const at = (file: string) => ({ path: `${files.dir}/${file}`, option: file });
    const identity = await TlsIdentity.open(
      { certificate: at('peer.crt'), key: at('peer.key'), ca: at('ca.crt'), isMutual: true },
      { clock, logger: silentLogger, readRevocations: readRevocationLists, purpose: 'peers' },
    );
    cleanups.push(
      () => identity.stop(),
      () => files.close(),
    );
    return new TlsConnector(identity, { isRequired });
  }
  const mutual = { clientCertificates: 'required', protocols: ['remora-peer'] } as const;

  test('and its port learn each others names', async () => {
    const { address } = await startPort(mutual);
    const { heard, stream } = dial(address, { connector: await connectorOf('n2') });
    await expect.poll(() => heard.hello).toEqual({ user: 'n2' });
    expect(stream.peerCertificate).toMatchObject({ commonName: 'n1', uris: ['spiffe://remora/node/n1'] });
  });

  test('does not connect to a port of another authority', async () => {
    const { address } = await startPort(mutual);
    const { heard } = dial(address, { connector: await connectorOf('n2', other) });
    await expect.poll(() => heard.end?.message).toContain('authority that is not trusted here');
  });

  test('that allows plain text finds a port without TLS at the second attempt, and TLS again later (TC2)', async () => {
    const plain = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: [echo] });
    cleanups.push(() => plain.close());
    const connector = await connectorOf('n2', ca, false);
    const attempt = async (): Promise<Heard> => {
      const { heard, stream } = dial(`127.0.0.1:${plain.port}`, { connector });
      await expect.poll(() => heard.hello ?? heard.end).toBeDefined();
      stream.destroy();
      return heard;
    };
    expect((await attempt()).end?.message).toBe('the other end does not speak TLS');
    expect((await attempt()).hello).toEqual({});
    await expect.poll(async () => (await attempt()).end?.message).toBe('the other end does not speak TLS');
  });

  test('that requires TLS never falls back', async () => {
    const plain = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: [echo] });
    cleanups.push(() => plain.close());
    const connector = await connectorOf('n2');
    for (let i = 0; i < 3; i++) {
      const { heard } = dial(`127.0.0.1:${plain.port}`, { connector });
      await expect.poll(() => heard.end?.message).toBe('the other end does not speak TLS');
    }
  });
});

const echo = { name: 'echo', open: (_hello: Hello, stream: FrameStream) => stream.sayHello({}) };

/** Connects, and returns whether a session was resumed, and a session that can be. */
/** The session as it is once the port has answered: TLS 1.3 sends it after the handshake. */
async function sessionOf(address: string, tls: ConnectionOptions): Promise<Buffer | undefined> {
  const socket = await connected(address, tls);
  let session: Buffer | undefined = socket.getSession();
  socket.on('session', (newer: Buffer) => {
    session = newer;
  });
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await once(socket, 'data');
  return session;
}

async function isResumed(address: string, tls: ConnectionOptions): Promise<boolean> {
  return (await connected(address, tls)).isSessionReused();
}

async function connected(address: string, tls: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({ ...tls, port: Number(address.split(':')[1]), host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

async function resumable(
  address: string,
  session?: Buffer,
): Promise<{ readonly isReused: boolean; readonly session: Buffer | undefined }> {
  const port = Number(address.split(':')[1]);
  const target = { port, host: '127.0.0.1', maxVersion: 'TLSv1.2' } as const;
  const socket = connectTls({ ...trusting(), ...target, ...(session === undefined ? {} : { session }) });
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  return { isReused: socket.isSessionReused(), session: socket.getSession() };
}
