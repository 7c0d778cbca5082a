/**
 * Changes users and roles as root does, one change of a user at a time. Each change is recorded.
 *
 * UD1. A change is repeated until it is acknowledged. If an earlier attempt has made it, the repeated one is refused,
 *      which says nothing about the other nodes. Then a change follows that is made already: its answer comes when
 *      every live node decides by the present revision.
 * UD2. An attempt of unknown outcome may still be on its way. The next change of that user waits until it cannot come
 *      any more, or it would undo that change.
 * UD3. A password is never used again, so a log-in shows which state of the user allowed it.
 * UD4. A node is suspected only after a time that is longer than any fault. So an acknowledged change is in force on
 *      every node, also on one that was cut off meanwhile (docs/how-to/cluster/users-and-permissions.md).
 */
import { type Random, ServiceError } from '@remora/base';
import { AdminClient, type AuthChangeRequest } from 'remora/admin';
import { pause } from '../../e2e/eventually.ts';
import type { Journal } from '../journal/journal.ts';
import { type Access, connectOptions } from './access.ts';
import {
  type Passwords,
  passwordText,
  type RecordedRights,
  type Rights,
  VISITED_PREFIX,
  VISITORS,
  type Visitor,
} from './rights.ts';

/** The user of the load, which may use all keys and locks. */
export const LOAD_USER = 'load';
export const LOAD_PASSWORD = 0;

export interface UserDeskOptions {
  readonly endpoints: readonly string[];
  readonly access: Access;
  readonly journal: Journal;
  readonly random: Random;
  /** Called with the present passwords after each change of one. */
  readonly tell: (passwords: Passwords) => void;
}

const CALL_TIMEOUT_MS = 20_000;
const CONNECT_TIMEOUT_MS = 1_000;
const AGAIN_MS = 200;
/** UD4. */
const SUSPECT_AFTER = '60s';
/** UD2. Links are cut, and nodes stand still, for less. */
const ON_ITS_WAY_MS = 20_000;
const PAUSE_MS_MAX = 2_500;
/** One change in so many needs other log-ins (visits.ts). */
const LOG_INS = 6;
/** UD1. */
const MADE = 'made';
const MADE_ALREADY: AuthChangeRequest = { $case: 'grantRole', value: { user: 'root', role: 'root' } };

/** How rights are taken and given back. Each function returns the rights after its changes. */
interface Way {
  readonly name: string;
  readonly take: (desk: Changing) => readonly [changes: readonly AuthChangeRequest[], after: Rights];
  readonly give: (desk: Changing) => readonly [changes: readonly AuthChangeRequest[], after: Rights];
}

interface Changing {
  readonly visitor: Visitor;
  readonly rights: Rights;
  /** UD3. */
  readonly newPassword: number;
}

const ALL = { read: true, write: true, lock: true } as const;
const NONE = { read: false, write: false, lock: false } as const;

const WAYS: readonly Way[] = [
  {
    name: 'role',
    take: ({ visitor: { user }, rights }) => [[revokeRole(user)], { ...rights, ...NONE }],
    give: ({ visitor: { user }, rights }) => [[grantRole(user)], { ...rights, ...ALL }],
  },
  {
    name: 'permissions',
    take: ({ visitor: { user }, rights }) => [
      [
        { $case: 'revokeKeys', value: keysOf(user, 'readwrite') },
        { $case: 'revokeLocks', value: locksOf(user) },
      ],
      { ...rights, ...NONE },
    ],
    give: ({ visitor: { user }, rights }) => [permissionsOf(user), { ...rights, ...ALL }],
  },
  {
    name: 'access to keys',
    take: ({ visitor: { user }, rights }) => [
      [{ $case: 'grantKeys', value: keysOf(user, 'read') }],
      { ...rights, write: false },
    ],
    give: ({ visitor: { user }, rights }) => [
      [{ $case: 'grantKeys', value: keysOf(user, 'readwrite') }],
      { ...rights, ...ALL },
    ],
  },
];

/** The user is deleted and made again. */
const USER: Way = {
  name: 'user',
  take: ({ visitor: { user } }) => [[{ $case: 'deleteUser', value: user }], { password: null, ...NONE }],
  give: ({ visitor, newPassword }) => [
    [addUser(visitor, newPassword), grantRole(visitor.user)],
    { password: newPassword, ...ALL },
  ],
};

export class UserDesk {
  readonly #options: UserDeskOptions;
  readonly #admin: AdminClient;
  readonly #rights = new Map<string, Rights>();
  readonly #quietUntilMs = new Map<string, number>();
  #passwords = LOAD_PASSWORD;
  /** Acknowledged changes, and attempts that were not acknowledged. */
  changed = 0;
  failed = 0;

  constructor(options: UserDeskOptions) {
    this.#options = options;
    this.#admin = new AdminClient({
      ...{ endpoints: options.endpoints, discover: false, ...connectOptions(options.access) },
      ...{ timeoutMs: CALL_TIMEOUT_MS, connectTimeoutMs: CONNECT_TIMEOUT_MS },
    });
  }

  /** Adds the users of the load. */
  async setUp(): Promise<void> {
    await this.#admin.setSetting('suspect-after', SUSPECT_AFTER); // UD4.
    const all = { key: Buffer.of(0), rangeEnd: Buffer.of(0) };
    const locks = (verb: string) => ({ namespace: '', name: Buffer.of(), prefix: true, verb });
    const loadUser = this.#make([
      { $case: 'addRole', value: LOAD_USER },
      { $case: 'grantKeys', value: { role: LOAD_USER, permission: { span: all, access: 'readwrite' } } },
      { $case: 'grantLocks', value: { role: LOAD_USER, permission: locks('acquire') } },
      { $case: 'grantLocks', value: { role: LOAD_USER, permission: locks('steer') } },
      addUser({ user: LOAD_USER, by: 'password' }, LOAD_PASSWORD),
      { $case: 'grantRole', value: { user: LOAD_USER, role: LOAD_USER } },
    ]);
    const visitors = VISITORS.map((visitor) => {
      const { user } = visitor;
      const password = this.#newPassword();
      const changes = [addUser(visitor, password), grantRole(user)];
      return this.#recorded({ visitor, how: 'begin', after: { password, ...ALL } }, [
        { $case: 'addRole', value: user },
        ...permissionsOf(user),
        ...changes,
      ]);
    });
    await Promise.all([loadUser, ...visitors]);
  }

  /** Changes the rights of all visitors until the signal aborts. Then all of them have all rights. */
  async keepChanging(signal: AbortSignal): Promise<void> {
    await Promise.all(VISITORS.map((visitor) => this.#keepChanging(visitor, signal)));
  }

  close(): void {
    this.#admin.close();
  }

  async #keepChanging(visitor: Visitor, signal: AbortSignal): Promise<void> {
    const { random } = this.#options;
    const wait = async (): Promise<void> => {
      const untilMs = Math.max(
        performance.now() + random.int(PAUSE_MS_MAX),
        this.#quietUntilMs.get(visitor.user) ?? 0, // UD2.
      );
      while (!signal.aborted && performance.now() < untilMs) await pause(AGAIN_MS);
    };
    const takeAndGive = async ({ name, take, give }: Way): Promise<void> => {
      await this.#change(visitor, `${name} taken`, take);
      await wait();
      await this.#change(visitor, `${name} given`, give);
    };
    for (await wait(); !signal.aborted; await wait()) {
      if (random.int(LOG_INS) > 0) await takeAndGive(WAYS[random.int(WAYS.length)] ?? USER);
      else if (random.int(2) === 0) await takeAndGive(USER);
      else await this.#changePassword(visitor);
    }
  }

  async #changePassword(visitor: Visitor): Promise<void> {
    if (visitor.by !== 'password') return;
    await this.#change(visitor, 'password changed', ({ visitor: { user }, rights, newPassword }) => [
      [{ $case: 'setPassword', value: { name: user, password: passwordText(user, newPassword) } }],
      { ...rights, password: newPassword },
    ]);
  }

  async #change(visitor: Visitor, how: string, make: Way['take']): Promise<void> {
    const rights = this.#rights.get(visitor.user);
    if (rights === undefined) throw new Error(`there is no ${visitor.user}`);
    const [changes, after] = make({ visitor, rights, newPassword: this.#newPassword() });
    await this.#recorded({ visitor, how, after }, changes);
  }

  async #recorded(
    { visitor: { user }, how, after }: { readonly visitor: Visitor; readonly how: string; readonly after: Rights },
    changes: readonly AuthChangeRequest[],
  ): Promise<void> {
    const { journal, tell } = this.#options;
    const recorded: RecordedRights = { op: 'change', user, how, after };
    const operation = journal.begin('visits', journal.round, recorded);
    const failures = await this.#make(changes);
    operation.end('done');
    this.changed += 1;
    this.failed += failures;
    if (failures > 0) this.#quietUntilMs.set(user, performance.now() + ON_ITS_WAY_MS);
    this.#rights.set(user, after);
    const passwords = [...this.#rights].flatMap(([name, { password }]) =>
      password === null ? [] : [[name, password]],
    );
    tell(Object.fromEntries(passwords) as Passwords);
  }

  /** UD1. Resolves to the number of attempts that failed. */
  async #make(changes: readonly AuthChangeRequest[]): Promise<number> {
    for (let failures = 0; ; failures++) {
      try {
        let wereMade = false;
        for (const change of changes) wereMade = (await this.#admin.auth.change(change).catch(ifMade)) === MADE;
        if (wereMade) await this.#admin.auth.change(MADE_ALREADY);
        return failures;
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (error.code === 'PERMISSION_DENIED' || error.code === 'UNAUTHENTICATED') throw error;
        await pause(AGAIN_MS);
      }
    }
  }

  #newPassword(): number {
    return ++this.#passwords;
  }
}

function ifMade(error: unknown): typeof MADE {
  if (!(error instanceof ServiceError && error.code === 'AUTH_REFUSED')) throw error;
  return MADE;
}

function grantRole(user: string): AuthChangeRequest {
  return { $case: 'grantRole', value: { user, role: user } };
}

function revokeRole(user: string): AuthChangeRequest {
  return { $case: 'revokeRole', value: { user, role: user } };
}

function addUser({ user, by }: Visitor, password: number): AuthChangeRequest {
  return {
    $case: 'addUser',
    value: { name: user, ...(by === 'password' && { password: passwordText(user, password) }) },
  };
}

function permissionsOf(user: string): readonly AuthChangeRequest[] {
  return [
    { $case: 'grantKeys', value: keysOf(user, 'readwrite') },
    { $case: 'grantLocks', value: locksOf(user) },
  ];
}

function keysOf(role: string, access: string) {
  const rangeEnd = Buffer.from(VISITED_PREFIX);
  rangeEnd[rangeEnd.length - 1] = (rangeEnd.at(-1) ?? 0) + 1;
  return { role, permission: { span: { key: VISITED_PREFIX, rangeEnd }, access } };
}

function locksOf(role: string) {
  return { role, permission: { namespace: 'default', name: VISITED_PREFIX, prefix: true, verb: 'acquire' } };
}
