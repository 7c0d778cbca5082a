import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { SeededRandom } from '@remora/base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePorts } from '../../e2e/free-ports.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Link } from './link.ts';

const HOST = '127.0.0.1';

/** A target that answers every byte with the same byte. */
async function startEcho(): Promise<{ readonly server: Server; readonly port: number; readonly peers: Socket[] }> {
  const peers: Socket[] = [];
  const server = createServer((socket) => {
    peers.push(socket);
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const address = server.address();
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0, peers };
}

function closed(socket: Socket | undefined): Promise<unknown> {
  return new Promise((resolve) => socket?.once('close', resolve));
}

describe('a fault proxy', () => {
  let echo: Awaited<ReturnType<typeof startEcho>>;
  let there: Link;
  let back: Link;
  let proxy: FaultProxy;
  let port: number;
  const clients: Socket[] = [];

  beforeEach(async () => {
    const random = new SeededRandom(1);
    echo = await startEcho();
    [there, back] = [new Link(random), new Link(random)];
    proxy = new FaultProxy({ targetPort: echo.port, there, back });
    [port = 0] = await freePorts(HOST, 1);
    await proxy.listen(port);
  });

  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    proxy.close();
    echo.server.close();
    for (const peer of echo.peers) peer.destroy();
  });

  async function dial(): Promise<Socket> {
    const client = connect({ port, host: HOST });
    client.on('error', () => undefined);
    clients.push(client);
    await once(client, 'connect');
    return client;
  }

  /** Reads until so many bytes have come. */
  function read(client: Socket, length: number): Promise<string> {
    return new Promise((resolve, reject) => {
      let text = '';
      client.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (text.length >= length) resolve(text);
      });
      client.on('close', () => reject(new Error(`closed after ${text}`)));
    });
  }

  test('carries bytes both ways', async () => {
    const client = await dial();
    client.write('hello');
    expect(await read(client, 5)).toBe('hello');
  });

  test.each(['there', 'back'] as const)(
    'holds back what goes over a blocked link (%s), and delivers it in order when the link is whole',
    async (which) => {
      const client = await dial();
      client.write('a');
      expect(await read(client, 1)).toBe('a');
      const heal = (which === 'there' ? there : back).add({ blocked: true });
      const early: string[] = [];
      const note = (bytes: Buffer) => early.push(bytes.toString());
      client.on('data', note);
      for (const letter of 'bcd') client.write(letter);
      // What goes through another proxy to the same target afterwards has overtaken it.
      const other = new FaultProxy({
        targetPort: echo.port,
        there: new Link(new SeededRandom(2)),
        back: new Link(new SeededRandom(3)),
      });
      const [otherPort = 0] = await freePorts(HOST, 1);
      await other.listen(otherPort);
      const witness = connect({ port: otherPort, host: HOST }).on('error', () => undefined);
      clients.push(witness);
      witness.write('x');
      expect(await read(witness, 1)).toBe('x');
      other.close();
      expect(early).toEqual([]);
      client.off('data', note);
      const rest = read(client, 3);
      heal();
      expect(await rest).toBe('bcd');
    },
  );

  test('a dialler gets through only when both directions are whole', async () => {
    const heal = back.add({ blocked: true });
    const client = await dial();
    client.write('a');
    const answer = read(client, 1);
    expect(echo.peers).toHaveLength(0);
    heal();
    expect(await answer).toBe('a');
  });

  test('a refused link closes what is open, and whoever dials', async () => {
    const client = await dial();
    client.write('a');
    await read(client, 1);
    const heal = there.add({ refused: true });
    await closed(client);
    await closed(connect({ port, host: HOST }).on('error', () => undefined));
    heal();
    const again = await dial();
    again.write('b');
    expect(await read(again, 1)).toBe('b');
  });

  test('a delay holds each piece, and keeps the order', async () => {
    there.add({ delayMs: 30, jitterMs: 20 });
    const client = await dial();
    const begun = performance.now();
    for (const letter of 'abcdefgh') {
      client.write(letter);
      await new Promise(setImmediate);
    }
    expect(await read(client, 8)).toBe('abcdefgh');
    expect(performance.now() - begun).toBeGreaterThanOrEqual(29);
  });

  test('more than it may hold is not read from the source', async () => {
    const client = await dial();
    client.write('a');
    await read(client, 1);
    const heal = there.add({ blocked: true });
    const bytes = 64 << 20;
    client.write(Buffer.alloc(bytes, 'b'));
    // Longer than loopback needs for all of it.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(client.writableLength).toBeGreaterThan(bytes / 2);
    const rest = read(client, bytes);
    heal();
    expect(await rest).toHaveLength(bytes);
  });

  test('the end of a target that is gone is told to its dialler', async () => {
    const client = await dial();
    client.write('a');
    await read(client, 1);
    const gone = closed(client);
    for (const peer of echo.peers) peer.resetAndDestroy();
    await gone;
  });

  test('behind a blocked link, the end of a target is told when the link is whole', async () => {
    const client = await dial();
    client.write('a');
    await read(client, 1);
    const heal = back.add({ blocked: true });
    for (const peer of echo.peers) peer.resetAndDestroy();
    await closed(echo.peers[0]);
    expect(client.destroyed).toBe(false);
    const gone = closed(client);
    heal();
    await gone;
  });
});
