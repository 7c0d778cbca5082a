import { connect } from 'node:net';
import { Client, credentials, Metadata, Server, ServerCredentials, type StatusObject } from '@grpc/grpc-js';
import { nodeClock, SeededRandom } from '@remora/base';
import { afterEach, describe, expect, test } from 'vitest';
import type { NodeId, Transport, TransportHandlers } from '../../ports.ts';
import { encodeFrame } from '../codec.ts';
import { heartbeat, Recorder, transportContract, until } from '../test-contract.ts';
import { grpcServerOptions } from './grpc-options.ts';
import { createGrpcTransport, type GrpcTransportConfig } from './grpc-transport.ts';
import { identityMetadata, type PeerIdentity, type PeerRefusal, RAFT_SERVICE } from './handshake.ts';

const clock = nodeClock();

/** Nodes on loopback. A node that is started again takes its old port. */
class GrpcBed {
  readonly ports = new Map<NodeId, number>();
  readonly #running = new Map<NodeId, { readonly transport: Transport; readonly server: Server }>();

  async start(
    node: NodeId,
    handlers: TransportHandlers,
    config: Partial<GrpcTransportConfig> = {},
  ): Promise<Transport> {
    const { transport, service } = createGrpcTransport({
      local: identity(node),
      resolveAddress: (to) => (this.ports.has(to) ? `127.0.0.1:${this.ports.get(to)}` : undefined),
      clock,
      random: new SeededRandom(node),
      verifyPeer: () => undefined,
      ...config,
    });
    const server = new Server(grpcServerOptions());
    server.addService(service.definition, service.implementation);
    this.ports.set(node, await bind(server, this.ports.get(node) ?? 0));
    transport.start(handlers);
    this.#running.set(node, { transport, server });
    return transport;
  }

  async stop(node: NodeId): Promise<void> {
    const running = this.#running.get(node);
    this.#running.delete(node);
    await running?.transport.stop();
    running?.server.forceShutdown();
  }

  async close(): Promise<void> {
    for (const node of [...this.#running.keys()]) await this.stop(node);
  }
}

function identity(nodeId: NodeId, change: Partial<PeerIdentity> = {}): PeerIdentity {
  return { clusterId: 'test cluster', nodeId, incarnation: `first-${nodeId}`, ...change };
}

function bind(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
}

transportContract('gRPC on loopback', async () => new GrpcBed());

describe('gRPC transport', () => {
  const bed = new GrpcBed();
  afterEach(() => bed.close());

  test('a restarted peer is reached soon, without waiting for a long back-off', async () => {
    const a = await bed.start(1, new Recorder());
    await bed.start(2, new Recorder());
    a.send(2, [heartbeat(0)]);
    await bed.stop(2);
    const downUntil = clock.monotonicMs() + 1500;
    await until('it was down for a while', () => {
      a.send(2, [heartbeat(1)]);
      return clock.monotonicMs() > downUntil;
    });
    const back = new Recorder();
    await bed.start(2, back);
    const startedMs = clock.monotonicMs();
    await until('it is reached', () => {
      a.send(2, [heartbeat(2)]);
      return back.messages.length > 0;
    });
    expect(clock.monotonicMs() - startedMs).toBeLessThan(1_000); // 300 ms, and slack for a busy machine
  });

  test.each<{ name: string; local: Partial<PeerIdentity>; verify?: string; code: string }>([
    { name: 'another cluster', local: { clusterId: 'other' }, code: 'WRONG_CLUSTER' },
    { name: 'a wiped node', local: { incarnation: 'second' }, verify: 'it was wiped', code: 'NODE_CONFLICT' },
  ])('$name is refused, nothing of it is taken, and it is told', async ({ local, verify, code }) => {
    const refusals: { node: NodeId; refusal: PeerRefusal }[] = [];
    const onRefused = (node: NodeId, refusal: PeerRefusal) => refusals.push({ node, refusal });
    const two = new Recorder();
    await bed.start(2, two, { verifyPeer: (peer) => (peer.incarnation === 'second' ? verify : undefined) });
    const a = await bed.start(1, new Recorder(), { local: identity(1, local), onRefused });
    await until('the refusal is told', () => {
      a.send(2, [heartbeat(1)]);
      return refusals.length > 0;
    });
    expect(refusals[0]).toMatchObject({ node: 2, refusal: { code } });
    await expect(a.sendSnapshot(2, SNAPSHOT, empty(), new AbortController().signal)).rejects.toThrow(
      refusals[0]?.refusal.message ?? '',
    );
    expect(two.messages).toHaveLength(0);
    expect(two.snapshots).toHaveLength(0);
  });

  test('nothing is sent to a node that answers under another id than the one dialled', async () => {
    const [two, three] = [new Recorder(), new Recorder()];
    const a = await bed.start(1, new Recorder(), { options: { refusedBackoffMs: 50 } });
    await bed.start(2, two);
    bed.ports.set(3, bed.ports.get(2) ?? 0);
    a.send(3, [heartbeat(1)]);
    a.send(2, [heartbeat(2)]);
    await until('the right one gets its frame', () => two.messages.length > 0);
    expect(two.sequence()).toEqual([2]);
    bed.ports.delete(3);
    await bed.start(3, three);
    await until('the address is asked for anew', () => {
      a.send(3, [heartbeat(3)]);
      return three.messages.length > 0;
    });
    expect(two.sequence()).toEqual([2]);
  });

  test('garbage on the port disturbs nobody', async () => {
    const two = new Recorder();
    const a = await bed.start(1, new Recorder());
    await bed.start(2, two);
    await new Promise<void>((resolve) => {
      const socket = connect(bed.ports.get(2) ?? 0, '127.0.0.1', () => socket.end(Buffer.alloc(4096, 0xa5)));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve());
      socket.resume();
    });
    a.send(2, [heartbeat(1)]);
    await until('frames still arrive', () => two.messages.length === 1);
  });

  test('a malformed frame ends its stream with a clear status, and the next stream works', async () => {
    const two = new Recorder();
    await bed.start(2, two);
    const client = new Client(`127.0.0.1:${bed.ports.get(2)}`, credentials.createInsecure());
    const open = (metadata: Metadata) => {
      const { path, requestSerialize, responseDeserialize } = RAFT_SERVICE.frames;
      const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
      const ended = new Promise<StatusObject>((resolve) => call.on('status', resolve));
      call.on('error', () => undefined).on('data', () => undefined);
      return { call, ended };
    };
    const bad = open(identityMetadata(identity(1)));
    bad.call.write(Buffer.from('garbage'));
    expect((await bad.ended).details).toContain('malformed frame');
    expect((await open(new Metadata()).ended).details).toContain('does not name its node');
    const good = open(identityMetadata(identity(1)));
    good.call.write(encodeFrame([heartbeat(4)]));
    await until('the good frame is there', () => two.messages.length === 1);
    good.call.cancel();
    client.close();
  });

  test('frames beyond the bound are dropped while a peer does not read, and the loss is reported', async () => {
    const one = new Recorder();
    const a = await bed.start(1, one, { options: { queueBytesMax: 100_000 } });
    // Dialling takes a loop turn at least, so all of these meet a stream that takes nothing yet.
    await bed.start(2, new Recorder());
    for (let i = 0; i < 5000; i++)
      a.send(
        2,
        Array.from({ length: 10 }, (_, n) => heartbeat(n)),
      );
    expect(one.unreachable).toEqual([2]);
  });
});

const SNAPSHOT = {
  groupId: 7,
  from: 11,
  to: 12,
  term: 3,
  meta: {
    index: 90,
    term: 2,
    conf: { voters: [], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false },
  },
};

async function* empty(): AsyncIterable<Uint8Array> {}
