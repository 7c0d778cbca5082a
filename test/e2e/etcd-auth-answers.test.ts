/**
 * Requests without a token, with one that is not valid, and of a user who may not make them: the status, the text, and
 * the message of a watch are those of a real etcd. `differs`: a known difference (docs/reference/etcd.md).
 */
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import * as pb from '@remora/protocol/etcd';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Method, whole } from './auth-table/doors.ts';
import { hasEtcd, RealEtcd } from './etcd-twins/real-etcd.ts';
import { Cluster } from './harness.ts';

const { AuthService, KVService, LeaseService, WatchService, MaintenanceService, ClusterService } = pb;
const b = (text: string): Buffer => Buffer.from(text);
const put = (key: string): pb.RequestOp =>
  pb.RequestOp.fromPartial({ request: { $case: 'requestPut', value: { key: b(key), value: b('v') } } });
const watch = (create: Parameters<typeof pb.WatchCreateRequest.fromPartial>[0]): pb.WatchRequest => ({
  requestUnion: { $case: 'createRequest', value: pb.WatchCreateRequest.fromPartial(create) },
});

const WHO = ['nobody', 'an empty token', 'a forged token', 'ada'] as const;
type Who = (typeof WHO)[number];
const WITHOUT_USER: readonly Who[] = ['nobody', 'an empty token', 'a forged token'];

interface Row {
  readonly name: string;
  /** What the answer of Remora has in it, to each caller. */
  readonly says?: Partial<Readonly<Record<Who, string>>>;
  /** Callers to whom etcd answers in another way. */
  readonly differs?: readonly Who[];
  readonly ask: (api: Api, token: string | undefined) => Promise<string>;
}

/** A row for a method. */
function row<Request, Response>(
  name: string,
  method: Method<Request, Response>,
  given: Partial<Request>,
  more: Pick<Row, 'says' | 'differs'> = {},
): Row {
  return { name, ...more, ask: (api, token) => api.ask(method, given, token) };
}

const DENIED = { ada: '7 etcdserver: permission denied' };

/** Ada may read and write from a to b. The lease 71 has the key b1. */
const ROWS: readonly Row[] = [
  row('get', KVService.range, { key: b('b1') }, { says: DENIED }),
  row('get what she may', KVService.range, { key: b('a1') }, { says: { ada: 'done' } }),
  row('put', KVService.put, { key: b('b1') }, { says: DENIED }),
  row('delete', KVService.deleteRange, { key: b('b1') }, { says: DENIED }),
  row('a transaction', KVService.txn, { success: [put('a1')], failure: [put('b1')] }, { says: DENIED }),
  row('an empty transaction', KVService.txn, {}, { says: { ada: 'done' }, differs: ['nobody'] }),
  row('a watch', WatchService.watch, watch({ key: b('b1') }), {
    says: {
      nobody: 'created canceled -1 rpc error: code = InvalidArgument desc = etcdserver: user name is empty',
      'a forged token': 'created canceled -1 rpc error: code = Unauthenticated desc = etcdserver: invalid auth token',
      ada: 'created canceled -1 rpc error: code = PermissionDenied desc = etcdserver: permission denied',
    },
  }),
  row('a watch with an id', WatchService.watch, watch({ key: b('b1'), watchId: 5n })),
  row('a watch of what she may', WatchService.watch, watch({ key: b('a1') }), { says: { ada: 'created  0' } }),
  row('put with a lease', KVService.put, { key: b('b2'), lease: 71n }, { says: DENIED }),
  row('grant a lease', LeaseService.leaseGrant, { TTL: 600n }, { differs: ['nobody'] }),
  row('revoke', LeaseService.leaseRevoke, { ID: 71n }, { says: DENIED }),
  row('revoke what is not there', LeaseService.leaseRevoke, { ID: 99n }, { differs: ['nobody'] }),
  row('time to live', LeaseService.leaseTimeToLive, { ID: 71n }, { says: { ada: 'done' }, differs: WITHOUT_USER }),
  row('time to live, with keys', LeaseService.leaseTimeToLive, { ID: 71n, keys: true }, { says: DENIED, differs: WHO }),
  row('keep alive', LeaseService.leaseKeepAlive, { ID: 71n }, { says: DENIED, differs: WHO }),
  row('list leases', LeaseService.leaseLeases, {}, { says: DENIED, differs: WHO }),
  row('status', MaintenanceService.status, {}, { says: { ada: 'done' }, differs: WITHOUT_USER }),
  row('alarms', MaintenanceService.alarm, {}, { says: { ada: 'done' }, differs: WITHOUT_USER }),
  row('members', ClusterService.memberList, {}, { says: { ada: 'done' }, differs: WITHOUT_USER }),
  row('list users', AuthService.userList, {}, { says: DENIED }),
  row('show herself', AuthService.userGet, { name: 'ada' }, { says: { ada: 'done' } }),
  row('show root', AuthService.userGet, { name: 'root' }, { says: DENIED }),
  row('show her role', AuthService.roleGet, { role: 'app' }, { says: { ada: 'done' } }),
  row('add a user', AuthService.userAdd, { name: 'x', password: 'x' }, { says: DENIED }),
  row('change a password', AuthService.userChangePassword, { name: 'root', password: 'x' }, { says: DENIED }),
  row('grant a role', AuthService.userGrantRole, { user: 'ada', role: 'root' }, { says: DENIED }),
  row('switch authentication off', AuthService.authDisable, {}, { says: DENIED }),
];

const LOG_INS = [
  { user: 'ada', password: 'wrong' },
  { user: 'ada', password: '' },
  { user: 'eve', password: 'x' },
  { user: '', password: 'x' },
];

/** A gRPC client that shows what clients of etcd see of an answer. */
class Api {
  readonly #client: Client;
  token: string | undefined;

  constructor(endpoint: string) {
    this.#client = new Client(endpoint, credentials.createInsecure());
  }

  close(): void {
    this.#client.close();
  }

  async ask<Request, Response>(
    method: Method<Request, Response>,
    given: Partial<Request>,
    token?: string,
  ): Promise<string> {
    return (await this.#call(method, given, token)).says;
  }

  #call<Request, Response>(
    method: Method<Request, Response>,
    given: Partial<Request>,
    token: string | undefined,
  ): Promise<{ readonly says: string; readonly answer?: Fields }> {
    const request = whole(method, given);
    const metadata = new Metadata();
    if (token !== undefined) metadata.set('token', token);
    // Ids of etcd's members have 64 bits, more than the generated code takes.
    const codec = [method.path, method.requestSerialize, fieldsOf] as const;
    const options = { deadline: Date.now() + 30_000 };
    return new Promise((resolve) => {
      const failed = (error: { readonly code: number; readonly details: string }): void =>
        resolve({ says: `${error.code} ${error.details}` });
      if (!method.requestStream) {
        this.#client.makeUnaryRequest(...codec, request, metadata, options, (error, answer) =>
          error === null ? resolve({ says: 'done', answer: answer as Fields }) : failed(error),
        );
        return;
      }
      const stream = this.#client.makeBidiStreamRequest(...codec, metadata, options);
      stream.on('error', failed);
      stream.once('data', (answer: Fields) => {
        resolve({ says: method.path.endsWith('/Watch') ? watchText(answer) : 'done', answer });
        stream.cancel();
      });
      stream.write(request);
    });
  }

  async #must<Request, Response>(method: Method<Request, Response>, given: Partial<Request>): Promise<Fields> {
    const { says, answer } = await this.#call(method, given, undefined);
    if (answer === undefined) throw new Error(`${method.path}: ${says}`);
    return answer;
  }

  async setUp(): Promise<void> {
    for (const name of ['root', 'ada']) await this.#must(AuthService.userAdd, { name, password: `${name}pw` });
    await this.#must(AuthService.roleAdd, { name: 'root' });
    await this.#must(AuthService.roleAdd, { name: 'app' });
    const perm = { permType: 2 as const, key: b('a'), rangeEnd: b('b') };
    await this.#must(AuthService.roleGrantPermission, { name: 'app', perm });
    await this.#must(AuthService.userGrantRole, { user: 'ada', role: 'app' });
    await this.#must(AuthService.userGrantRole, { user: 'root', role: 'root' });
    await this.#must(LeaseService.leaseGrant, { ID: 71n, TTL: 600n });
    await this.#must(KVService.put, { key: b('b1'), value: b('x'), lease: 71n });
    await this.#must(KVService.put, { key: b('a1'), value: b('x') });
    await this.#must(AuthService.authEnable, {});
    const answer = await this.#must(AuthService.authenticate, { name: 'ada', password: 'adapw' });
    this.token = String(answer.get(2));
  }
}

/** The fields of a message, by their numbers: only varints and bytes. */
type Fields = ReadonlyMap<number, bigint | Buffer>;

function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, bigint | Buffer>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    if ((tag & 7) === 0) fields.set(tag >> 3, varint());
    else {
      const length = Number(varint());
      fields.set(tag >> 3, bytes.subarray(at, at + length));
      at += length;
    }
  }
  return fields;
}

/** Of a `WatchResponse`: created = 3, canceled = 4, watch_id = 2, cancel_reason = 6. */
function watchText(answer: Fields): string {
  const [created, canceled] = [answer.has(3) ? 'created' : '', answer.has(4) ? 'canceled' : ''];
  return `${created} ${canceled} ${answer.get(2) ?? 0n} ${answer.get(6) ?? ''}`.trimEnd();
}

describe.skipIf(!hasEtcd)('with authentication on, Remora answers as etcd', () => {
  const etcd = new RealEtcd();
  let cluster: Cluster;
  let here: Api;
  let there: Api;

  beforeAll(async () => {
    [cluster] = await Promise.all([Cluster.start({ nodes: 1 }), etcd.start()]);
    [here, there] = [new Api(cluster.node(1).client), new Api(etcd.endpoint)];
    await Promise.all([here.setUp(), there.setUp()]);
  });
  afterAll(async () => {
    for (const api of [here, there]) api?.close();
    etcd.stop();
    await cluster?.stop();
  });

  const tokenOf = (who: Who, { token }: Api): string | undefined =>
    ({ nobody: undefined, 'an empty token': '', 'a forged token': 'forged.1', ada: token })[who];

  describe.each(WHO)('to %s', (who) => {
    test.each(ROWS)('$name', async ({ ask, says, differs = [] }) => {
      const [ours, theirs] = await Promise.all([here, there].map((api) => ask(api, tokenOf(who, api))));
      if (says?.[who] !== undefined) expect(ours).toContain(says[who]);
      if (differs.includes(who)) expect(ours).not.toBe(theirs);
      else expect(ours).toBe(theirs);
    });
  });

  test.each(LOG_INS)('to a log-in as "$user" with the password "$password"', async ({ user: name, password }) => {
    const [ours, theirs] = await Promise.all(
      [here, there].map((api) => api.ask(AuthService.authenticate, { name, password })),
    );
    expect(ours).toContain('3 etcdserver: authentication failed, invalid user ID or password');
    expect(ours).toBe(theirs);
  });
});
