import { Client, credentials, type ServiceError as GrpcError, Metadata, status } from '@grpc/grpc-js';
import { formatDurationMs, isErrorCode, readPlainEndpoints, ServiceError } from '@remora/base';
import { admin } from '@remora/protocol/remora';
import { bytes, flag, object, requireRevision, text } from '../options/option-kinds.ts';
import { requireCount } from '../options/options.ts';
import { mayTry } from '../transport/discovery.ts';
import { askGateways } from './ask-gateways.ts';

/** What a generated service says of one of its methods. */
interface UnaryMethod<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** What is to become of a range. */
export type RangeChangeRequest = NonNullable<admin.ChangeRangeRequest['change']>;

/** A range as it was seen when the change was decided on. */
export type SeenRange = Pick<admin.Range, 'id' | 'confVersion' | 'version'>;

export interface AdminClientOptions {
  /** Gateways as `host:port`; the first that answers is asked. */
  readonly endpoints: readonly string[];
  /** For one call, at the node that answers. */
  readonly timeoutMs: number;
  /** How long one node may take to take a connection. */
  readonly connectTimeoutMs: number;
  /** Go on at gateways that were not given when none of those is of use. Default true. */
  readonly discover?: boolean;
}

/** A node that hangs is noticed after both: what is asked of it is then asked of another one. */
const KEEPALIVE_MS = 2_000;
const KEEPALIVE_TIMEOUT_MS = 2_000;
/** How often the cluster is asked for its gateways, and how many of them are kept. */
const LEARN_MS = 60_000;
const FOUND_MAX = 5;
const FOUND_TIMEOUT_MS = 1_000;

/**
 * The calls of `remora.v1.Admin`. Each is asked of one node, and of the next one when that is gone: all of them may be
 * repeated; after one that nobody answered in time, the next call goes to the next node. The endpoints that were given come
 * first; behind them, other gateways of the same cluster, for which a client that makes more than one call asks. They throw
 * the `ServiceError` that the node answered, or UNAVAILABLE with the detail `unreached` when there is none to be found; those that change something,
 * UNKNOWN_OUTCOME when a node was asked and its answer was lost.
 */
export class AdminClient {
  readonly #options: AdminClientOptions;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  /** The endpoint to which it is connected, or was last. */
  #endpoint = '';
  #next = 0;
  #found: readonly string[] = [];
  #cluster = '';
  /** When the cluster is asked for its gateways next; undefined before the first answer. */
  #learnAtMs: number | undefined;

  /** @throws ServiceError INVALID_ARGUMENT for endpoints that are none, or are `https://`. */
  constructor(options: AdminClientOptions) {
    this.#options = { ...options, endpoints: readPlainEndpoints(options.endpoints, 'the client for administration') };
  }

  nodes(): Promise<admin.ListNodesResponse> {
    return this.#call(admin.AdminService.listNodes, {});
  }

  /** One page in the order of the keys, from the range that has the routing key `from`. */
  async rangesFrom(from: Uint8Array, limit: number): Promise<admin.ListRangesResponse> {
    return this.#call(admin.AdminService.listRanges, {
      from: bytesOf(from, 'from'),
      limit: limitOf(limit),
      rangeId: 0n,
    });
  }

  async range(rangeId: number): Promise<admin.Range> {
    const request = { from: Buffer.of(), limit: 1, rangeId: idOf(rangeId, 'rangeId') };
    const { ranges } = await this.#call(admin.AdminService.listRanges, request);
    const [range] = ranges;
    if (range === undefined) throw new ServiceError('RANGE_NOT_FOUND', `there is no range ${rangeId}`);
    return range;
  }

  async hotRanges(by: string, limit: number): Promise<admin.ListRangesResponse> {
    text(by, 'by');
    return this.#call(admin.AdminService.listHotRanges, { by, limit: limitOf(limit) });
  }

  check(): Promise<admin.CheckClusterResponse> {
    return this.#call(admin.AdminService.checkCluster, {});
  }

  async settings(): Promise<readonly admin.Setting[]> {
    const { settings } = await this.#call(admin.AdminService.listSettings, {});
    return settings;
  }

  /** An empty value: back to the default. Gives all settings as they are then. */
  async setSetting(name: string, value: string): Promise<readonly admin.Setting[]> {
    text(name, 'name');
    text(value, 'value');
    const { settings } = await this.#change(admin.AdminService.setSetting, { name, value });
    return settings;
  }

  async transferLeader(rangeId: number, toNode: number): Promise<admin.TransferLeaderResponse> {
    const request = { rangeId: idOf(rangeId, 'rangeId'), toNode: idOf(toNode, 'toNode') };
    return this.#change(admin.AdminService.transferLeader, request);
  }

  /** 0: up to the newest revision. */
  async compact(revision: number): Promise<admin.CompactResponse> {
    return this.#change(admin.AdminService.compact, { revision: idOf(revision, 'revision') });
  }

  /**
   * Makes an empty cluster count all revisions up to this one as used.
   * @throws ServiceError INVALID_ARGUMENT when it has keys or leases.
   */
  async beginRestore(revision: number): Promise<admin.BeginRestoreResponse> {
    return this.#change(admin.AdminService.beginRestore, { revision: idOf(revision, 'revision') });
  }

  /**
   * Begins a change of a range, and gives the operator that does it. `split` at an empty key: in the middle.
   * @throws ServiceError INVALID_ARGUMENT when the range is not any more as it was seen, or the change is not possible.
   */
  async changeRange(seen: SeenRange, change: RangeChangeRequest): Promise<admin.Operator> {
    object(seen, 'the range that is to be changed');
    object(change, 'the change of a range');
    const { id, confVersion, version } = seen;
    const epoch = { confVersion: epochOf(confVersion, 'confVersion'), version: epochOf(version, 'version') };
    return this.#change(admin.AdminService.changeRange, { rangeId: epochOf(id, 'id'), ...epoch, change });
  }

  /** Spreads the ranges that have routing keys from `start` to before `end`, as one group. */
  async scatter(span: { readonly start: Uint8Array; readonly end: Uint8Array }): Promise<admin.ScatterResponse> {
    object(span, 'the span to scatter');
    const [start, end] = [bytesOf(span.start, 'start'), bytesOf(span.end, 'end')];
    return this.#change(admin.AdminService.scatter, { start, end });
  }

  async rebalance(options: { readonly dryRun: boolean }): Promise<admin.RebalanceResponse> {
    object(options, 'the options of rebalance');
    flag(options.dryRun, 'dryRun');
    const { rebalance } = admin.AdminService;
    return options.dryRun ? this.#call(rebalance, options) : this.#change(rebalance, options);
  }

  /** Those under way, oldest first; or those that ended, newest first. Of all ranges unless `rangeId` names one. */
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

  /** Gives the operator as it ended. */
  async cancelOperator(id: number): Promise<admin.Operator> {
    return this.#change(admin.AdminService.cancelOperator, { id: idOf(id, 'id') });
  }

  async schedulers(): Promise<readonly admin.Scheduler[]> {
    const { schedulers } = await this.#call(admin.AdminService.listSchedulers, {});
    return schedulers;
  }

  /** 0 ms: it runs again. Gives all of them as they are then. */
  async pauseScheduler(name: string, forMs: number): Promise<readonly admin.Scheduler[]> {
    text(name, 'name');
    const request = { name, forMs: idOf(forMs, 'forMs') };
    const { schedulers } = await this.#change(admin.AdminService.pauseScheduler, request);
    return schedulers;
  }

  /** `forMs`: of maintenance only. */
  async setNodeDuty(nodeId: number, duty: string, forMs = 0): Promise<void> {
    text(duty, 'duty');
    const request = { nodeId: idOf(nodeId, 'nodeId'), duty, forMs: idOf(forMs, 'forMs') };
    await this.#change(admin.AdminService.setNodeDuty, request);
  }

  /** Why nothing happens to a range or a node, or what does: one statement each. */
  async why(of: { readonly rangeId: number } | { readonly nodeId: number }): Promise<readonly string[]> {
    object(of, 'a range or a node');
    const [rangeId, nodeId] = 'rangeId' in of ? [of.rangeId, 0] : [0, of.nodeId];
    const request = { rangeId: idOf(rangeId, 'rangeId'), nodeId: idOf(nodeId, 'nodeId') };
    const { lines } = await this.#call(admin.AdminService.why, request);
    return lines;
  }

  /** One step of getting over lost majorities, to be repeated until it is done: loses data. */
  async recoverMajority(request: admin.RecoverMajorityRequest): Promise<admin.RecoverMajorityResponse> {
    object(request, 'the request');
    flag(request.dryRun, 'dryRun');
    const { recoverMajority } = admin.AdminService;
    return request.dryRun ? this.#call(recoverMajority, request) : this.#change(recoverMajority, request);
  }

  close(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  /** Whoever was asked may have done it, if its answer was lost; that another one is not there does not say more. */
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

  /** `onLost` is told of each answer that does not come. */
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

  /** A connection to the present endpoint, or to the next one that takes one; one for all who ask meanwhile. */
  #connected(): Client | Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** Those that were given, and those found behind them. */
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
    // The address may be another cluster's where this process is.
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

  /** At the second call, as most clients make one; in the background, and without telling of failures. */
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

/** Of what an answer had, where ids are of 64 bits. */
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

/** Of Remora's table; undefined when the answer came from the transport rather than from a node. */
function codeOf({ metadata }: GrpcError) {
  const [code] = metadata.get('remora-code');
  return typeof code === 'string' && isErrorCode(code) ? code : undefined;
}

/** Something between here and the node answered, and none of them: it may have been asked, or not. */
function isLost(error: unknown): boolean {
  if (!isGrpcError(error) || error.code === status.UNIMPLEMENTED) return false;
  return error.metadata.get('remora-code').length === 0;
}

/** Perhaps it is frozen, with its connections open: what is asked next is asked of another one. */
function isSilent(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.DEADLINE_EXCEEDED;
}

/** The node was not there, or went away: another one can be asked. */
function isGone(error: unknown): boolean {
  return isGrpcError(error) && codeOf(error) === undefined && error.code === status.UNAVAILABLE;
}
