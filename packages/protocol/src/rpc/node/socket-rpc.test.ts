import { FIRST_VERSION, nodeClock, nodeRandom, openFramePort, rangeUpTo, ServiceError, versionOf } from '@remora/base';
import { afterEach, expect, test } from 'vitest';
import { countTo, echo } from '../../../test/support/rpc-methods.ts';
import type { Caller } from '../access.ts';
import { createDialer } from '../dialer.ts';
import { createRpcRegistry } from '../registry.ts';
import type { RpcChannel } from '../rpc.ts';
import { createRpcService, dialRpc, incarnationDigest, type LinkAnswer, type LinkIdentity } from './socket-rpc.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

function identity(over: Partial<LinkIdentity> = {}): LinkIdentity {
  return { clusterId: 'c1', nodeId: 1, incarnation: 'i1', ...over };
}

async function startServer(
  self: LinkIdentity,
  port = 0,
): Promise<{ port: number; peers: Caller[]; asked: LinkIdentity[]; stop: () => void }> {
  const registry = createRpcRegistry();
  const asked: LinkIdentity[] = [];
  const peers: Caller[] = [];
  registry.handle(echo, (text, context, done) => {
    peers.push(context.caller);
    done(undefined, text);
  });
  registry.handleStream(countTo, (limit, context) => {
    let next = 0;
    const pump = (): void => {
      while (next < limit) if (!context.send(next++)) return;
      context.end();
    };
    context.onDrain(pump);
    pump();
    return { onMessage() {}, onClose() {} };
  });
  const identify = (peer: LinkIdentity): Caller => {
    asked.push(peer);
    return { kind: 'node', nodeId: peer.nodeId };
  };
  const service = createRpcService({ identity: () => self, registry, clock: nodeClock(), identify });
  const listening = await openFramePort({ clock: nodeClock(), host: '127.0.0.1', port, services: [service] });
  const stop = (): void => {
    service.close();
    listening.close();
  };
  cleanups.push(stop);
  return { port: listening.port, peers, asked, stop };
}

function startDialer(
  port: number,
  self: LinkIdentity,
  verify: (answer: LinkAnswer) => ServiceError | undefined = () => undefined,
) {
  const dialer = createDialer({
    localNodeId: self.nodeId,
    connect: (target) => dialRpc(target, self, nodeClock(), verify),
    registry: createRpcRegistry(),
    resolveAddress: () => `127.0.0.1:${port}`,
    clock: nodeClock(),
    random: nodeRandom(),
    options: { backoffMinMs: 10, backoffMaxMs: 50 },
  });
  cleanups.push(() => dialer.close());
  return dialer;
}

function ask(channel: RpcChannel, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    channel.call(echo, text, { timeoutMs: 5_000 }, (error, reply) =>
      error === undefined ? resolve(reply ?? '') : reject(error),
    );
  });
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: ServiceError) => error.code,
  );
}

test('calls and streams work over sockets, and the handler knows its peer', async () => {
  const server = await startServer(identity({ nodeId: 2 }));
  const dialer = startDialer(server.port, identity());
  const texts = Array.from({ length: 500 }, (_, i) => `t${i}`);
  expect(await Promise.all(texts.map((text) => ask(dialer.channel(2), text)))).toEqual(texts);
  expect(server.peers.every((caller) => caller.kind === 'node' && caller.nodeId === 1)).toBe(true);
  const got: number[] = [];
  await new Promise<void>((resolve) => {
    dialer.channel(2).openStream(
      countTo,
      20_000,
      (n) => got.push(n),
      () => resolve(),
    );
  });
  expect(got.length).toBe(20_000);
  expect(got.every((n, i) => n === i)).toBe(true);
});

test.each([
  { name: 'the calling end', calling: '0.1', answering: '0.2' },
  { name: 'the answering end', calling: '0.2', answering: '0.1' },
])('$name is refused if it cannot write the version in force at the other', async ({ calling, answering }) => {
  const versions = (release: string) => ({ builds: rangeUpTo(release), inForce: versionOf(release) ?? 0 });
  const server = await startServer(identity({ nodeId: 2, versions: versions(answering) }));
  const dialer = startDialer(server.port, identity({ versions: versions(calling) }));
  expect(await codeOf(ask(dialer.channel(2), 'x'))).toBe('VERSION_REFUSED');
  expect(server.peers).toEqual([]);
});

test('builds of two versions call each other while the earlier one is in force', async () => {
  const inForce = FIRST_VERSION;
  const server = await startServer(identity({ nodeId: 2, versions: { builds: rangeUpTo('0.2'), inForce } }));
  const dialer = startDialer(server.port, identity({ versions: { builds: rangeUpTo('0.1'), inForce } }));
  expect(await ask(dialer.channel(2), 'x')).toBe('x');
});

test('another cluster is refused as WRONG_CLUSTER', async () => {
  const server = await startServer(identity({ nodeId: 2, clusterId: 'c2' }));
  expect(await codeOf(ask(startDialer(server.port, identity()).channel(2), 'x'))).toBe('WRONG_CLUSTER');
});

test('an address that belongs to another node now gets no calls, and nobody takes that for a refusal', async () => {
  const server = await startServer(identity({ nodeId: 5 }));
  expect(await codeOf(ask(startDialer(server.port, identity()).channel(2), 'x'))).toBe('UNAVAILABLE');
  expect(server.peers).toEqual([]);
});

test('a node with other data under the id that is looked for gets no calls, and nobody takes that for a refusal (G1)', async () => {
  const server = await startServer(identity({ nodeId: 2, incarnation: 'wiped' }));
  const known = ({ nodeId, digest, wanted }: LinkAnswer) =>
    nodeId === 2 && wanted && digest === incarnationDigest('i2')
      ? undefined
      : new ServiceError('NODE_CONFLICT', 'known as i2');
  expect(await codeOf(ask(startDialer(server.port, identity(), known).channel(2), 'x'))).toBe('UNAVAILABLE');
  expect(server.peers).toEqual([]);
  const right = await startServer(identity({ nodeId: 2, incarnation: 'i2' }));
  expect(await codeOf(ask(startDialer(right.port, identity(), known).channel(2), 'x'))).toBe('ok');
});

test('a node that has not joined may ask for nothing but joining', async () => {
  const server = await startServer(identity({ nodeId: 2 }));
  const joining = startDialer(server.port, identity({ nodeId: 0, clusterId: '' }));
  expect(await codeOf(ask(joining.channelTo(`127.0.0.1:${server.port}`), 'x'))).toBe('UNIMPLEMENTED');
});

test('whoever names no cluster is nobody in it, whatever id it claims (G2)', async () => {
  const server = await startServer(identity({ nodeId: 2 }));
  const claiming = startDialer(server.port, identity({ nodeId: 7, clusterId: '' }));
  expect(await codeOf(ask(claiming.channelTo(`127.0.0.1:${server.port}`), 'x'))).toBe('UNIMPLEMENTED');
  expect(server.asked).toEqual([]);
});

test('nobody listening is UNAVAILABLE, and a server that comes up later is found', async () => {
  const first = await startServer(identity({ nodeId: 2 }));
  const channel = startDialer(first.port, identity()).channel(2);
  expect(await ask(channel, 'a')).toBe('a');
  first.stop();
  await expect.poll(() => codeOf(ask(channel, 'b'))).toBe('UNAVAILABLE');
  await startServer(identity({ nodeId: 2 }), first.port);
  await expect.poll(() => codeOf(ask(channel, 'c'))).toBe('ok');
});
