import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeClock } from '../node-clock.ts';
import { dialFrames, openFramePort } from './frame-port.ts';
import { type HostAddress, HostNames } from './host-names.ts';

const v4 = (...addresses: string[]): HostAddress[] => addresses.map((address) => ({ address, family: 4 }));
const v6 = (...addresses: string[]): HostAddress[] => addresses.map((address) => ({ address, family: 6 }));

describe('the addresses of a name', () => {
  test('are resolved at each dial, which begins with another one (HN1, HN2)', async () => {
    let there = v4('a', 'b', 'c');
    const hosts = new HostNames(async () => there);
    const first = async () => (await hosts.addresses('name')).map(({ address }) => address).join('');
    expect([await first(), await first(), await first(), await first()]).toEqual(['abc', 'bca', 'cab', 'abc']);
    there = v4('d');
    expect(await first()).toBe('d');
  });

  test('change places only within their family (HN2)', async () => {
    const hosts = new HostNames(async () => [...v6('x'), ...v4('a', 'b')]);
    const order = async () => (await hosts.addresses('name')).map(({ address }) => address).join('');
    expect([await order(), await order()]).toEqual(['xab', 'xba']);
  });

  test('are looked up once for dials at the same time, and again after a failure (HN3)', async () => {
    let lookups = 0;
    const hosts = new HostNames(async () => {
      lookups += 1;
      if (lookups === 1) throw new Error('no such name');
      return v4('a');
    });
    const both = [hosts.addresses('name'), hosts.addresses('name')];
    expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(lookups).toBe(1);
    expect(await hosts.addresses('name')).toEqual(v4('a'));
  });

  test('of a name in /etc/hosts are found (HN4)', async () => {
    const all = await new HostNames().addresses('localhost');
    expect(all.map(({ address }) => address)).toContain('127.0.0.1');
  });
});

describe('a stream dialled by a name', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  const clock = nodeClock();
  /** What came of one dial: the greeting of the server, or why there is none. */
  const dial = (host: string, port: number, hosts: HostNames): Promise<string> =>
    new Promise((resolve) => {
      const stream = dialFrames(
        `${host}:${port}`,
        { service: 's' },
        { clock, hosts },
        {
          onHello: ({ from = '' }) => {
            resolve(from);
            stream.destroy();
          },
          onFrame: () => undefined,
          onDrain: () => undefined,
          onEnd: ({ message }) => resolve(message),
        },
      );
    });

  async function listen(host: string, port = 0): Promise<number> {
    const service = {
      name: 's',
      open: (_hello: unknown, stream: { sayHello(hello: object): void; handle(handlers: object): void }) => {
        stream.handle({ onFrame() {}, onDrain() {}, onEnd() {} });
        stream.sayHello({ from: host });
      },
    };
    const opened = await openFramePort({ clock, host, port, services: [service as never] });
    closers.push(() => opened.close());
    return opened.port;
  }

  /** Accepts connections and answers nothing but their end. */
  async function listenMutely(host: string, port: number): Promise<void> {
    const server: Server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen({ host, port }, resolve));
    closers.push(() => server.close());
    expect((server.address() as AddressInfo).port).toBe(port);
  }

  test('reaches a host that answers, if others refuse', async () => {
    const port = await listen('127.0.0.3');
    const hosts = new HostNames(async () => v4('127.0.0.2', '127.0.0.3'));
    expect([await dial('nodes.test', port, hosts), await dial('nodes.test', port, hosts)]).toEqual([
      '127.0.0.3',
      '127.0.0.3',
    ]);
  });

  test('reaches another host the next time, if the first accepts connections and does not serve', async () => {
    const port = await listen('127.0.0.3');
    await listenMutely('127.0.0.2', port);
    const hosts = new HostNames(async () => v4('127.0.0.2', '127.0.0.3'));
    const outcomes = [await dial('nodes.test', port, hosts), await dial('nodes.test', port, hosts)];
    expect(outcomes).toEqual([expect.not.stringContaining('127'), '127.0.0.3']);
  });

  test('reaches the host where the name points now', async () => {
    const port = await listen('127.0.0.2');
    await listen('127.0.0.3', port);
    let there = '127.0.0.2';
    const hosts = new HostNames(async () => v4(there));
    expect(await dial('node.test', port, hosts)).toBe('127.0.0.2');
    there = '127.0.0.3';
    expect(await dial('node.test', port, hosts)).toBe('127.0.0.3');
  });

  test('ends with the reason if the name has no address', async () => {
    const hosts = new HostNames(() => Promise.reject(new Error('getaddrinfo ENOTFOUND node.test')));
    expect(await dial('node.test', 1, hosts)).toContain('ENOTFOUND node.test');
  });
});
