import { longerThanSession, requireCalls, wrongPath } from './migrate-errors.ts';
import type { OtherLock, OtherLocks } from './other-locks.ts';
import { isNoNode, type ZooKeeperClient } from './zookeeper-client.ts';
import { type NumberedNodes, sessionOf, type ZooKeeperSession } from './zookeeper-session.ts';

/** Curator's, of `InterProcessMutex`. */
const LOCK = 'lock-';
const HOLDER_OR_WAITER = /lock--?\d+$/;
/** How much of its timeout a session surely lives on: ZooKeeper's leader hears of it later than the client's server. */
const OF_SESSION_TIMEOUT = 2 / 3;
/** How often the lock's node is made. Others may delete it while it is empty. */
const ATTEMPTS_MAX = 3;
const PATH = /^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/;
const CALLS = ['getState', 'getSessionTimeout', 'create', 'setData', 'getChildren', 'remove', 'on'];
/** Shown to people who look at the node. */
const DATA = Buffer.from('held by a service that locks in Remora, too');

/**
 * Locks of ZooKeeper, as Curator's `InterProcessMutex` takes them: an ephemeral node `_c_GUID-lock-NUMBER` below the
 * node of the lock for each holder and waiter, of which the lowest number holds the lock. The name of a lock is the
 * path of its node.
 *
 * `client`: a client of node-zookeeper-client that is connected, or a function that returns the present one. A client
 * whose session has expired is of no use any more.
 *
 * ZL1. A lock ends with the session of its client, whose timeout must be at least one and a half times `ttl`.
 * ZL2. A node of which the program does not know whether it was created, or deleted, is deleted once it is connected
 *      again.
 * ZL3. A lock's node that did not exist is made as a persistent one, and deleted with its lock if nobody waits.
 */
export function zooKeeperLocks(client: ZooKeeperClient | (() => ZooKeeperClient)): OtherLocks {
  const current = typeof client === 'function' ? client : () => client;
  const session = (): ZooKeeperSession => {
    const present = current();
    requireCalls('zooKeeperLocks', 'a client of node-zookeeper-client', present, CALLS);
    return sessionOf(present);
  };
  if (typeof client !== 'function') session();
  return {
    tryAcquire: async (name, { ttlMs, owner }) => {
      if (!PATH.test(name)) throw wrongPath(name);
      const attempt = new Attempt(session(), { directory: name, prefix: `_c_${owner}-` });
      return attempt.run(ttlMs);
    },
  };
}

/** One attempt to acquire one lock. The names of its nodes begin as those of no other. */
class Attempt {
  readonly #session: ZooKeeperSession;
  readonly #nodes: NumberedNodes;
  #madeDirectory = false;

  constructor(session: ZooKeeperSession, nodes: NumberedNodes) {
    this.#session = session;
    this.#nodes = nodes;
  }

  async run(ttlMs: number): Promise<OtherLock | undefined> {
    this.#requireLongerSession(ttlMs);
    const present = await this.#session.children(this.#nodes.directory);
    if (present.some((child) => HOLDER_OR_WAITER.test(child))) return undefined;
    try {
      await this.#enter();
      const path = await this.#pathIfFirst();
      return path === undefined ? undefined : this.#lock(path);
    } catch (error) {
      this.#session.leave(this.#nodes); // ZL2.
      throw error;
    }
  }

  /** ZL1. */
  #requireLongerSession(ttlMs: number): void {
    const { timeoutMs } = this.#session;
    const ttlMaxMs = Math.floor(timeoutMs * OF_SESSION_TIMEOUT);
    if (ttlMs > ttlMaxMs) throw longerThanSession({ ttl: ttlMs, ttlMax: ttlMaxMs, timeout: timeoutMs });
  }

  async #enter(): Promise<void> {
    const { directory, prefix } = this.#nodes;
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#session.createNumbered(`${directory}/${prefix}${LOCK}`, DATA);
        return;
      } catch (error) {
        if (!isNoNode(error) || attempt === ATTEMPTS_MAX) throw error;
      }
      this.#madeDirectory = await this.#session.makeDirectory(directory);
    }
  }

  /** Keeps the node of this attempt if it is the first one, and deletes it otherwise. */
  async #pathIfFirst(): Promise<string | undefined> {
    const { directory, prefix } = this.#nodes;
    const children = (await this.#session.children(directory)).toSorted(byNumber);
    const kept = children[0]?.startsWith(prefix) ? children[0] : undefined;
    // A client that repeats its calls may have created several.
    const others = children.filter((child) => child.startsWith(prefix) && child !== kept);
    for (const child of others) await this.#session.remove(`${directory}/${child}`);
    return kept && `${directory}/${kept}`;
  }

  #lock(path: string): OtherLock {
    return {
      renew: () => this.#session.touch(path, DATA),
      release: () => this.#release(path),
    };
  }

  async #release(path: string): Promise<void> {
    try {
      await this.#session.remove(path);
    } catch (error) {
      this.#session.leave(this.#nodes); // ZL2.
      throw error;
    }
    // ZL3. It is kept if somebody waits: then it is not empty.
    if (this.#madeDirectory) await this.#session.remove(this.#nodes.directory).catch(() => {});
  }
}

/** As Curator sorts them. */
function byNumber(a: string, b: string): number {
  const [x, y] = [numberOf(a), numberOf(b)];
  return x < y ? -1 : Number(x > y);
}

function numberOf(child: string): string {
  const at = child.lastIndexOf(LOCK);
  return at < 0 ? child : child.slice(at + LOCK.length);
}
