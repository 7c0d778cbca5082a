import { Client, credentials, type ServiceError as GrpcError, Metadata, status } from '@grpc/grpc-js';
import { formatDurationMs, isErrorCode, readPlainEndpoints, ServiceError } from '@remora/base';
import { admin } from '@remora/protocol/remora';
import { bytes, flag, object, requireRevision, text } from '../options/option-kinds.ts';
import { requireCount } from '../options/options.ts';
import { mayTry } from '../transport/discovery.ts';
import { askGateways } from './ask-gateways.ts';

/** A method of a generated service. */
interface UnaryMethod<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** A change of a range: a split, a merge, a move of a replica and so on. */
export type RangeChangeRequest = NonNullable<admin.ChangeRangeRequest['change']>;

/** A range as the caller saw it: the change is refused if its epoch has changed since. */
export type SeenRange = Pick<admin.Range, 'id' | 'confVersion' | 'version'>;

export interface AdminClientOptions {
  /** Gateways, as `host:port`. Calls go to the first one that answers. */
  readonly endpoints: readonly string[];
  /** The time limit of one call, in ms. */
  readonly timeoutMs: number;
  /** How long to wait for a connection to one node, in ms. */
  readonly connectTimeoutMs: number;
  /** Use other gateways of the cluster when none of `endpoints` works. Default true. */
  readonly discover?: boolean;
}

/** A node that hangs is detected after both; its calls then go to another node. */
const KEEPALIVE_MS = 2_000;
const KEEPALIVE_TIMEOUT_MS = 2_000;
/** How often the client asks the cluster for its gateways, and how many of them it keeps. */
const LEARN_MS = 60_000;
const FOUND_MAX = 5;
const FOUND_TIMEOUT_MS = 1_000;

/**
 * The calls of `remora.v1.Admin`, for administration.
 *
 * A call goes to one node, and to the next one if that node is gone: every call can be repeated without harm. After a
 * call that timed out, the next call goes to the next node. Given endpoints come first, other gateways of the same
 * cluster after them; a client that makes more than one call asks the cluster for these.
 *
 * Every method throws `ServiceError`: the error of the node; INVALID_ARGUMENT for wrong arguments; UNAVAILABLE with the
 * detail `unreached` when no node can be reached. A method that changes something may also end as UNKNOWN_OUTCOME: the
 * answer of a node was lost, and the change may have been made.
 */
export class AdminClient {
  readonly #options: AdminClientOptions;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  /** The present endpoint, or the last one. */
  #endpoint = '';
  #next = 0;
  #found: readonly string[] = [];
  #cluster = '';
  /** When to ask for the gateways next; undefined before the first answer. */
  #learnAtMs: number | undefined;

  /**
   * @throws ServiceError INVALID_ARGUMENT for invalid endpoints, and for `https://`, which this client does not
   *   support.
   */
  constructor(options: AdminClientOptions) {
    this.#options = { ...options, endpoints: readPlainEndpoints(options.endpoints, 'the client for administration') };
  }

  /** The nodes of the cluster, with their states. */
  nodes(): Promise<admin.ListNodesResponse> {
    return this.#call(admin.AdminService.listNodes, {});
  }

  /** A page of ranges in the order of their keys, beginning with the range of the routing key `from`. */
  async rangesFrom(from: Uint8Array, limit: number): Promise<admin.ListRangesResponse> {
    return this.#call(admin.AdminService.listRanges, {
      from: bytesOf(from, 'from'),
      limit: limitOf(limit),
      rangeId: 0n,
    });
  }

  /** One range. @throws ServiceError RANGE_NOT_FOUND */
  async range(rangeId: number): Promise<admin.Range> {
    const request = { from: Buffer.of(), limit: 1, rangeId: idOf(rangeId, 'rangeId') };
    const { ranges } = await this.#call(admin.AdminService.listRanges, request);
    const [range] = ranges;
    if (range === undefined) throw new ServiceError('RANGE_NOT_FOUND', `there is no range ${rangeId}`);
    return range;
  }

  /** The ranges with the highest load of one kind, such as `reads` or `writes`. */
  async hotRanges(by: string, limit: number): Promise<admin.ListRangesResponse> {
    text(by, 'by');
    return this.#call(admin.AdminService.listHotRanges, { by, limit: limitOf(limit) });
  }

  /** What is wrong with the cluster. */
  check(): Promise<admin.CheckClusterResponse> {
    return this.#call(admin.AdminService.checkCluster, {});
  }

  /** All settings of the cluster. */
  async settings(): Promise<readonly admin.Setting[]> {
    const { settings } = await this.#call(admin.AdminService.listSettings, {});
    return settings;
  }

  /** Changes a setting; an empty value resets it to its default. Returns all settings after the change. */
  async setSetting(name: string, value: string): Promise<readonly admin.Setting[]> {
    text(name, 'name');
    text(value, 'value');
    const { settings } = await this.#change(admin.AdminService.setSetting, { name, value });
    return settings;
  }

  /** Transfers the leadership of a range to a node that has a replica of it. */
  async transferLeader(rangeId: number, toNode: number): Promise<admin.TransferLeaderResponse> {
    const request = { rangeId: idOf(rangeId, 'rangeId'), toNode: idOf(toNode, 'toNode') };
    return this.#change(admin.AdminService.transferLeader, request);
  }

  /** Discards the history of keys before a revision; 0 stands for the newest one. */
  async compact(revision: number): Promise<admin.CompactResponse> {
    return this.#change(admin.AdminService.compact, { revision: idOf(revision, 'revision') });
  }

  /**
   * Makes an empty cluster start after this revision, as if all revisions up to it had been used.
   *
   * @throws ServiceError INVALID_ARGUMENT when it has keys or leases.
   */
  async beginRestore(revision: number): Promise<admin.BeginRestoreResponse> {
    return this.#change(admin.AdminService.beginRestore, { revision: idOf(revision, 'revision') });
  }

  /**
   * Begins a change of a range, and returns the operator that carries it out. A `split` at an empty key splits in the
   * middle.
   *
   * @throws ServiceError INVALID_ARGUMENT when the range has changed since it was seen, or the change is not possible.
   */
  async changeRange(seen: SeenRange, change: RangeChangeRequest): Promise<admin.Operator> {
    object(seen, 'the range that is to be changed');
    object(change, 'the change of a range');
    const { id, confVersion, version } = seen;
    const epoch = { confVersion: epochOf(confVersion, 'confVersion'), version: epochOf(version, 'version') };
    return this.#change(admin.AdminService.changeRange, { rangeId: epochOf(id, 'id'), ...epoch, change });
  }

  /** Spreads the ranges with routing keys from `start` up to, but without, `end` over the nodes. */
  async scatter(span: { readonly start: Uint8Array; readonly end: Uint8Array }): Promise<admin.ScatterResponse> {
    object(span, 'the span to scatter');
    const [start, end] = [bytesOf(span.start, 'start'), bytesOf(span.end, 'end')];
    return this.#change(admin.AdminService.scatter, { start, end });
  }

  /** Balances the cluster now. With `dryRun` it only returns what it would do. */
  async rebalance(options: { readonly dryRun: boolean }): Promise<admin.RebalanceResponse> {
    object(options, 'the options of rebalance');
    flag(options.dryRun, 'dryRun');
    const { rebalance } = admin.AdminService;
    return options.dryRun ? this.#call(rebalance, options) : this.#change(rebalance, options);
  }

  /** The operators in progress, oldest first, or the ended ones, newest first; of one range if `rangeId` is given. */
  async operators(of: {
    readonly ended: boolean;
    readonly rangeId?: number;
    readonly limit: number;
  }): Promise<readonly admin.Operator[]> {
    object(of, 'which operators');
    flag(of.ended, 'ended');
    const request = { ended: of.ended, rangeId: idOf(of.rangeId ?? 0, 'rangeId'), limit: limitOf(of.limit) };
    const { operators } = await this.#call(admin.AdminService.listOperators, request);
    return operators;
  }

  /** Cancels an operator. Returns it as it ended. */
  async cancelOperator(id: number): Promise<admin.Operator> {
    return this.#change(admin.AdminService.cancelOperator, { id: idOf(id, 'id') });
  }

  /** The schedulers, and which of them are paused. */
  async schedulers(): Promise<readonly admin.Scheduler[]> {
    const { schedulers } = await this.#call(admin.AdminService.listSchedulers, {});
    return schedulers;
  }

  /** Pauses a scheduler for so many ms; 0 resumes it. Returns all schedulers after the change. */
  async pauseScheduler(name: string, forMs: number): Promise<readonly admin.Scheduler[]> {
    text(name, 'name');
    const request = { name, forMs: idOf(forMs, 'forMs') };
    const { schedulers } = await this.#change(admin.AdminService.pauseScheduler, request);
    return schedulers;
  }

  /** Sets the duty of a node, such as `up` or maintenance; `forMs` limits a maintenance. */
  async setNodeDuty(nodeId: number, duty: string, forMs = 0): Promise<void> {
    text(duty, 'duty');
    const request = { nodeId: idOf(nodeId, 'nodeId'), duty, forMs: idOf(forMs, 'forMs') };
    await this.#change(admin.AdminService.setNodeDuty, request);
  }

  /** Explains what is happening to a range or a node, or why nothing is: one statement a line. */
  async why(of: { readonly rangeId: number } | { readonly nodeId: number }): Promise<readonly string[]> {
    object(of, 'a range or a node');
    const [rangeId, nodeId] = 'rangeId' in of ? [of.rangeId, 0] : [0, of.nodeId];
    const request = { rangeId: idOf(rangeId, 'rangeId'), nodeId: idOf(nodeId, 'nodeId') };
    const { lines } = await this.#call(admin.AdminService.why, request);
    return lines;
  }

  /** One step of a recovery from lost majorities. Repeat it until it is done. It loses data. */
  async recoverMajority(request: admin.RecoverMajorityRequest): Promise<admin.RecoverMajorityResponse> {
    object(request, 'the request');
    flag(request.dryRun, 'dryRun');
    const { recoverMajority } = admin.AdminService;
    return request.dryRun ? this.#call(recoverMajority, request) : this.#change(recoverMajority, request);
  }

  /** Closes the connection. A later call opens a new one. */
  close(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  /** A node whose answer was lost may have made the change, whatever the attempts after that say. */
  async #change<Request, Response>(method: UnaryMethod<Request, Response>, request: Request): Promise<Response> {
    let lost = false;
    try {
      return await this.#call(method, request, () => {
        lost = true;
      });
    } catch (error) {
      if (!lost || !(error instanceof ServiceError)) throw error;
      throw new ServiceError(
        'UNKNOWN_OUTCOME',
        `the answer was lost, and the call may have taken effect: ${error.message}`,
        { cause: error },
      );
    }
  }

  /** `onLost` is called for each answer that is lost. */
  async #call<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    onLost: () => void = () => {},
  ): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const client = await this.#connected();
      try {
        const response = await this.#once(client, method, request);
        this.#learnLater();
        return response;
      } catch (error) {
        if (isLost(error)) onLost();
        const last = !isGone(error) || tries >= this.endpoints.length;
        if (!last || isSilent(error)) this.close();
        if (last) throw this.#toServiceError(error);
      }
    }
  }

  /** A connection to the present endpoint, or to the next one that can be reached. Concurrent calls share it. */
  #connected(): Client | Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** The given endpoints, and the discovered ones after them. */
  get endpoints(): readonly string[] {
    return [...this.#options.endpoints, ...this.#found];
  }

  async #connect(): Promise<Client> {
    const endpoints = this.endpoints;
    for (let tries = 0; tries < endpoints.length; tries++) {
      const endpoint = endpoints[this.#next++ % endpoints.length] ?? '';
      const client = await this.#connectTo(endpoint);
      if (client === undefined) continue;
      this.#client = client;
      this.#endpoint = endpoint;
      return client;
    }
    throw new ServiceError('UNAVAILABLE', `no node answers at ${endpoints.join(', ')}`, {
      details: { unreached: true },
    });
  }

  async #connectTo(endpoint: string): Promise<Client | undefined> {
    const { connectTimeoutMs } = this.#options;
    const isFound = this.#found.includes(endpoint);
    // The address may belong to another cluster in the network of this process.
    if (
      isFound &&
      (await askGateways(endpoint, { timeoutMs: FOUND_TIMEOUT_MS, cluster: this.#cluster })) === undefined
    ) {
      return undefined;
    }
    const client = new Client(endpoint, credentials.createInsecure(), KEEPALIVE);
    if (await isReady(client, isFound ? FOUND_TIMEOUT_MS : connectTimeoutMs)) return client;
    client.close();
    return undefined;
  }

  /** From the second call on, as most clients make one; in the background, and failures are ignored. */
  #learnLater(): void {
    const nowMs = performance.now();
    const isFirst = this.#learnAtMs === undefined;
    this.#learnAtMs ??= nowMs;
    if (this.#options.discover === false || isFirst || nowMs < this.#learnAtMs) return;
    this.#learnAtMs = nowMs + LEARN_MS;
    void askGateways(this.#endpoint, { timeoutMs: FOUND_TIMEOUT_MS }).then((told) => {
      if (told === undefined) return;
      const { endpoints } = this.#options;
      this.#cluster = told.cluster;
      this.#found = told.addresses.filter((address) => mayTry(address, endpoints)).slice(0, FOUND_MAX);
    });
  }

  #once<Request, Response>(
    client: Client,
    { path, requestSerialize, responseDeserialize }: UnaryMethod<Request, Response>,
    request: Request,
  ): Promise<Response> {
    const deadline = Date.now() + this.#options.timeoutMs;
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new Metadata(),
        { deadline },
        (error, response) => (response === undefined ? reject(error) : resolve(response)),
      );
    });
  }

  #toServiceError(error: unknown): unknown {
    if (!isGrpcError(error)) return error;
    const code = codeOf(error);
    if (code !== undefined) return new ServiceError(code, error.details, { cause: error });
    if (error.code === status.UNIMPLEMENTED) {
      return new ServiceError(
        'UNIMPLEMENTED',
        'the node runs a version that does not know this command; upgrade it, or ask another node',
        {
          cause: error,
        },
      );
    }
    const late = `no answer within ${formatDurationMs(this.#options.timeoutMs)}; --timeout gives it longer`;
    const deadline = error.code === status.DEADLINE_EXCEEDED;
    return new ServiceError(deadline ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', deadline ? late : error.details, {
      cause: error,
    });
  }
}

function idOf(value: number, name: string): bigint {
  return BigInt(requireRevision(value, name));
}

/** A number of an epoch, which answers carry as a bigint. */
function epochOf(value: number | bigint, name: string): bigint {
  return typeof value === 'bigint' ? value : idOf(value, name);
}

function limitOf(limit: number): number {
  return requireCount(limit, 'limit', { min: 0, max: 2 ** 32 - 1 });
}

function bytesOf(value: Uint8Array, name: string): Buffer {
  bytes(value, name);
  return Buffer.from(value);
}

const KEEPALIVE = {
  'grpc.keepalive_time_ms': KEEPALIVE_MS,
  'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
};

function isReady(client: Client, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    client.waitForReady(Date.now() + timeoutMs, (error) => resolve(error === undefined));
  });
}

function isGrpcError(error: unknown): error is GrpcError {
  return error instanceof Error && 'metadata' in error && 'details' in error;
}

/** The code from Remora's table; undefined when the error came from the transport, and not from a node. */
function codeOf({ metadata }: GrpcError) {
  const [code] = metadata.get('remora-code');
  return typeof code === 'string' && isErrorCode(code) ? code : undefined;
}

/** The error did not come from a node: the node may or may not have got the call. */
function isLost(error: unknown): boolean {
  if (!isGrpcError(error) || error.code === status.UNIMPLEMENTED) return false;
  return error.metadata.get('remora-code').length === 0;
}

/** The node may be frozen, with its connections open: the next call goes to another one. */
function isSilent(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.DEADLINE_EXCEEDED;
}

/** The node was unreachable, or went away: another one can be asked. */
function isGone(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.UNAVAILABLE;
}
