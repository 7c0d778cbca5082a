import { notConnected } from './migrate-errors.ts';
import {
  CREATE,
  expired,
  isNodeExists,
  isNoNode,
  isSessionExpired,
  type ZooKeeperClient,
  type ZooKeeperDone,
} from './zookeeper-client.ts';

/** More leftovers than this are left to the end of the session. */
export const LEFTOVERS_MAX = 10_000;

/** Nodes below `directory` whose names begin with `prefix`. */
export interface NumberedNodes {
  readonly directory: string;
  readonly prefix: string;
}

const SESSIONS = new WeakMap<ZooKeeperClient, ZooKeeperSession>();

/** The session of a client: a client of node-zookeeper-client has one for all its life. */
export function sessionOf(client: ZooKeeperClient): ZooKeeperSession {
  const session = SESSIONS.get(client) ?? new ZooKeeperSession(client);
  SESSIONS.set(client, session);
  return session;
}

/**
 * The calls of a client of ZooKeeper as promises.
 *
 * ZS1. A call ends with the connection. The client itself would hold it back until it is connected again, and never
 *      answer it if the session expires before that.
 * ZS2. A node that may exist and must not is deleted as soon as the client is connected, for as long as the session
 *      lives. The session's end deletes it otherwise.
 */
export class ZooKeeperSession {
  readonly #client: ZooKeeperClient;
  readonly #unanswered = new Set<(error: Error) => void>();
  readonly #leftovers = new Set<NumberedNodes>();
  #hasExpired = false;

  constructor(client: ZooKeeperClient) {
    this.#client = client;
    client.on('connected', () => void this.#deleteLeftovers());
    client.on('disconnected', () => this.#endCalls());
    client.on('expired', () => {
      this.#hasExpired = true;
      this.#leftovers.clear();
      this.#endCalls();
    });
  }

  /** In milliseconds. Known only while the client is connected. */
  get timeoutMs(): number {
    this.#requireConnected();
    return this.#client.getSessionTimeout();
  }

  /** Creates an ephemeral node whose name is `path` with a number behind it. */
  createNumbered(path: string, data: Buffer): Promise<string> {
    return this.#call((done) => this.#client.create(path, data, CREATE.ephemeralSequential, done));
  }

  /** The names of the nodes below `path`. Empty if it does not exist. */
  children(path: string): Promise<readonly string[]> {
    const answered = this.#call<readonly string[]>((done) => this.#client.getChildren(path, done));
    return answered.catch((error: unknown) => {
      if (isNoNode(error)) return [];
      throw error;
    });
  }

  /** Resolves to false if the node of this session does not exist. As a write, it never reads a stale state. */
  touch(path: string, data: Buffer): Promise<boolean> {
    const written = this.#call<unknown>((done) => this.#client.setData(path, data, done));
    return written.then(() => true, ifGone(false));
  }

  /** Resolves also if the node does not exist. */
  remove(path: string): Promise<void> {
    const removed = this.#call<undefined>((done) => this.#client.remove(path, (error) => done(error, undefined)));
    return removed.catch(ifGone(undefined));
  }

  /** Creates the node, and those above it. Resolves to false if it exists. */
  async makeDirectory(path: string): Promise<boolean> {
    const make = () => this.#call<string>((done) => this.#client.create(path, EMPTY, CREATE.persistent, done));
    try {
      await make().catch(async (error: unknown) => {
        const parent = path.slice(0, path.lastIndexOf('/'));
        if (!isNoNode(error) || parent === '') throw error;
        await this.makeDirectory(parent);
        await make();
      });
      return true;
    } catch (error) {
      if (isNodeExists(error)) return false;
      throw error;
    }
  }

  /** ZS2. */
  leave(nodes: NumberedNodes): void {
    if (this.#hasExpired || this.#leftovers.size >= LEFTOVERS_MAX) return;
    this.#leftovers.add(nodes);
    void this.#deleteLeftovers();
  }

  async #deleteLeftovers(): Promise<void> {
    for (const leftover of this.#leftovers) {
      try {
        await this.#delete(leftover);
        this.#leftovers.delete(leftover);
      } catch {
        // Again when it is connected the next time.
      }
    }
  }

  async #delete({ directory, prefix }: NumberedNodes): Promise<void> {
    // Servers apply writes in one order, refused ones too: this one has applied the create by now if it answers.
    await this.remove(`${directory}/${prefix}none`);
    for (const child of await this.children(directory)) {
      if (child.startsWith(prefix)) await this.remove(`${directory}/${child}`);
    }
  }

  #call<Result>(send: (done: ZooKeeperDone<Result>) => void): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#requireConnected();
      this.#unanswered.add(reject);
      send((error, result) => {
        this.#unanswered.delete(reject);
        if (error) reject(error);
        else resolve(result);
      });
    });
  }

  #requireConnected(): void {
    if (this.#hasExpired) throw expired();
    if (this.#client.getState().name !== 'SYNC_CONNECTED') throw notConnected();
  }

  /** ZS1. */
  #endCalls(): void {
    const unanswered = [...this.#unanswered];
    this.#unanswered.clear();
    for (const reject of unanswered) reject(this.#hasExpired ? expired() : notConnected());
  }
}

const EMPTY = Buffer.alloc(0);

function ifGone<Result>(result: Result): (error: unknown) => Result {
  return (error) => {
    if (isNoNode(error) || isSessionExpired(error)) return result;
    throw error;
  };
}
