/** The room that callers take at the port for nodes before they have shown that they are nodes. */
import { connect, type Socket } from 'node:net';
import { BUILD_VERSIONS, type Clock, nodeClock, OPENING, openFramePort, rangeText, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { afterEach, expect, test } from 'vitest';
import { echo } from '../../../test/support/rpc-methods.ts';
import { LinkCaller } from '../caller.ts';
import { FRAME_BYTES_MAX } from '../link.ts';
import { createRpcRegistry } from '../registry.ts';
import { dialLink } from './frame-link.ts';
import { createRpcService } from './socket-rpc.ts';

const SELF = { clusterId: 'the-cluster', nodeId: 2, incarnation: 'i2' };
const NODE = { cluster: SELF.clusterId, node: '3', incarnation: 'i3' };
const STRANGERS = {
  ...{ silentMax: 40, silentPerAddressMax: 30, anonymousMax: 8, anonymousPerAddressMax: 5 },
  idleMs: 10_000,
};

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

/** A node's port that knows node 3. Connections in all are few, as if strangers had to open only so many to fill it. */
async function nodePort(clock: Clock = nodeClock()) {
  const registry = createRpcRegistry();
  const served = { ...echo, callers: 'joiners' as const };
  registry.handle(served, (text, _context, done) => done(undefined, text));
  const service = createRpcService({
    ...{ identity: () => SELF, registry, clock },
    identify: ({ nodeId, incarnation }) =>
      nodeId === 3 && incarnation === 'i3' ? { kind: 'node', nodeId } : { kind: 'joiner', claims: nodeId },
  });
  const port = await openFramePort({
    ...{ clock, host: '127.0.0.1', port: 0, services: [service], probeMs: 60_000, probeTimeoutMs: 60_000 },
    input: { connectionsMax: 40, connectionsPerAddressMax: 30, strangers: STRANGERS },
  });
  cleanups.push(() => {
    service.close();
    port.close();
  });
  return port;
}

/** A connection that says nothing, but what every connection begins with. */
function silent(port: number, from = '127.0.0.1'): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from }, () => resolve(socket));
    cleanups.push(() => socket.destroy());
    socket.on('error', () => resolve(socket));
    socket.resume();
    socket.write(OPENING);
  });
}

/** A link over which `call` calls; `ended` tells whether the port has closed it. */
function linkTo(port: number, who: Readonly<Record<string, string>> = {}) {
  const clock = nodeClock();
  const state = { ended: false };
  const hello = { service: 'rpc', versions: rangeText(BUILD_VERSIONS), ...who };
  const link = dialLink(
    { address: `127.0.0.1:${port}`, hello, check: () => undefined },
    { clock, frameBytesMax: FRAME_BYTES_MAX, probeMs: 60_000 },
  );
  const caller = new LinkCaller({
    ...{ link, clock },
    onClose: () => {
      state.ended = true;
    },
  });
  cleanups.push(() => caller.close(new ServiceError('UNAVAILABLE', 'the test is over')));
  const call = (): Promise<string> =>
    new Promise((resolve) => {
      caller.call(echo, 'x', { timeoutMs: 10_000 }, (error, reply) => resolve(error?.code ?? String(reply)));
    });
  return { call, state };
}

const eventually = (what: () => unknown) => expect.poll(what, { timeout: 10_000, interval: 5 });

test('a node connects while strangers hold all the room that they can have (IB6)', async () => {
  const port = await nodePort();
  const callers = [];
  for (let i = 0; i < 20; i++) {
    const stranger = linkTo(port.port);
    await stranger.call();
    callers.push(stranger);
  }
  for (let i = 0; i < 60; i++) await silent(port.port, `127.0.0.${1 + (i % 3)}`);
  await eventually(() => port.input.closed.strangers + port.input.closed.address_strangers).toBeGreaterThan(30);
  const nodes = [linkTo(port.port, NODE), linkTo(port.port, NODE)];
  for (const node of nodes) expect(await node.call()).toBe('x');
  // Nor does anything that strangers do from now on end what a node has.
  for (let i = 0; i < 60; i++) await silent(port.port);
  for (const node of nodes) expect(await node.call()).toBe('x');
  expect(port.input.connections).toBeLessThanOrEqual(48);
  expect(callers.filter(({ state }) => !state.ended)).toHaveLength(5);
});

test('of anonymous links from one address the one goes that has called least lately (IB6)', async () => {
  const port = await nodePort();
  const links: ReturnType<typeof linkTo>[] = [];
  for (let i = 0; i < 5; i++) {
    const link = linkTo(port.port);
    expect(await link.call()).toBe('x');
    links.push(link);
  }
  expect(await links[0]?.call()).toBe('x');
  const joiner = linkTo(port.port);
  expect(await joiner.call()).toBe('x');
  await eventually(() => links.map(({ state }) => state.ended)).toEqual([false, true, false, false, false]);
  expect(port.input.closed.address_strangers).toBe(1);
});

test('an anonymous link is closed when it does not call for ten seconds; the link of a node is not (IB6)', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const port = await nodePort(clock);
  const settle = async (call: Promise<string>): Promise<string> => {
    let answer: string | undefined;
    void call.then((text) => {
      answer = text;
    });
    await eventually(() => {
      clock.advance(1); // answers leave at the end of a turn of the port's loop
      return answer;
    }).toBeDefined();
    return answer ?? '';
  };
  const [idle, busy, node] = [linkTo(port.port), linkTo(port.port), linkTo(port.port, NODE)];
  for (const { call } of [idle, busy, node]) expect(await settle(call())).toBe('x');
  for (let i = 0; i < 3; i++) {
    clock.advance(4_000);
    expect(await settle(busy.call())).toBe('x');
  }
  await eventually(() => idle.state.ended).toBe(true);
  expect([busy.state.ended, node.state.ended]).toEqual([false, false]);
  expect(port.input.closed.idle_stranger).toBe(1);
});
