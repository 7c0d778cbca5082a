/**
 * Users whose rights change while clients ask as them, in runs with authentication. Clients log in with user and
 * password at one gateway, and put, get, read what the gateway's own node has, and take locks.
 *
 * RL1. `kept` always has its rights. `revoked` loses them early and for good, so that the time after which gateways
 *      that are cut off refuse passes within the run. Those of `changing` come and go.
 * RL2. A right is revoked in each way: the role of the user, the permissions of the role, the password, the user.
 * RL3. A call is repeated by nobody but the SDK, at the same gateway.
 * RL4. At the end, when every node reaches the masters, each client asks as each user at each gateway, after each
 *      change at once. A revocation ends what is open there.
 */
import { AUTH_TRUST_MS } from '@remora/auth';
import { SeededRandom, sleep } from '@remora/base';
import type { AuthChange } from '@remora/protocol';
import type { RemoraClient } from 'remora';
import { seedOf } from '../../common/hash.ts';
import { Violation } from '../../common/violation.ts';
import { Rights, type Verdict } from '../checks/rights.ts';
import { clientAddress } from '../machine.ts';
import type { ClusterOptions } from '../options.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import { addUser, credentialsOf, newPassword, passwordOf, QUIET_MS } from '../users.ts';
import type { World } from '../world.ts';
import { think } from './ask.ts';
import { type Lasting, LastingRights, unlessService, verdictOf } from './lasting-rights.ts';
import type { MakeWorkload, Workload } from './workload.ts';

/** RL1. */
const USERS = ['kept', 'revoked', 'changing'] as const;
type User = (typeof USERS)[number];

const RIGHTS = 0x719b;
const KEYS = 'p/';
/** Users without `steer`, who try to renew the sessions of others (checks/owners.ts). */
export const STRANGERS = ['kept', 'changing'] as const satisfies readonly User[];
/** When the rights of `revoked` are revoked, after the quiet time. */
const REVOKED_MS_MIN = 1_000;
const REVOKED_MS_SPREAD = 2_000;
/** Between two changes of the rights of `changing`. */
const PAUSE_MS_MAX = 4_000;
/** Calls on one connection. */
const CALLS_MAX = 12;
const CONNECT_MS = 1_500;
const REQUEST_MS = 1_000;
const LOCK_MS_MAX = 300;

/** How rights are taken and given back (RL2). */
interface Way {
  readonly name: string;
  readonly revoke: (user: User) => readonly AuthChange[];
  readonly grant: (user: User) => readonly AuthChange[];
}

const WAYS: readonly [Way, ...Way[]] = [
  {
    name: 'role',
    revoke: (user) => [{ type: 'revokeRole', user, role: roleOf(user) }],
    grant: (user) => [{ type: 'grantRole', user, role: roleOf(user) }],
  },
  {
    name: 'permissions',
    revoke: (user) => [
      { type: 'revokeKeys', role: roleOf(user), span: { key: keyOf(user) } },
      { type: 'revokeLocks', role: roleOf(user), permission: lockOf(user) },
    ],
    grant: (user) => permissionsOf(user),
  },
  {
    name: 'password',
    revoke: (user) => newPassword(user, 'nobody knows it'),
    grant: (user) => newPassword(user, passwordOf(user)),
  },
  {
    name: 'user',
    revoke: (user) => [{ type: 'deleteUser', user }],
    grant: (user) => addUser(user, roleOf(user)),
  },
];

function roleOf(user: User): string {
  return `role-of-${user}`;
}

function keyOf(user: User): Buffer {
  return Buffer.from(`${KEYS}${user}`);
}

function lockOf(user: User) {
  return { namespace: 'default', name: Buffer.from(user), isPrefix: false, verb: 'acquire' } as const;
}

function permissionsOf(user: User): readonly AuthChange[] {
  return [
    { type: 'grantKeys', role: roleOf(user), permission: { key: keyOf(user), access: 'readWrite' } },
    { type: 'grantLocks', role: roleOf(user), permission: lockOf(user) },
  ];
}

/** The users of the workload, with their rights. */
export function probedUsers(): readonly AuthChange[] {
  return USERS.flatMap((user): readonly AuthChange[] => [
    { type: 'addRole', role: roleOf(user) },
    ...permissionsOf(user),
    ...addUser(user, roleOf(user)),
  ]);
}

/** The time after which gateways that are cut off refuse (auth's known-auth.ts KA2), by the slowest clock. */
function boundMsOf({ driftPerMille, electionMs }: ClusterOptions): number {
  return (AUTH_TRUST_MS + 2 * electionMs) / (1 - driftPerMille / 1_000);
}

export const rights: MakeWorkload = (world) => new RightsLoad(world);

class RightsLoad implements Workload {
  readonly name = 'rights';
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #rights: Rights;
  readonly #lasting: LastingRights;
  readonly #gateways: readonly string[];
  #begun = false;
  /** Changes that are being made. */
  #making = 0;
  /** Calls at rest, by whether they were taken as they had to be. */
  #atRest = 0;

  constructor(world: World) {
    this.#world = world;
    this.#random = new SeededRandom(seedOf(world.seed, RIGHTS));
    this.#rights = new Rights(() => world.loop.monotonicMs(), boundMsOf(world.options));
    this.#lasting = new LastingRights(world, this.#rights);
    this.#gateways = world.options.machines.filter(({ roles }) => roles.includes('gateway')).map(clientAddress);
  }

  /** The users are there. */
  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { loop } = this.#world;
    if (loop.monotonicMs() > QUIET_MS) throw new Violation('liveness', `users were not added within ${QUIET_MS} ms`);
    for (const user of USERS) this.#rights.begins(user);
    const way = this.#drawWay();
    loop.setTimer(QUIET_MS - loop.monotonicMs() + REVOKED_MS_MIN + this.#random.int(REVOKED_MS_SPREAD), () => {
      void this.#change('revoked', false, way).catch(this.#fail);
    });
    void this.#keepChanging().catch(this.#fail);
  }

  readonly #fail = (error: unknown): void => this.#world.fail(error);

  #drawWay(): Way {
    return WAYS[this.#random.int(WAYS.length)] ?? WAYS[0];
  }

  async #keepChanging(): Promise<void> {
    const { loop } = this.#world;
    await sleep(loop, QUIET_MS);
    for (;;) {
      const way = this.#drawWay();
      for (const allowed of [false, true]) {
        await sleep(loop, this.#random.int(PAUSE_MS_MAX));
        if (allowed || !this.#world.resting) await this.#change('changing', allowed, way);
      }
      if (this.#world.resting) return;
    }
  }

  async #change(user: User, allowed: boolean, way: Way): Promise<void> {
    const { trace, users } = this.#world;
    trace.add('asked', 0, 0, 0, 0, `${allowed ? 'grant' : 'revoke'} ${user} by ${way.name}`);
    this.#making++;
    const acknowledged = this.#rights.changes(user, allowed);
    await users.make(allowed ? way.grant(user) : way.revoke(user));
    acknowledged();
    this.#making--;
    trace.add('answered', 0, 0, 0, 0, `${allowed ? 'granted' : 'revoked'} ${user} by ${way.name}`);
  }

  async run(life: ClientLife): Promise<void> {
    this.#begin();
    await Promise.all(
      USERS.map(async (user) => {
        while (!this.#world.resting) await this.#visit(life, user);
      }),
    );
  }

  /** Some calls as a user at one gateway. */
  async #visit(life: ClientLife, user: User): Promise<void> {
    const gateway = this.#gateways[life.random.int(this.#gateways.length)] ?? '';
    await think(this.#world, life, 1);
    const remora = await this.#connected(life, user, gateway);
    if (remora === undefined) return;
    const calls = 1 + life.random.int(CALLS_MAX);
    for (let i = 0; i < calls && !this.#world.resting; i++) {
      await think(this.#world, life, 1);
      await this.#ask({ life, user, remora, key: keyOf(user), lock: user });
    }
    await remora.close();
  }

  /** RL3. Undefined if the log-in was refused, or the gateway did not answer. */
  async #connected(life: ClientLife, user: User, gateway: string): Promise<RemoraClient | undefined> {
    const ended = this.#rights.asked(user, `a log-in at ${gateway}`);
    try {
      return await life.connect({
        ...{ endpoints: gateway, discover: false, connectTimeout: CONNECT_MS, requestTimeout: REQUEST_MS },
        ...credentialsOf(user),
      });
    } catch (error) {
      ended(verdictOf(error));
      return undefined;
    }
  }

  async #ask(asked: Lasting & { readonly user: User }): Promise<void> {
    switch (asked.life.random.int(6)) {
      case 0:
        return this.#lasting.watch(asked);
      case 1:
        return void (await this.#lasting.wait(asked));
      default:
        await this.#call(asked.life, asked.user, asked.remora);
    }
  }

  async #call(life: ClientLife, user: User, remora: RemoraClient): Promise<Verdict> {
    const { what, ask } = this.#draw(life, user, remora);
    const ended = this.#rights.asked(user, what);
    const verdict = await ask().then((): Verdict => 'let in', verdictOf);
    ended(verdict);
    return verdict;
  }

  #draw(
    life: ClientLife,
    user: User,
    remora: RemoraClient,
  ): { readonly what: string; readonly ask: () => Promise<unknown> } {
    const { kv } = remora;
    const key = keyOf(user);
    switch (life.random.int(6)) {
      case 0:
        return { what: 'a put', ask: () => kv.put(key, this.#lasting.beginning()) };
      case 1:
        return { what: 'a get', ask: () => kv.get(key) };
      case 2:
        return { what: 'an acquire', ask: () => takeLock(life, remora, user) };
      default:
        return { what: 'a get at the node', ask: () => kv.get(key, { serializable: true }) };
    }
  }

  missing(): string {
    return this.#making === 0 ? '' : 'a change of rights is not acknowledged';
  }

  /** RL4. */
  async check(): Promise<void> {
    this.#rights.allNodesReachMasters();
    await this.#askEverywhere();
    const way = this.#drawWay();
    for (const each of WAYS) await this.#revokeAtRest(each);
    for (const allowed of [false, true]) {
      await this.#change('changing', allowed, way);
      await this.#askEverywhere();
    }
  }

  /** What is open at each gateway ends (RC5). */
  async #revokeAtRest(way: Way): Promise<void> {
    const open = await this.#openEverywhere('changing');
    const revoked = await this.#lasting.open(open);
    await this.#change('changing', false, way);
    await revoked();
    await this.#change('changing', true, way);
    await Promise.all(open.map(({ remora }) => remora.close()));
  }

  /** Clients of each life at each gateway. */
  async #openEverywhere(user: User): Promise<readonly Lasting[]> {
    const each = this.#world.clients
      .map(lifeOf)
      .flatMap((life) => this.#gateways.map((gateway) => ({ life, gateway })));
    const found = await Promise.all(
      each.map(async ({ life, gateway }) => ({ life, remora: await this.#connected(life, user, gateway) })),
    );
    return found.flatMap(({ life, remora }) =>
      remora === undefined ? [] : [{ life, user, remora, key: keyOf(user), lock: user }],
    );
  }

  async #askEverywhere(): Promise<void> {
    const lives = this.#world.clients.map(lifeOf);
    const each = lives.flatMap((life) =>
      this.#gateways.flatMap((gateway) => USERS.map((user) => ({ life, gateway, user }))),
    );
    await Promise.all(
      each.map(async ({ life, gateway, user }) => {
        const remora = await this.#connected(life, user, gateway);
        if (remora === undefined) return;
        if ((await this.#call(life, user, remora)) !== 'neither') this.#atRest++;
        await remora.close();
      }),
    );
  }

  figures(): Readonly<Record<string, number>> {
    const { rightlyLetIn, rightlyRefused, either } = this.#rights;
    const { changed, failed } = this.#world.users;
    return {
      'rights changed': changed,
      'changes of rights sent again': failed,
      'rightly let in': rightlyLetIn,
      'rightly refused': rightlyRefused,
      'taken as rights changed': either,
      'attempts of strangers to renew': this.#world.owners.tried,
      'owners of sessions checked': this.#world.owners.checked,
      'rights asked for at rest': this.#atRest,
      'events and locks that came to users': this.#rights.came,
      'watches and waits ended at rest': this.#lasting.ended,
    };
  }
}

async function takeLock(life: ClientLife, remora: RemoraClient, name: string): Promise<void> {
  const held = await remora.lock(name).tryAcquire();
  if (held === undefined) return;
  await sleep(life.clock, life.random.int(LOCK_MS_MAX));
  // The right may be gone by now; the lock goes with the session.
  await held.release().catch(unlessService);
}
