/** Users and roles as gateways administer them, in front of masters that are one state in this process. */
import {
  type AuditEvent,
  Authenticator,
  AuthState,
  KnownAuth,
  type LogIn,
  PasswordHasher,
  type PasswordThread,
} from '@remora/auth';
import { type Clock, SeededRandom, ServiceError, silentLogger, toServiceError } from '@remora/base';
import { AuthAdmin, type Backend, ClusterCalls } from '@remora/gateway';
import {
  type AuthChange,
  createLocalChannel,
  createRpcRegistry,
  type Done,
  type Method,
  masterChangeAuth,
} from '@remora/protocol';

/** Authentication is off, and there is nobody, until changes are made. */
export class PlayedAuth {
  readonly state = new AuthState();
  readonly known: KnownAuth;
  readonly authenticator: Authenticator;
  readonly admin: AuthAdmin;
  readonly recorded: AuditEvent[] = [];

  constructor(clock: Clock) {
    const random = new SeededRandom(1);
    const audit = { isOn: true, writes: false, record: (event: AuditEvent) => void this.recorded.push(event) };
    const logger = silentLogger;
    this.known = new KnownAuth({ clock, hurry: () => {} });
    this.#learn(clock);
    const hasher = new PasswordHasher(plainPasswords, String);
    this.authenticator = new Authenticator({ known: this.known, hasher, clock, random, logger, audit });
    const call = <Request, Reply>(
      method: Method<Request, Reply>,
      request: Request,
      _options: unknown,
      done: Done<Reply>,
    ) => {
      try {
        if (method.name === masterChangeAuth.name) {
          this.state.apply((request as unknown as { readonly change: AuthChange }).change);
        }
        this.#learn(clock);
        done(undefined, { revision: this.state.image.revision } as Reply);
      } catch (error) {
        done(toServiceError(error), undefined);
      }
      return { cancel() {} };
    };
    const nobody = createLocalChannel({ registry: createRpcRegistry(), clock });
    const dialer = { channel: () => nobody, channelTo: () => nobody };
    const calls = new ClusterCalls({ clock, random, master: { call }, dialer });
    const { known, authenticator } = this;
    this.admin = new AuthAdmin({ calls, known, authenticator, random, audit, backend: { query: noRanges }, logger });
  }

  /** Makes changes as the masters would. */
  make(...changes: readonly AuthChange[]): void {
    for (const change of changes) this.state.apply(change);
    this.known.learn(this.state.image, 0);
  }

  /** A token for `Authorization` or for the cookie. */
  token(user: string, more: Partial<LogIn> = {}): Promise<string> {
    return this.authenticator.logIn({ user, password: user, door: 'http', address: '127.0.0.1', ...more }, true);
  }

  #learn(clock: Clock): void {
    this.known.learn(this.state.image, clock.monotonicMs());
  }
}

/** The users root and ann, with their names as passwords; ann has the role shop. Authentication is on. */
export const SHOP: readonly AuthChange[] = [
  { type: 'setTokenKey', key: Buffer.alloc(32, 7) },
  { type: 'addUser', user: 'root', passwordHash: 'root' },
  { type: 'grantRole', user: 'root', role: 'root' },
  { type: 'addUser', user: 'ann', passwordHash: 'ann' },
  { type: 'addRole', role: 'shop' },
  { type: 'grantRole', user: 'ann', role: 'shop' },
  {
    type: 'grantKeys',
    role: 'shop',
    permission: { key: Buffer.from('orders/'), end: Buffer.from('orders0'), access: 'readWrite' },
  },
  {
    type: 'grantLocks',
    role: 'shop',
    permission: { namespace: 'default', name: Buffer.from('orders/'), isPrefix: true, verb: 'acquire' },
  },
  { type: 'enable' },
];

const noRanges: Backend['query'] = (_query, _options, done) => {
  done(new ServiceError('UNAVAILABLE', 'there are no ranges in this test'), undefined);
  return () => {};
};

/** Passwords are their own hashes. */
function plainPasswords(): PasswordThread {
  let answered = (_result: string | boolean): void => {};
  return {
    start(on) {
      answered = on;
    },
    post(task) {
      queueMicrotask(() => answered(task.type === 'hash' ? task.password : task.password === task.hash));
    },
    stop() {},
  };
}
