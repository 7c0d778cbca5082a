import { type Logger, SeededRandom, type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { echo } from '../../test/support/rpc-methods.ts';
import { createMemoryLink, type MemoryLinkPair } from '../testing/memory-link.ts';
import { createDialer } from './dialer.ts';
import { createRpcRegistry } from './registry.ts';
import { serveLink } from './server.ts';

function setUp() {
  const clock = new ManualClock();
  const registry = createRpcRegistry();
  registry.handle(echo, (text, _context, done) => done(undefined, text));
  const links: MemoryLinkPair[] = [];
  const dialled: string[] = [];
  let peer: 'up' | 'down' | 'silent' = 'up';
  const logged: string[] = [];
  const log = (_fields: unknown, message: string): unknown => logged.push(message);
  const addresses = new Map([[2, 'two:1']]);
  const dialer = createDialer({
    localNodeId: 1,
    registry,
    resolveAddress: (nodeId) => addresses.get(nodeId),
    connect({ address }) {
      dialled.push(address);
      const pair = createMemoryLink(clock);
      links.push(pair);
      if (peer === 'up') serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 1 } });
      if (peer === 'down') clock.setImmediate(() => pair.sever());
      if (peer === 'silent') return { start() {}, send: () => true, close() {} };
      return pair.client;
    },
    clock,
    random: new SeededRandom(1),
    logger: { ...silentLogger, info: log as Logger['info'] },
    options: { backoffMinMs: 100, backoffMaxMs: 400 },
  });
  const call = (nodeId: number) => {
    const seen: { error?: ServiceError | undefined; reply?: string | undefined } = {};
    dialer
      .channel(nodeId)
      .call(echo, 'hi', { timeoutMs: 500 }, (error, reply) => Object.assign(seen, { error, reply }));
    return seen;
  };
  return {
    clock,
    dialer,
    links,
    dialled,
    logged,
    addresses,
    call,
    become(next: typeof peer) {
      peer = next;
    },
  };
}

test('a peer that is away for long is not logged at every attempt', () => {
  const { clock, call, dialled, logged, become } = setUp();
  become('down');
  for (let ms = 0; ms < 290_000; ms += 100) {
    call(2);
    clock.advance(100);
  }
  expect(dialled.length).toBeGreaterThan(500);
  expect(logged.length).toBeGreaterThanOrEqual(4);
  expect(logged.length).toBeLessThanOrEqual(6);
  become('up');
  clock.advance(1_000);
  const seen = call(2);
  clock.advance(10);
  expect(seen.reply).toBe('hi');
});

test('the local node is called without a link', () => {
  const { call, dialled } = setUp();
  expect(call(1).reply).toBe('hi');
  expect(dialled).toEqual([]);
});

test('calls wait for the link that the first one opens, and share it', () => {
  const { clock, call, dialled } = setUp();
  const first = call(2);
  const second = call(2);
  clock.advance(1);
  expect([first.reply, second.reply, dialled]).toEqual(['hi', 'hi', ['two:1']]);
});

test('a node without a known address is UNAVAILABLE until there is one', () => {
  const { clock, call, addresses } = setUp();
  expect(call(9).error?.code).toBe('UNAVAILABLE');
  addresses.set(9, 'nine:1');
  const later = call(9);
  clock.advance(1);
  expect(later.reply).toBe('hi');
});

test('a link that broke is replaced at the next call, at the address of that moment', () => {
  const { clock, call, links, dialled, addresses } = setUp();
  call(2);
  clock.advance(1);
  links[0]?.sever();
  addresses.set(2, 'two:2');
  const again = call(2);
  clock.advance(1);
  expect([again.reply, dialled]).toEqual(['hi', ['two:1', 'two:2']]);
});

test('failed attempts are spaced out by a growing pause, and calls in it fail at once', () => {
  const { clock, call, dialled, become } = setUp();
  become('down');
  for (let i = 0; i < 200; i++) {
    call(2);
    clock.advance(20);
  }
  // 4 s of calls, one each 20 ms: pauses of 50 to 100, 100 to 200, then 200 to 400 ms.
  expect(dialled.length).toBeGreaterThan(8);
  expect(dialled.length).toBeLessThan(24);
  const before = dialled.length;
  clock.advance(500);
  call(2);
  clock.advance(0);
  expect(call(2).error?.code).toBe('UNAVAILABLE');
  expect(dialled.length).toBe(before + 1);
  become('up');
  clock.advance(500);
  const healed = call(2);
  clock.advance(1);
  expect(healed.reply).toBe('hi');
});

test('an attempt that never opens ends by its time-out as UNAVAILABLE', () => {
  const { clock, become, dialer } = setUp();
  become('silent');
  const seen: string[] = [];
  dialer.channel(2).call(echo, 'hi', { timeoutMs: 60_000 }, (error) => seen.push(error?.code ?? 'ok'));
  clock.advance(2_900);
  expect(seen).toEqual([]);
  clock.advance(200);
  expect(seen).toEqual(['UNAVAILABLE']);
});

test('a closed dialer refuses calls', () => {
  const { clock, call, dialer } = setUp();
  call(2);
  clock.advance(1);
  dialer.close();
  expect(call(2).error?.code).toBe('UNAVAILABLE');
  clock.advance(1_000);
  expect(clock.pendingTimers).toBe(0);
});
