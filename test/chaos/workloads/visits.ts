/**
 * Users whose rights change while they work: puts, gets, locks, waits for locks, and watches. Only in runs with
 * authentication.
 */
import { ServiceError } from '@remora/base';
import type { RemoraClient } from 'remora';
import type { OpenOperation } from '../journal/journal.ts';
import { type Right, type Visitor, visitedOf } from '../users/rights.ts';
import { type Client, inRounds, type MakeWorkers, namesFor, type Turn, type Visits } from './workload.ts';

/**
 * Operations of one log-in. Afterwards the visitor logs in again. All log-ins of a run come from one address, of which
 * a node lets few wait, and each takes a tenth of a second: few are made.
 */
const OPERATIONS_MAX = 400;
const WATCH_MS_MAX = 4_000;
const HELD_MS_MAX = 1_500;
const WAIT_MS = 4_000;
/** Between two attempts of a visitor who does not exist, or whose log-in was refused. */
const AWAY_MS = 1_000;

/** What a visitor asked for. */
export interface RecordedVisit {
  readonly c: string;
  readonly k: string;
  readonly op: 'logIn' | 'put' | 'get' | 'acquire' | 'wait';
  readonly user: string;
  /** The number of the password of its log-in. Null: a certificate. */
  readonly password: number | null;
  readonly needs: Right;
  readonly v?: string;
}

/** The events that a watch of a visitor has shown. */
export interface RecordedSights {
  readonly sights: readonly string[];
  readonly user: string;
  readonly password: number | null;
}

export const visits: MakeWorkers = (client) => {
  const { visits } = client;
  if (visits === undefined) return [];
  const value = namesFor(client, 'v');
  return visits.visitors.flatMap((visitor) => {
    const guest = new Guest(client, visits, visitor);
    return [worker(client, guest, value), inRounds(client, (r) => guest.watch(r))];
  });
};

function worker(client: Client, guest: Guest, value: () => string): Turn {
  return inRounds(client, async (r) => {
    const { random } = client;
    const key = `${visitedOf(r)}${random.int(3)}`;
    switch (random.int(10)) {
      case 0:
      case 1:
        return guest.acquire(r, `${key}/lock`);
      case 2:
        return guest.wait(r, `${key}/${client.name}`);
      case 3:
      case 4:
      case 5:
        return guest.get(r, key, random.int(2) === 0);
      default:
        return guest.put(r, key, value());
    }
  });
}

/** A client that is logged in. */
interface LogIn {
  readonly remora: RemoraClient;
  readonly password: number | null;
  /** How many operations it is still used for. */
  left: number;
}

/** One visitor. Its workers share a client. */
class Guest {
  readonly #client: Client;
  readonly #visits: Visits;
  readonly #visitor: Visitor;
  readonly #name: string;
  #log: LogIn | undefined;
  #loggingIn: Promise<LogIn | undefined> | undefined;

  constructor(client: Client, visits: Visits, visitor: Visitor) {
    this.#client = client;
    this.#visits = visits;
    this.#visitor = visitor;
    this.#name = `${client.name}.${visitor.user}`;
  }

  put(r: number, k: string, v: string): Promise<void> {
    return this.#ask(r, { k, op: 'put', needs: 'write', v }, async (remora) => {
      const { revision } = await remora.kv.put(k, v);
      return { ok: true, revision };
    });
  }

  get(r: number, k: string, serializable: boolean): Promise<void> {
    return this.#ask(r, { k, op: 'get', needs: 'read' }, async (remora) => {
      await remora.kv.get(k, { serializable });
      return { ok: true };
    });
  }

  acquire(r: number, k: string): Promise<void> {
    return this.#ask(r, { k, op: 'acquire', needs: 'lock' }, async (remora) => {
      const held = await remora.lock(k).tryAcquire();
      if (held !== undefined) await held.release().catch(unlessRefused);
      return { ok: held !== undefined };
    });
  }

  /** Waits for a lock that another user holds, and that is released meanwhile. */
  async wait(r: number, k: string): Promise<void> {
    const { remora, random, pause, journal } = this.#client;
    const held = await remora.lock(k).tryAcquire().catch(unlessRefused);
    if (held === undefined) return;
    let since: number | undefined;
    const releasing = (async () => {
      await pause(random.int(HELD_MS_MAX));
      const nowNs = journal.nowNs;
      const isHeld = held.remainingMs > 0;
      await held.release().then(
        () => {
          if (isHeld) since = nowNs;
        },
        (error: unknown) => unlessRefused(error),
      );
    })();
    await this.#ask(r, { k, op: 'wait', needs: 'lock' }, async (visitor) => {
      const got = await visitor.lock(k).acquire({ wait: WAIT_MS });
      const answeredNs = journal.nowNs;
      await releasing;
      await got.release().catch(unlessRefused);
      // Nobody was granted the lock before its holder began to release it.
      return { ok: true, answered: answeredNs, ...(since !== undefined && since < answeredNs && { since }) };
    });
    await releasing;
  }

  async watch(r: number): Promise<void> {
    const { random, pause, journal } = this.#client;
    const log = await this.#loggedIn(r);
    if (log === undefined) return;
    const { remora, password } = log;
    const watch = remora.kv.watch({ prefix: visitedOf(r) });
    const timer = pause(Math.min(random.int(WATCH_MS_MAX), journal.roundLeftMs)).then(() => watch.close());
    let sights: string[] = [];
    const note = (): void => {
      const recorded: RecordedSights = { sights, user: this.#visitor.user, password };
      if (sights.length > 0) journal.note('visits', r, recorded);
      sights = [];
    };
    try {
      for await (const { type, kv } of watch) {
        if (type !== 'put') continue;
        sights.push(kv.value.toString());
        note(); // Each with its own time.
      }
    } catch (error) {
      if (codeOf(error) === 'UNAUTHENTICATED') this.#leave(log);
    }
    note();
    await timer;
  }

  async #ask(
    r: number,
    what: Pick<RecordedVisit, 'k' | 'op' | 'needs' | 'v'>,
    ask: (remora: RemoraClient) => Promise<object>,
  ): Promise<void> {
    const log = await this.#loggedIn(r);
    if (log === undefined) return;
    const { remora, password } = log;
    const operation = this.#begin(r, { ...what, password });
    try {
      operation.end('done', { a: await ask(remora) });
    } catch (error) {
      if (refusedAs(operation, error) === 'UNAUTHENTICATED') this.#leave(log);
    }
    if (--log.left <= 0) this.#leave(log);
  }

  /** Undefined: there is no such user now, the log-in was refused, or no gateway answered. */
  async #loggedIn(r: number): Promise<LogIn | undefined> {
    if (this.#log !== undefined) return this.#log;
    this.#loggingIn ??= this.#logIn(r);
    const log = await this.#loggingIn;
    this.#loggingIn = undefined;
    this.#log = log;
    return log;
  }

  async #logIn(r: number): Promise<LogIn | undefined> {
    const { pause, random } = this.#client;
    const { user, by } = this.#visitor;
    const password = by === 'password' ? this.#visits.password(user) : null;
    if (password === undefined) {
      await pause(AWAY_MS);
      return undefined;
    }
    const operation = password === null ? undefined : this.#begin(r, { k: '', op: 'logIn', needs: 'exists', password });
    try {
      const remora = await this.#visits.connect(user, password);
      operation?.end('done', { a: { ok: true } });
      return { remora, password, left: 1 + random.int(OPERATIONS_MAX) };
    } catch (error) {
      if (operation === undefined) unlessRefused(error);
      else refusedAs(operation, error);
      await pause(AWAY_MS);
      return undefined;
    }
  }

  /** Whatever else is in progress with this log-in ends with its client. */
  #leave(log: LogIn): void {
    if (this.#log !== log) return;
    this.#log = undefined;
    void log.remora.close();
  }

  #begin(r: number, what: Pick<RecordedVisit, 'k' | 'op' | 'needs' | 'v' | 'password'>): OpenOperation {
    const visit: RecordedVisit = { ...what, c: this.#name, user: this.#visitor.user };
    return this.#client.journal.begin('visits', r, visit);
  }
}

/** Records how the operation failed. Returns the code. */
function refusedAs(operation: OpenOperation, error: unknown): string {
  if (!(error instanceof ServiceError)) throw error;
  const { code } = error;
  const isUnknown = error.mayBeApplied || code === 'CANCELED';
  operation.end(isUnknown ? 'unknown' : 'refused', { code, a: { why: error.message } });
  return code;
}

function codeOf(error: unknown): string {
  if (!(error instanceof ServiceError)) throw error;
  return error.code;
}

function unlessRefused(error: unknown): undefined {
  codeOf(error);
}
