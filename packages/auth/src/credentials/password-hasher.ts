/**
 * Hashes and verifies passwords in a thread of its own.
 *
 * PH1. One at a time for each node: a hash takes a core for tens of milliseconds, and log-ins must not take the cores
 *      from everything else. Never in libuv's pool, whose threads sync the log.
 * PH2. What waits is bounded, in all and for each address and user: a flood from one of them leaves room for others.
 *      What is beyond a bound is refused at once.
 * PH3. A log-in takes as long for a user that does not exist as for one that does.
 */
import { ServiceError } from '@remora/base';
import type { Door } from '@remora/protocol';
import { checkPassword } from './password-hash.ts';

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
  /** Log-ins of one address that wait, or run; the same for one user. */
  readonly waitingOfOneMax: number;
}

export const PASSWORD_LIMITS: PasswordLimits = { waitingMax: 64, waitingOfOneMax: 8 };

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
  #thread: PasswordThread | undefined;
  /** The first one runs (PH1). */
  readonly #waiting: Waiting[] = [];
  /** By address and by user (PH2). */
  readonly #ofOne = new Map<string, number>();
  #closed = false;

  /** A thread is made when it is first needed, and after one has failed. */
  constructor(newThread: () => PasswordThread, limits: PasswordLimits = PASSWORD_LIMITS) {
    this.#newThread = newThread;
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
    const ones = [`address ${address}`, `user ${user}`];
    for (const one of ones) {
      if ((this.#ofOne.get(one) ?? 0) >= this.#limits.waitingOfOneMax) throw tooMany(`of the ${one}`);
    }
    for (const one of ones) this.#ofOne.set(one, (this.#ofOne.get(one) ?? 0) + 1);
    try {
      const isRight = await this.#run({
        type: 'verify',
        password,
        hash: hash === undefined || hash === '' ? NOBODY : hash,
      });
      return isRight === true;
    } finally {
      for (const one of ones) this.#leave(one);
    }
  }

  close(): void {
    this.#closed = true;
    this.#thread?.stop();
    this.#failAll('this node is stopping');
  }

  #leave(one: string): void {
    const left = (this.#ofOne.get(one) ?? 1) - 1;
    if (left === 0) this.#ofOne.delete(one);
    else this.#ofOne.set(one, left);
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

function tooMany(which: string): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', `too many log-ins ${which} wait for their turn; try again later`);
}
