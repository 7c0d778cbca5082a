/** One node with authentication on, its users, and what the requests of the table are about. */
import { Client, credentials } from '@grpc/grpc-js';
import { nodeClock, ServiceError } from '@remora/base';
import { dialPipe, LinkCaller, pipeLogIn } from '@remora/protocol';
import * as pb from '@remora/protocol/etcd';
import * as remora from '@remora/protocol/remora';
import { Cluster } from '../harness.ts';
import { askGrpc, type Method } from './doors.ts';
import { PRINCIPALS, type Who } from './verdicts.ts';

export const b = (text: string): Buffer => Buffer.from(text);

const TTL_MS = 120_000n;
const A = { key: b('a/'), rangeEnd: b('a0') };

export class World {
  readonly cluster: Cluster;
  readonly grpc: Client;
  readonly #tokens = new Map<Who, string>();
  readonly #pipes = new Map<Who, LinkCaller>();
  readonly #open: LinkCaller[] = [];
  #count = 0;
  /** The lock user's, for requests that do not end it. */
  session: remora.Session = { id: 0n, incarnation: 0n };

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
    this.grpc = new Client(cluster.node(1).client, credentials.createInsecure());
  }

  static async start(): Promise<World> {
    const world = new World(await Cluster.start({ nodes: 1 }));
    await world.#makeUsers();
    for (const who of PRINCIPALS) if (who !== 'anonymous') await world.#logIn(who);
    await world.allow(pb.KVService.put, { key: b('a/k'), value: b('v') });
    await world.allow(pb.v3electionpb.ElectionService.campaign, { name: b('a/elected'), value: b('v') });
    world.session = await world.newSession();
    return world;
  }

  async stop(): Promise<void> {
    this.grpc.close();
    for (const pipe of this.#open) pipe.close(new ServiceError('CANCELED', 'the test is over'));
    await this.cluster.stop();
  }

  token(who: Who): string | undefined {
    return this.#tokens.get(who);
  }

  /** A name that no other request has. */
  fresh(prefix = 'a/'): Buffer {
    this.#count++;
    return b(`${prefix}${this.#count}`);
  }

  /** Of an owner of a lock. */
  freshToken(): string {
    return this.fresh('a-token-that-nobody-guesses-').toString();
  }

  /** The id of a lease that is not there. */
  freshId(): bigint {
    this.#count++;
    return BigInt(1_000_000_000 + this.#count);
  }

  /** Sends a request that has to succeed. */
  async allow<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    who: Who = 'root',
  ): Promise<Response> {
    const { response, says } = await askGrpc(this, method, request, who);
    if (response === undefined) throw new Error(`${method.path} of ${who}: ${says}`);
    return response;
  }

  async newSession(): Promise<remora.Session> {
    const { session } = await this.allow(remora.LockService.openSession, { ttlMs: TTL_MS }, 'lockUser');
    if (session === undefined) throw new Error('a session without an id');
    return session;
  }

  /** A lease of plain keys that has the key `a/…`. */
  async newLease(): Promise<bigint> {
    const { ID: lease } = await this.allow(pb.LeaseService.leaseGrant, { TTL: TTL_MS / 1_000n });
    await this.allow(pb.KVService.put, { key: this.fresh(), lease });
    return lease;
  }

  /** A connection of its own. */
  newPipe(): LinkCaller {
    const clock = nodeClock();
    const made = new LinkCaller({ link: dialPipe(this.cluster.node(1).client, { clock }), clock });
    this.#open.push(made);
    return made;
  }

  /** The connection of a caller, which has logged in. */
  async pipe(who: Who): Promise<LinkCaller> {
    const known = this.#pipes.get(who);
    if (known !== undefined) return known;
    const made = this.newPipe();
    this.#pipes.set(who, made);
    const token = this.token(who);
    if (token === undefined) return made;
    await new Promise((resolve, reject) => {
      made.call(pipeLogIn, { with: 'token', token }, { timeoutMs: 10_000 }, (error, reply) =>
        error === undefined ? resolve(reply) : reject(error),
      );
    });
    return made;
  }

  async #makeUsers(): Promise<void> {
    const { change } = remora.auth.AuthService;
    const make = (value: remora.auth.ChangeRequest['change']) => this.allow(change, { change: value }, 'anonymous');
    const keys = (role: string, access: string) =>
      make({ $case: 'grantKeys', value: { role, permission: { span: A, access } } });
    const locks = (role: string, permission: remora.auth.LockPermission) =>
      make({ $case: 'grantLocks', value: { role, permission } });
    for (const name of PRINCIPALS) {
      if (name === 'anonymous') continue;
      await make({ $case: 'addUser', value: { name, password: `${name}-pw` } });
      if (name === 'stranger') continue;
      if (name !== 'root') await make({ $case: 'addRole', value: name });
      await make({ $case: 'grantRole', value: { user: name, role: name } });
    }
    await keys('reader', 'read');
    await keys('writer', 'write');
    await keys('editor', 'readwrite');
    await locks('lockUser', { namespace: 'default', name: b('a/'), prefix: true, verb: 'acquire' });
    await locks('steerer', { namespace: '', name: b(''), prefix: true, verb: 'steer' });
    await make({ $case: 'enable', value: {} });
  }

  async #logIn(name: Who): Promise<void> {
    const login = { name, password: `${name}-pw` };
    const { token } = await this.allow(pb.AuthService.authenticate, login, 'anonymous');
    this.#tokens.set(name, token);
  }
}
