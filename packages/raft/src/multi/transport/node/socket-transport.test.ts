import { connect } from 'node:net';
import {
  dialFrames,
  FIRST_VERSION,
  type FramePort,
  type Hello,
  nodeClock,
  openFramePort,
  rangeUpTo,
  SeededRandom,
  type StreamEnd,
  sleep,
  versionOf,
} from '@remora/base';
import { afterEach, describe, expect, test } from 'vitest';
import {
  heartbeat,
  Recorder,
  transportContract,
  until,
} from '../../../../test/support/transport/transport-contract.ts';
import type { NodeId, Transport, TransportHandlers } from '../../ports.ts';
import { encodeFrame } from '../codec.ts';
import { FRAMES_SERVICE, helloOf, type PeerIdentity, type PeerRefusal } from './handshake.ts';
import { createSocketTransport, type SocketTransportConfig } from './socket-transport.ts';

const clock = nodeClock();

/** Nodes on loopback. A node that is started again takes its old port. */
class SocketBed {
  readonly ports = new Map<NodeId, number>();
  readonly #running = new Map<NodeId, { readonly transport: Transport; readonly port: FramePort }>();

  async start(
    node: NodeId,
    handlers: TransportHandlers,
    config: Partial<SocketTransportConfig> = {},
  ): Promise<Transport> {
    const { transport, services } = createSocketTransport({
      local: identity(node),
      resolveAddress: (to) => (this.ports.has(to) ? `127.0.0.1:${this.ports.get(to)}` : undefined),
      clock,
      random: new SeededRandom(node),
      verifyPeer: () => undefined,
      ...config,
    });
    const wanted = { host: '127.0.0.1', port: this.ports.get(node) ?? 0 };
    const port = await openFramePort({ clock, ...wanted, services });
    this.ports.set(node, port.port);
    transport.start(handlers);
    this.#running.set(node, { transport, port });
    return transport;
  }

  async stop(node: NodeId): Promise<void> {
    const running = this.#running.get(node);
    this.#running.delete(node);
    await running?.transport.stop();
    running?.port.close();
  }

  /** The node's port and its incoming streams are gone, as behind a proxy that ends; the node runs on. */
  closePort(node: NodeId): void {
    this.#running.get(node)?.port.close();
  }

  async close(): Promise<void> {
    for (const node of [...this.#running.keys()]) await this.stop(node);
  }
}

function identity(nodeId: NodeId, change: Partial<PeerIdentity> = {}): PeerIdentity {
  return { clusterId: 'test cluster', nodeId, incarnation: `first-${nodeId}`, ...change };
}

transportContract('sockets on loopback', async () => new SocketBed());

describe('socket transport', () => {
  const bed = new SocketBed();
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
    expect(clock.monotonicMs() - startedMs).toBeLessThan(10_000); // 300 ms, and slack for a busy machine
  });

  test.each<{ name: string; local: Partial<PeerIdentity>; verify?: PeerRefusal; code: string }>([
    { name: 'another cluster', local: { clusterId: 'other' }, code: 'WRONG_CLUSTER' },
    {
      name: 'a wiped node',
      local: { incarnation: 'second' },
      verify: { code: 'NODE_CONFLICT', message: 'it was wiped' },
      code: 'NODE_CONFLICT',
    },
    {
      name: 'a node that is not known',
      local: { incarnation: 'second' },
      verify: { code: 'INVALID_ARGUMENT', message: 'who is it?' },
      code: 'INVALID_ARGUMENT',
    },
  ])('$name is refused, nothing of it is taken, and it is told', async ({ local, verify, code }) => {
    const refusals: { node: NodeId; refusal: PeerRefusal }[] = [];
    const onRefused = (node: NodeId, refusal: PeerRefusal) => refusals.push({ node, refusal });
    const two = new Recorder();
    await bed.start(2, two, { verifyPeer: (peer) => (peer.incarnation === 'second' ? verify : undefined) });
    const a = await bed.start(1, new Recorder(), { local: identity(1, local), onRefused });
    await until('the refusal is reported', () => {
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

  test('a build that cannot write the version in force is refused, and told what to install', async () => {
    const refusals: PeerRefusal[] = [];
    const two = new Recorder();
    const versions = { builds: rangeUpTo('0.2'), inForce: versionOf('0.2') ?? 0 };
    await bed.start(2, two, { local: identity(2, { versions }) });
    const old = identity(1, { versions: { builds: rangeUpTo('0.1'), inForce: FIRST_VERSION } });
    const a = await bed.start(1, new Recorder(), { local: old, onRefused: (_node, refusal) => refusals.push(refusal) });
    await until('the refusal is reported', () => {
      a.send(2, [heartbeat(1)]);
      return refusals.length > 0;
    });
    expect(refusals[0]).toMatchObject({
      code: 'VERSION_REFUSED',
      message: expect.stringContaining('install Remora 0.2'),
    });
    expect(two.messages).toHaveLength(0);
    await bed.stop(1);
    const again = await bed.start(1, new Recorder(), {
      local: identity(1, { versions: { builds: rangeUpTo('0.2') } }),
    });
    await until('the new build is accepted', () => {
      again.send(2, [heartbeat(2)]);
      return two.messages.length > 0;
    });
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

  test('a node that has the address that another had is refused by nobody, and reaches that one where it is now (K3)', async () => {
    const refusals: PeerRefusal[] = [];
    const onRefused = (_node: NodeId, refusal: PeerRefusal) => void refusals.push(refusal);
    const one = new Recorder();
    const a = await bed.start(1, one, { onRefused });
    bed.ports.set(2, bed.ports.get(1) ?? 0);
    await until('the stream to itself has ended', () => {
      a.send(2, [heartbeat(1)]);
      return one.unreachable.length > 0;
    });
    bed.ports.delete(2);
    const two = new Recorder();
    await bed.start(2, two);
    await until('the other one gets its frame', () => {
      a.send(2, [heartbeat(2)]);
      return two.messages.length > 0;
    });
    expect([refusals, one.messages]).toEqual([[], []]);
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

  test('a malformed frame ends its stream with a clear reason, and the next stream works', async () => {
    const two = new Recorder();
    await bed.start(2, two);
    const open = (hello: Hello) => {
      const ends: StreamEnd[] = [];
      const stream = dialFrames(
        `127.0.0.1:${bed.ports.get(2)}`,
        hello,
        { clock },
        {
          onHello: () => undefined,
          onFrame: () => undefined,
          onDrain: () => undefined,
          onEnd: (end) => ends.push(end),
        },
      );
      return { stream, ends };
    };
    const hello = helloOf(identity(1), FRAMES_SERVICE);
    const bad = open(hello);
    bad.stream.send(Buffer.from('garbage'));
    await until('it is told what was wrong', () => bad.ends.length === 1);
    expect(bad.ends[0]?.message).toContain('malformed frame');
    const nameless = open({ service: FRAMES_SERVICE });
    await until('it is told to name itself', () => nameless.ends.length === 1);
    expect(nameless.ends[0]?.message).toContain('does not name its node');
    const good = open(hello);
    good.stream.send(encodeFrame([heartbeat(4)]));
    await until('the good frame is there', () => two.messages.length === 1);
    good.stream.destroy();
  });

  describe('a peer whose process has ended (X2)', () => {
    test('is reported once to the nodes that had heard it', async () => {
      const [one, two] = [new Recorder(), new Recorder()];
      const a = await bed.start(1, one);
      const b = await bed.start(2, two);
      a.send(2, [heartbeat(1)]);
      b.send(1, [heartbeat(1)]);
      await until('both streams are open', () => one.messages.length > 0 && two.messages.length > 0);
      await bed.stop(2);
      await until('it is reported', () => one.gone.length > 0);
      a.send(2, [heartbeat(2)]);
      await sleep(clock, 300); // further attempts are refused too, and say nothing new
      expect([one.gone, one.messages.length]).toEqual([[2], 1]);
    });

    test('is not reported while its stream to this node lives', async () => {
      const [one, two] = [new Recorder(), new Recorder()];
      const a = await bed.start(1, one);
      const b = await bed.start(2, two);
      a.send(2, [heartbeat(1)]);
      b.send(1, [heartbeat(1)]);
      await until('both streams are open', () => one.messages.length > 0 && two.messages.length > 0);
      bed.closePort(2);
      await until('the stream to it has ended', () => one.unreachable.length > 0);
      await sleep(clock, 300);
      b.send(1, [heartbeat(2)]);
      await until('it still sends', () => one.messages.length === 2);
      expect(one.gone).toEqual([]);
    });

    test('is not reported where no process ever answered', async () => {
      const one = new Recorder();
      const a = await bed.start(1, one);
      await bed.start(2, new Recorder());
      await bed.stop(2);
      a.send(2, [heartbeat(1)]);
      await until('it cannot be reached', () => one.unreachable.length > 0);
      expect(one.gone).toEqual([]);
    });
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
