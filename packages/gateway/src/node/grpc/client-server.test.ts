import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { credentials, type ServiceError as GrpcError, Metadata } from '@grpc/grpc-js';
import { dialFrames, type FrameStream, nodeClock, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import type { ClusterView, Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import * as etcd from '@remora/protocol/etcd';
import {
  EtcdLockClient,
  KVClient,
  MaintenanceClient,
  RemoraLockClient,
  WatchClient,
} from '@remora/protocol/grpc-clients';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ALONE_NODE } from '../../../test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../../test/support/no-authentication.ts';
import type { Backend, BackendDone, RequestOptions, WatchControl, WatchListener, WatchOptions } from '../../backend.ts';
import { etcdApi } from '../../etcd/etcd-api.ts';
import { CLIENT_SERVER_LIMITS, ClientServer, ListenError } from './client-server.ts';
import { etcdServices } from './etcd-services.ts';
import { lockService } from './lock-services.ts';

/** Keeps what it was asked, to be answered by the test. */
class HeldBackend implements Backend {
  readonly nodeId = 3;
  readonly commands: {
    command: Command;
    options: RequestOptions;
    done: BackendDone<CommandResult>;
    gaveUp: boolean;
  }[] = [];
  readonly queries: { query: Query; done: BackendDone<QueryResult> }[] = [];
  onCommand: () => void = () => {};

  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const held = { command, options, done, gaveUp: false };
    this.commands.push(held);
    this.onCommand();
    return () => {
      held.gaveUp = true;
      this.onCommand();
    };
  }
  query(query: Query, _options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    if (query.type !== 'sessions') throw new ServiceError('UNAVAILABLE', 'not in this test');
    this.queries.push({ query, done });
    this.onCommand();
    return () => {};
  }
  watch(_options: WatchOptions, listener: WatchListener): WatchControl {
    listener.onEnd(new ServiceError('UNAVAILABLE', 'not in this test'), 0);
    return { cancel() {}, progress() {}, pause() {}, resume() {} };
  }
  watchLocks(): never {
    throw new ServiceError('UNAVAILABLE', 'not in this test');
  }
  view(): ClusterView {
    return { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  }
  check(): void {}

  rangeTimeMs(): undefined {
    return undefined;
  }
  /** The next command, or the next time that one is given up. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.onCommand = resolve;
    });
  }
}

describe('the server for clients', () => {
  let backend: HeldBackend;
  let server: ClientServer;
  let port: number;
  let busy: number;
  let malformed: number;
  let kv: KVClient;
  let locks: InstanceType<typeof RemoraLockClient>;

  beforeEach(async () => {
    backend = new HeldBackend();
    busy = 0;
    malformed = 0;
    const onBusy = (): void => {
      busy++;
    };
    server = new ClientServer({
      identification: NO_AUTHENTICATION,
      clock: nodeClock(),
      logger: silentLogger,
      limits: { ...CLIENT_SERVER_LIMITS, unaryCallsMax: 2 },
      onBusy,
      onMalformed: () => {
        malformed++;
      },
    });
    const random = new SeededRandom(1);
    const deps = { backend, clock: nodeClock(), random, scheme: 'http', node: ALONE_NODE } as const;
    server.add(
      ...etcdServices(
        etcdApi(deps, () => server.guard.abandoned),
        server.guard,
      ),
    );
    server.add(lockService({ backend, random }, server.guard));
    port = await server.start('127.0.0.1', 0);
    kv = new KVClient(`127.0.0.1:${port}`, credentials.createInsecure());
    locks = new RemoraLockClient(`127.0.0.1:${port}`, credentials.createInsecure());
  });
  afterEach(async () => {
    kv.close();
    locks.close();
    await server.stop(50);
  });

  const put = (request: etcd.DeepPartial<etcd.PutRequest> = {}, timeoutMs?: number) =>
    new Promise<etcd.PutResponse | GrpcError>((resolve) => {
      const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
      kv.put(
        etcd.PutRequest.create({ key: Buffer.from('k'), ...request }),
        new Metadata(),
        options,
        (error, response) => resolve(error ?? response),
      );
    });

  it.each(['x', '漢', '\u{1f512}', '\ud800'])(
    'answers with the beginning of a message of any length, of %s',
    async (char) => {
      const answered = put({}, 4_000);
      await backend.next();
      backend.commands[0]?.done(new ServiceError('INVALID_ARGUMENT', `wrong: ${char.repeat(300_000)}`), undefined);
      const answer = await answered;
      expect(answer).toMatchObject({ code: 3, details: expect.stringMatching(/^wrong: .*…$/u) });
    },
  );

  it('counts what is refused for what it says', async () => {
    await put({ key: Buffer.alloc(0) });
    await put({ value: Buffer.from('v'), ignoreValue: true });
    expect(malformed).toBe(2);
  });

  it('says clearly that a port is taken', async () => {
    const second = new ClientServer({ identification: NO_AUTHENTICATION, clock: nodeClock(), logger: silentLogger });
    await expect(second.start('127.0.0.1', port)).rejects.toThrow(ListenError);
    await expect(second.start('127.0.0.1', port)).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port} for clients: the port is taken by another process`,
    );
  });

  it('takes streams of frames at the same port, which go on while it stops', async () => {
    const frames = new ClientServer({ identification: NO_AUTHENTICATION, clock: nodeClock(), logger: silentLogger });
    const heard: string[] = [];
    const streams: FrameStream[] = [];
    frames.addFrames({
      name: 'test',
      open(_hello, stream) {
        stream.sayHello({});
        stream.handle({ onFrame: (frame) => heard.push(String(frame)), onDrain() {}, onEnd() {} });
        streams.push(stream);
      },
    });
    const address = `127.0.0.1:${await frames.start('127.0.0.1', 0)}`;
    const stream = dialFrames(
      address,
      { service: 'test' },
      { clock: nodeClock() },
      { onHello() {}, onFrame() {}, onDrain() {}, onEnd() {} },
    );
    await expect.poll(() => streams.length).toBe(1);
    await frames.stop(50);
    stream.send(Buffer.from('still here'));
    await expect.poll(() => heard).toEqual(['still here']);
    stream.destroy();
  });

  it('tells who speaks HTTP/1.1 to it where that is spoken', async () => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write('PUT /v1/locks/default/a HTTP/1.1\r\nhost: a\r\n\r\n'),
    );
    const said = await text(socket);
    expect(said).toMatch(/^HTTP\/1.1 400 .*--http-listen/s);
  });

  it('counts incomplete messages of gRPC by address, and closes the connection whose messages move least', async () => {
    const input = { bytesPerAddressMax: 80_000 };
    const tight = new ClientServer({
      identification: NO_AUTHENTICATION,
      clock: nodeClock(),
      logger: silentLogger,
      limits: { ...CLIENT_SERVER_LIMITS, input },
    });
    const deps = {
      backend,
      clock: nodeClock(),
      random: new SeededRandom(1),
      scheme: 'http',
      node: ALONE_NODE,
    } as const;
    const api = etcdApi(deps, () => tight.guard.abandoned);
    tight.add(...etcdServices(api, tight.guard));
    const address = `http://127.0.0.1:${await tight.start('127.0.0.1', 0)}`;
    const begin = (): ClientHttp2Session => {
      const session = connectHttp2(address);
      session.on('error', () => undefined);
      const headers = { ':method': 'POST', ':path': '/etcdserverpb.KV/Put', 'content-type': 'application/grpc' };
      const request = session.request(headers);
      request.on('error', () => undefined);
      const part = Buffer.alloc(50_005);
      part.writeUInt32BE(1_000_000, 1);
      request.write(part);
      return session;
    };
    const first = begin();
    await expect.poll(() => tight.held?.input.unfinishedBytes).toBeGreaterThan(50_000);
    const second = begin();
    await expect.poll(() => first.closed || first.destroyed).toBe(true);
    expect(tight.held?.input.closed.address_bytes).toBe(1);
    expect(second.destroyed).toBe(false);
    second.destroy();
    await expect.poll(() => tight.held?.input.unfinishedBytes).toBe(0);
    await tight.stop(50);
  });

  it('answers with the header that etcd clients expect', async () => {
    const reply = put();
    await backend.next();
    backend.commands[0]?.done(undefined, { result: { type: 'put', prev: undefined }, revision: 9, raftTerm: 4 });
    const response = (await reply) as etcd.PutResponse;
    expect(response.header).toMatchObject({ memberId: 3, revision: 9, raftTerm: 4 });
    expect(response.header?.clusterId).not.toBe(0n);
  });

  it('sends etcd’s status and text, and Remora’s code in the trailers', async () => {
    const reply = put();
    await backend.next();
    backend.commands[0]?.done(new ServiceError('UNKNOWN_OUTCOME', 'the answer — lost'), undefined);
    const error = (await reply) as GrpcError;
    expect(error).toMatchObject({ code: 14, details: 'etcdserver: request timed out' });
    expect(error.metadata.get('remora-code')).toEqual(['UNKNOWN_OUTCOME']);
    expect(decodeURI(String(error.metadata.get('remora-message')[0]))).toBe('the answer — lost');
  });

  it('passes on how long a client that was refused is to wait', async () => {
    const reply = put();
    await backend.next();
    const details = { retryAfterMs: 100 };
    backend.commands[0]?.done(new ServiceError('RESOURCE_EXHAUSTED', 'too many', { details }), undefined);
    const error = (await reply) as GrpcError;
    expect(error).toMatchObject({ code: 8, details: 'etcdserver: too many requests' });
    expect(error.metadata.get('remora-code')).toEqual(['RESOURCE_EXHAUSTED']);
    expect(error.metadata.get('grpc-retry-pushback-ms')).toEqual(['100']);
  });

  it('refuses a request that is too large before it reaches the backend', async () => {
    const error = (await put({ value: Buffer.alloc(1.5 * 1024 * 1024) })) as GrpcError;
    expect(error).toMatchObject({ code: 3, details: 'etcdserver: request is too large' });
    expect(backend.commands).toEqual([]);
  });

  it('gives a request the client’s deadline, and a limit where it has none', async () => {
    void put({}, 3_000);
    await backend.next();
    void put();
    await backend.next();
    const [withDeadline, without] = backend.commands.map(({ options }) => options.timeoutMs);
    expect(withDeadline).toBeGreaterThan(2_000);
    expect(withDeadline).toBeLessThanOrEqual(3_000);
    expect(without).toBe(CLIENT_SERVER_LIMITS.timeouts.defaultMs);
  });

  it('gives up when the client does, and refuses calls above its limit', async () => {
    const first = put({}, 300);
    await backend.next();
    void put();
    await backend.next();
    expect(await put()).toMatchObject({ code: 8, details: 'etcdserver: too many requests' });
    expect(busy).toBe(1);
    expect(server.guard.load.unaryCalls).toBe(2);
    const gaveUp = backend.next();
    expect(await first).toMatchObject({ code: 4 });
    await gaveUp;
    expect(backend.commands[0]?.gaveUp).toBe(true);
    expect(server.guard.load.unaryCalls).toBe(1);
  });

  it('leaves room for who ends waits when etcd’s locks are waited for', async () => {
    const etcdLocks = new EtcdLockClient(`127.0.0.1:${port}`, credentials.createInsecure());
    const lock = () =>
      new Promise<unknown>((resolve) => {
        etcdLocks.lock({ name: Buffer.from('l'), lease: 5n }, (error, response) => resolve(error ?? response));
      });
    void lock();
    await backend.next();
    expect(await lock()).toMatchObject({ code: 8, details: 'etcdserver: too many requests' });
    void put();
    await backend.next();
    expect([busy, server.guard.load.unaryCalls]).toEqual([1, 2]);
    etcdLocks.close();
  });

  it('ends streams and answers open calls when it stops', async () => {
    const watches = new WatchClient(`127.0.0.1:${port}`, credentials.createInsecure());
    const watch = watches.watch();
    const ended = new Promise<GrpcError>((resolve) => watch.on('error', resolve as (error: Error) => void));
    watch.write({ requestUnion: { $case: 'createRequest', value: etcd.WatchCreateRequest.create() } });
    expect(await ended).toMatchObject({ code: 14, details: 'etcdserver: no leader' });
    const idle = watches.watch();
    const idleEnded = new Promise<GrpcError>((resolve) => idle.on('error', resolve as (error: Error) => void));
    idle.write({ requestUnion: undefined });
    const reply = put();
    await backend.next();
    await server.stop(50);
    expect(await idleEnded).toMatchObject({ code: 14 });
    expect(await reply).toMatchObject({ code: 14, details: 'etcdserver: request timed out' });
    expect(server.guard.load).toEqual({ unaryCalls: 0, streams: 0 });
    watches.close();
  });

  it('says when it has stopped, also where no call was open', async () => {
    expect(server.guard.abandoned).toBe(false);
    await server.stop(3_600_000);
    expect(server.guard.abandoned).toBe(true);
  });

  it('refuses what Remora does not have, and says what to use', async () => {
    const maintenance = new MaintenanceClient(`127.0.0.1:${port}`, credentials.createInsecure());
    const request = { action: 1, version: '3.5.0' } as const;
    const error = await new Promise<GrpcError | null>((resolve) => maintenance.downgrade(request, resolve));
    expect(error).toMatchObject({ code: 12, details: expect.stringContaining('install the older version') });
    maintenance.close();
  });

  const session = { id: 7n, incarnation: 5n };
  const lock = { namespace: '', name: Buffer.from('orders/42') };
  const owner = { session, token: 'a-guid' };
  const terms = { as: undefined, keepData: false, delayMs: 0 };
  const blank = { attempt: 1, depthMax: 0, data: Buffer.alloc(0), requestId: '', ...terms };

  it('acquires a lock, and ends the wait a little before the call', async () => {
    const request = { lock, owner, wait: true, timeoutMs: 0n, ...blank };
    const reply = new Promise<unknown>((resolve) => {
      locks.acquire(request, new Metadata(), { deadline: Date.now() + 10_000 }, (error, response) =>
        resolve(error ?? response),
      );
    });
    await backend.next();
    const held = backend.commands[0];
    expect(held?.command).toMatchObject({
      type: 'lock',
      command: { type: 'acquire', lock: { namespace: 'default' }, wait: true, attempt: 1, depthMax: 1 },
    });
    expect(held?.options.waitMs).toBeGreaterThan(8_000);
    expect(held?.options.waitMs).toBeLessThanOrEqual(9_500);
    const grant = { version: 12, depth: 1, lockTimeMs: 1_700_000_000_000, keptData: Buffer.from('left') };
    const granted = { type: 'granted', ...grant } as const;
    held?.done(undefined, { result: { type: 'lock', result: granted }, revision: 12, raftTerm: 1 });
    expect(await reply).toEqual({ outcome: { $case: 'granted', value: grant } });
  });

  it('shows a refusal by the lock layer with its code', async () => {
    const release = { lock, owner, all: false, attempt: 1, requestId: 'r1' };
    const reply = new Promise<GrpcError | null>((resolve) => locks.release(release, resolve));
    await backend.next();
    expect(backend.commands[0]?.options.requestId).toBe('r1');
    const refused = { type: 'refused', code: 'LOCK_NOT_HELD', message: 'the lock is not held' } as const;
    backend.commands[0]?.done(undefined, { result: { type: 'lock', result: refused }, revision: 12, raftTerm: 1 });
    const error = await reply;
    expect(error).toMatchObject({ code: 9, details: 'the lock is not held' });
    expect(error?.metadata.get('remora-code')).toEqual(['LOCK_NOT_HELD']);
  });

  it('refuses a lock request without an owner or a name before it reaches the backend', async () => {
    const acquire = { lock, owner: undefined, wait: false, timeoutMs: 0n, ...blank };
    expect(await new Promise((resolve) => locks.acquire(acquire, resolve))).toMatchObject({ code: 3 });
    const nameless = { ...acquire, owner, lock: { namespace: '', name: Buffer.alloc(0) } };
    expect(await new Promise((resolve) => locks.acquire(nameless, resolve))).toMatchObject({ code: 3 });
    expect(backend.commands).toEqual([]);
  });

  it('lists, shows and changes sessions', async () => {
    const condition = { heartbeatMs: 500, serverMisses: 4, holderMisses: 3 };
    const info = { id: 7n, incarnation: 5, ttlMs: 2_000, remainingMs: 1_500.5, attributes: { host: 'h' }, condition };
    const told = { ...info, session };
    const listed = new Promise<unknown>((resolve) =>
      locks.listSessions({ after: 3n, limit: 0, attributes: { host: 'h' } }, (error, reply) => resolve(error ?? reply)),
    );
    await backend.next();
    const [list] = backend.queries;
    expect(list?.query).toEqual({ type: 'sessions', after: 3n, limit: 100, attributes: { host: 'h' } });
    const page = { type: 'sessions', sessions: [info], next: 7n } as const;
    list?.done(undefined, { result: page, revision: 5, raftTerm: 1 });
    expect(await listed).toMatchObject({
      sessions: [{ session, ttlMs: 2_000, remainingMs: 1_500.5, condition }],
      next: 7n,
    });
    const changed = new Promise<unknown>((resolve) =>
      locks.changeSession({ session, number: 2, ttlMs: 0n, condition, requestId: 'r' }, (error, reply) =>
        resolve(error ?? reply),
      ),
    );
    await backend.next();
    expect(backend.commands[0]?.command).toEqual({
      ...{ type: 'leaseChange', id: 7n, incarnation: 5, number: 2, ttlMs: 2_000, condition },
    });
    backend.commands[0]?.done(undefined, { result: { type: 'leaseChange', ttlMs: 2_000 }, revision: 5, raftTerm: 1 });
    expect([await changed, told.session]).toEqual([{ ttlMs: 2_000 }, session]);
  });

  it('opens and closes a session; closing what is over succeeds', async () => {
    const open = { ttlMs: 10_000n, attributes: { host: 'h' }, requestId: '', condition: undefined };
    const opened = new Promise<unknown>((resolve) =>
      locks.openSession(open, (error, reply) => resolve(error ?? reply)),
    );
    await backend.next();
    expect(backend.commands[0]?.command).toMatchObject({
      type: 'leaseGrant',
      ttlMs: 10_000,
      attributes: { host: 'h' },
    });
    const grant = { type: 'leaseGrant', id: 7n, incarnation: 5, ttlMs: 10_000 } as const;
    backend.commands[0]?.done(undefined, { result: grant, revision: 5, raftTerm: 1 });
    expect(await opened).toEqual({ session, ttlMs: 10_000 });

    const closed = new Promise<unknown>((resolve) =>
      locks.closeSession({ session, requestId: '' }, (error, reply) => resolve(error ?? reply)),
    );
    await backend.next();
    expect(backend.commands[1]?.command).toEqual({ type: 'leaseRevoke', id: 7n, incarnation: 5 });
    backend.commands[1]?.done(new ServiceError('LEASE_NOT_FOUND', 'gone'), undefined);
    expect(await closed).toEqual({});
  });
});
