import { EventEmitter } from 'node:events';
import type { ZooKeeperClient, ZooKeeperDone } from 'remora/migrate';

const EPHEMERAL_SEQUENTIAL = 3;
const CODES = { connectionLoss: -4, noNode: -101, nodeExists: -110, notEmpty: -111, sessionExpired: -112 } as const;

interface Node {
  /** The client whose session it ends with. */
  readonly owner: MemoryZooKeeperClient | undefined;
  /** The number of the next sequential node below it. */
  next: number;
}

/** ZooKeeper in memory, as far as locks need it. */
export class MemoryZooKeeper {
  readonly nodes = new Map<string, Node>();

  client(sessionTimeoutMs = 60_000): MemoryZooKeeperClient {
    return new MemoryZooKeeperClient(this, sessionTimeoutMs);
  }

  /** Creates a node, as some other program does. */
  put(path: string): void {
    this.nodes.set(path, { owner: undefined, next: 0 });
  }

  children(path: string): readonly string[] {
    return [...this.nodes.keys()].filter((each) => parentOf(each) === path).map((each) => each.slice(path.length + 1));
  }

  create(path: string, mode: number, owner: MemoryZooKeeperClient): string {
    const parent = this.nodes.get(parentOf(path));
    if (parent === undefined && parentOf(path) !== '') throw failure('noNode');
    const isNumbered = mode === EPHEMERAL_SEQUENTIAL;
    const number = isNumbered && parent !== undefined ? String(parent.next++).padStart(10, '0') : '';
    if (this.nodes.has(path + number)) throw failure('nodeExists');
    this.nodes.set(path + number, { owner: isNumbered ? owner : undefined, next: 0 });
    return path + number;
  }

  remove(path: string): void {
    if (this.children(path).length > 0) throw failure('notEmpty');
    if (!this.nodes.delete(path)) throw failure('noNode');
  }
}

type Call = 'create' | 'setData' | 'getChildren' | 'remove';

/** A client with a session. As that of node-zookeeper-client, it has one session for all its life. */
export class MemoryZooKeeperClient extends EventEmitter implements ZooKeeperClient {
  readonly calls: string[] = [];
  /** Runs before the next call of this kind is applied. */
  readonly before = new Map<Call, () => void>();
  /** The connection breaks at the next call of this kind: before or after the server has applied it. */
  readonly breaksAt = new Map<Call, 'before' | 'after'>();
  /** Calls wait to be sent. */
  stalled = false;
  readonly #server: MemoryZooKeeper;
  readonly #sessionTimeoutMs: number;
  #state = 'SYNC_CONNECTED';

  constructor(server: MemoryZooKeeper, sessionTimeoutMs: number) {
    super();
    this.#server = server;
    this.#sessionTimeoutMs = sessionTimeoutMs;
  }

  getState(): { readonly name: string } {
    return { name: this.#state };
  }

  getSessionTimeout(): number {
    return this.#sessionTimeoutMs;
  }

  create(path: string, _data: Buffer, mode: number, done: ZooKeeperDone<string>): void {
    this.#call('create', path, () => this.#server.create(path, mode, this), done);
  }

  setData(path: string, _data: Buffer, done: ZooKeeperDone<unknown>): void {
    this.#call('setData', path, () => this.#requireNode(path), done);
  }

  getChildren(path: string, done: ZooKeeperDone<string[]>): void {
    const list = () => {
      this.#requireNode(path);
      return this.#server.children(path).toReversed();
    };
    this.#call('getChildren', path, list, done);
  }

  remove(path: string, done: (error: unknown) => void): void {
    this.#call<void>('remove', path, () => this.#server.remove(path), done);
  }

  disconnect(): void {
    this.#state = 'DISCONNECTED';
    this.emit('disconnected');
  }

  connect(): void {
    this.#state = 'SYNC_CONNECTED';
    this.emit('connected');
  }

  /** The server ends the session, and the client learns of it. */
  expire(): void {
    for (const [path, { owner }] of this.#server.nodes) if (owner === this) this.#server.nodes.delete(path);
    this.#state = 'EXPIRED';
    this.emit('expired');
    this.disconnect();
  }

  #requireNode(path: string): void {
    if (!this.#server.nodes.has(path)) throw failure('noNode');
  }

  #call<Result>(call: Call, path: string, apply: () => Result, done: (error: unknown, result: Result) => void): void {
    this.calls.push(`${call} ${path}`);
    if (this.stalled) return;
    this.#take(this.before, call)?.();
    const breaks = this.#take(this.breaksAt, call);
    const { error, result } = breaks === 'before' ? { error: undefined, result: undefined } : attempt(apply);
    queueMicrotask(() => {
      if (breaks === undefined) return done(error, result as Result);
      done(failure('connectionLoss'), undefined as Result);
      this.disconnect();
    });
  }

  #take<Value>(from: Map<Call, Value>, call: Call): Value | undefined {
    const value = from.get(call);
    from.delete(call);
    return value;
  }
}

function attempt<Result>(apply: () => Result): { readonly error?: unknown; readonly result?: Result } {
  try {
    return { result: apply() };
  } catch (error) {
    return { error };
  }
}

function failure(name: keyof typeof CODES): Error {
  return Object.assign(new Error(`Exception: ${name}[${CODES[name]}]`), { code: CODES[name], name });
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
