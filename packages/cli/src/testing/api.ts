/** What `remora-server/testing` offers to tests. The declarations of the package are made of this file. */
import type { ClientOptions, ClientPorts, RemoraClient } from 'remora';

/** Milliseconds, or text such as `'250ms'`, `'31s'`, `'1h'` and `'1m30s'`. */
export type TestDuration = number | string;

export interface TestClusterOptions {
  /**
   * `running` (the default): time passes by itself, and `advance` skips some. `manual`: time stands still, except in
   * `advance` and while the cluster starts and stops. Equal tests then run through equal courses.
   */
  readonly clock?: 'running' | 'manual' | undefined;
  /** Where all random choices of node and clients begin. Default 1. */
  readonly seed?: number | undefined;
  /**
   * Also listen on free ports of 127.0.0.1, for programs without this clock: clients of etcd, HTTP, the command line.
   * Default false.
   */
  readonly listen?: boolean | undefined;
  /** Where the node and its clients log. Default: nowhere. */
  readonly logger?: ClientPorts['logger'] | undefined;
}

/** Options of `connect`: those of the SDK, without the ones that name or reach a server. */
export type TestClientOptions = Omit<ClientOptions, 'endpoints' | 'discover' | 'allowPlainText'>;

/** The addresses of a cluster that listens, each as `host:port`. */
export interface TestAddresses {
  /** For the SDK and for clients of etcd (gRPC). */
  readonly client: string;
  /** For the HTTP API. */
  readonly http: string;
  /** For `/health`, `/ready` and `/metrics`. */
  readonly health: string;
}

/** Whose session ends: a client's sessions, or the one to which a `ClientSession`, a held lock or an id belongs. */
export type ExpiringSession =
  | RemoraClient
  | bigint
  | { readonly lease: bigint }
  | { readonly handle: { readonly lease: string } };

/** A node of Remora in this process, with everything in memory, and faults on request. */
export interface TestCluster extends AsyncDisposable {
  /** The clock of the node and its clients. */
  readonly clock: ClientPorts['clock'];
  /** Where the cluster listens; undefined without `listen`. */
  readonly addresses: TestAddresses | undefined;

  /**
   * Connects a client of the SDK, on the cluster's clock and a network in memory. `stop` closes it.
   *
   * @throws RemoraError INVALID_ARGUMENT for invalid options; UNAVAILABLE after `stop`.
   */
  connect(options?: TestClientOptions): Promise<RemoraClient>;

  /**
   * Moves time forward. All timers of the node and its clients that become due fire in order, each at its own time, and
   * what follows from one happens before the next. `0` lets happen what is due now. Calls one after another wait for
   * each other.
   *
   * @throws RemoraError INVALID_ARGUMENT for anything but a duration of at most 30 days.
   */
  advance(duration: TestDuration): Promise<void>;

  /**
   * Ends sessions at the node now, as if their client had been silent for their TTL: what they hold passes on to
   * others. Their client is not notified. Until its next heartbeat or request it believes that it still holds its
   * locks, like a process that stood still: only the fencing version protects what it writes meanwhile.
   *
   * @throws RemoraError LEASE_NOT_FOUND when there is no such session.
   */
  expire(session: ExpiringSession): Promise<void>;

  /**
   * Cuts a client off: nothing it sends arrives, it receives nothing, and neither side is notified. Its sessions are
   * lost when their TTL has passed. What it had sent before may still be carried out.
   */
  cutOff(client: RemoraClient): void;
  /** Ends `cutOff`. Connections from before are broken; the client connects again. */
  reconnect(client: RemoraClient): void;
  /** Breaks a client's connections once, and notifies both sides. Requests under way are repeated. */
  disconnect(client: RemoraClient): void;

  /** Stops the node and starts it again with its data. Clients reconnect by themselves. */
  restart(): Promise<void>;

  /** Closes the clients and stops the node. Nothing of the cluster is left in the process. */
  stop(): Promise<void>;
}
