/**
 * Hashes and verifies passwords in a thread of its own.
 *
 * PH1. One at a time for each node: a hash takes a core for tens of milliseconds, and log-ins must not take the cores
 *      from everything else. Never in libuv's pool, whose threads sync the log.
 * PH2. What waits is bounded, in all and for each address and user: a flood from one of them leaves room for others.
 *      An address (IPv6: a network, because a machine has as many addresses as it likes) has less room than a user, so
 *      that nobody locks a user out from one address. What is beyond a bound is refused at once.
 * PH3. A log-in takes as long for a user that does not exist as for one that does.
 * PH4. Names and passwords that are longer than any that exist are wrong at once: they take neither a turn nor memory.
 */
import { ServiceError } from '@remora/base';
import type { Door } from '@remora/protocol';
import { AUTH_LIMITS } from '../state/auth-limits.ts';
import { checkPassword, isTooLong } from './password-hash.ts';

/** What the thread does. */
export type PasswordTask =
  | { readonly type: 'hash'; readonly password: string }
  | { readonly type: 'verify'; readonly password: string; readonly hash: string };

/** A thread that does one task after the other (node/password-thread.ts). */
export interface PasswordThread {
  /** `answered` is called for each task, in their order, with a hash or whether the password is the one of the hash. */
  start(answered: (result: string | boolean) => void, failed: (error: Error) => void): void;
  post(task: PasswordTask): void;
  stop(): void;
}

export interface PasswordLimits {
  /** Tasks that wait, or run. */
  readonly waitingMax: number;
  /** Log-ins of one address that wait, or run. */
  readonly ofAddressMax: number;
  /** Log-ins of one user that wait, or run. */
  readonly ofUserMax: number;
}

export const PASSWORD_LIMITS: PasswordLimits = { waitingMax: 64, ofAddressMax: 8, ofUserMax: 32 };

/** Who wants to log in. */
export interface LogIn {
  readonly user: string;
  readonly password: string;
  readonly door: Door;
  /** The address of the caller, without its port. */
  readonly address: string;
}

interface Waiting {
  readonly task: PasswordTask;
  readonly settle: (error: ServiceError | undefined, result: string | boolean) => void;
}

/** No password fits it; it costs as much as any other (PH3). */
const NOBODY = '$scrypt$ln=15,r=8,p=3$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

export class PasswordHasher {
  readonly #limits: PasswordLimits;
  readonly #newThread: () => PasswordThread;
  readonly #networkOf: (address: string) => string;
  #thread: PasswordThread | undefined;
  /** The first one runs (PH1). */
  readonly #waiting: Waiting[] = [];
  /** PH2. */
  readonly #ofAddress = new Map<string, number>();
  readonly #ofUser = new Map<string, number>();
  #closed = false;

  /**
   * A thread is made when it is first needed, and after one has failed. `networkOf`: by what an address is counted
   * (PH2).
   */
  constructor(
    newThread: () => PasswordThread,
    networkOf: (address: string) => string,
    limits: PasswordLimits = PASSWORD_LIMITS,
  ) {
    this.#newThread = newThread;
    this.#networkOf = networkOf;
    this.#limits = limits;
  }

  /** @throws ServiceError `INVALID_ARGUMENT` for a password that nobody could use; `RESOURCE_EXHAUSTED` (PH2). */
  async hash(password: string): Promise<string> {
    checkPassword(password);
    return String(await this.#run({ type: 'hash', password }));
  }

  /**
   * Whether the password is that of the user. `hash` is undefined for users that do not exist (PH3).
   *
   * @throws ServiceError `RESOURCE_EXHAUSTED` (PH2); `UNAVAILABLE` when the node stops
   */
  async verify({ user, password, address }: LogIn, hash: string | undefined): Promise<boolean> {
    if (Buffer.byteLength(user) > AUTH_LIMITS.nameBytesMax || isTooLong(password)) return false; // PH4
    const { ofAddressMax, ofUserMax } = this.#limits;
    const network = this.#networkOf(address);
    if ((this.#ofAddress.get(network) ?? 0) >= ofAddressMax) throw tooMany(`of the address ${network}`);
    if ((this.#ofUser.get(user) ?? 0) >= ofUserMax) throw tooMany(`of the user ${user}`);
    enter(this.#ofAddress, network);
    enter(this.#ofUser, user);
    try {
      const isRight = await this.#run({
        type: 'verify',
        password,
        hash: hash === undefined || hash === '' ? NOBODY : hash,
      });
      return isRight === true;
    } finally {
      leave(this.#ofAddress, network);
      leave(this.#ofUser, user);
    }
  }

  close(): void {
    this.#closed = true;
    this.#thread?.stop();
    this.#failAll('this node is stopping');
  }

  #run(task: PasswordTask): Promise<string | boolean> {
    if (this.#closed) throw new ServiceError('UNAVAILABLE', 'this node is stopping');
    if (this.#waiting.length >= this.#limits.waitingMax) throw tooMany('in all');
    return new Promise((resolve, reject) => {
      const settle: Waiting['settle'] = (error, result) => (error === undefined ? resolve(result) : reject(error));
      this.#waiting.push({ task, settle });
      if (this.#waiting.length === 1) this.#start();
    });
  }

  #start(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#thread ??= this.#started();
    this.#thread.post(next.task);
  }

  #started(): PasswordThread {
    const thread = this.#newThread();
    thread.start(
      (result) => {
        this.#waiting.shift()?.settle(undefined, result);
        this.#start();
      },
      (error) => {
        this.#thread = undefined;
        this.#failAll(`passwords cannot be checked: ${error.message}`);
      },
    );
    return thread;
  }

  #failAll(why: string): void {
    for (const { settle } of this.#waiting.splice(0)) settle(new ServiceError('UNAVAILABLE', why), false);
  }
}

function enter(counts: Map<string, number>, one: string): void {
  counts.set(one, (counts.get(one) ?? 0) + 1);
}

function leave(counts: Map<string, number>, one: string): void {
  const left = (counts.get(one) ?? 1) - 1;
  if (left === 0) counts.delete(one);
  else counts.set(one, left);
}

function tooMany(which: string): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', `too many log-ins ${which} wait for their turn; try again later`);
}
