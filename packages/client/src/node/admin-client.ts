import { ServiceError } from '@remora/base';
import { admin } from '@remora/protocol/remora';
import { bytes, count, flag, list, object, requireRevision, text } from '../options/option-kinds.ts';
import { checkOptions, optionSet, requireCount } from '../options/options.ts';
import { bytesOfCursor, cursorOf, Listing } from '../values/listing.ts';
import { type AdminClientOptions, AdminConnection } from './admin-connection.ts';
import { AuthClient } from './auth-client.ts';

/** A change of a range: a split, a merge, a move of a replica and so on. */
export type RangeChangeRequest = NonNullable<admin.ChangeRangeRequest['change']>;

const RANGES_PAGE = 100;
const RANGES_MAX = 1_000;

/** A range as the caller saw it: the change is refused if its epoch has changed since. */
export type SeenRange = Pick<admin.Range, 'id' | 'confVersion' | 'version'>;

export interface RangeListOptions {
  /** Begin with the range that has this routing key. Default: the first range. */
  readonly from?: Uint8Array | undefined;
  /** How many ranges one page has at most. Default 100. */
  readonly pageSize?: number | undefined;
}

export const RANGE_LIST_OPTIONS = optionSet<RangeListOptions>('list of ranges', {
  ...{ from: bytes, pageSize: count(1, RANGES_MAX) },
});

/**
 * The calls of `remora.v1.Admin`, for administration; and as `auth` those of `remora.v1.Auth`.
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
  readonly #connection: AdminConnection;
  /** Users, roles and permissions. */
  readonly auth: AuthClient;

  /** @throws ServiceError INVALID_ARGUMENT for invalid endpoints, and when `tls` contradicts their scheme. */
  constructor(options: AdminClientOptions) {
    this.#connection = new AdminConnection(options);
    this.auth = new AuthClient(this.#connection);
  }

  /** The given endpoints, and the discovered ones after them. */
  get endpoints(): readonly string[] {
    return this.#connection.endpoints;
  }

  /** The nodes of the cluster, with their states. */
  nodes(): Promise<admin.ListNodesResponse> {
    return this.#connection.call(admin.AdminService.listNodes, {});
  }

  /** The ranges in the order of their keys. */
  ranges(options: RangeListOptions = {}): Listing<admin.Range> {
    checkOptions(RANGE_LIST_OPTIONS, options);
    const { from = Buffer.of(), pageSize = RANGES_PAGE } = options;
    const first = bytesOf(from, 'from');
    const limit = limitOf(pageSize);
    return new Listing(async (cursor) => {
      const start = cursor === undefined ? first : Buffer.from(bytesOfCursor(cursor));
      const request = { from: start, limit, rangeId: 0n };
      const { ranges, more } = await this.#connection.call(admin.AdminService.listRanges, request);
      const last = ranges.at(-1);
      return { items: ranges, cursor: more && last !== undefined ? cursorOf(last.end) : undefined };
    });
  }

  /** One range. @throws ServiceError RANGE_NOT_FOUND */
  async range(rangeId: number): Promise<admin.Range> {
    const request = { from: Buffer.of(), limit: 1, rangeId: idOf(rangeId, 'rangeId') };
    const { ranges } = await this.#connection.call(admin.AdminService.listRanges, request);
    const [range] = ranges;
    if (range === undefined) throw new ServiceError('RANGE_NOT_FOUND', `there is no range ${rangeId}`);
    return range;
  }

  /** The ranges with the highest load of one kind, such as `reads` or `writes`. */
  async hotRanges(by: string, limit: number): Promise<admin.ListRangesResponse> {
    text(by, 'by');
    return this.#connection.call(admin.AdminService.listHotRanges, { by, limit: limitOf(limit) });
  }

  /** What is wrong with the cluster. */
  check(): Promise<admin.CheckClusterResponse> {
    return this.#connection.call(admin.AdminService.checkCluster, {});
  }

  /** All settings of the cluster. */
  async settings(): Promise<readonly admin.Setting[]> {
    const { settings } = await this.#connection.call(admin.AdminService.listSettings, {});
    return settings;
  }

  /** Changes a setting; an empty value resets it to its default. Returns all settings after the change. */
  async setSetting(name: string, value: string): Promise<readonly admin.Setting[]> {
    text(name, 'name');
    text(value, 'value');
    const { settings } = await this.#connection.change(admin.AdminService.setSetting, { name, value });
    return settings;
  }

  /**
   * Changes the level of a node's log until the node ends: `debug`, `info`, `warn` or `error`. An empty level changes
   * nothing. Returns the level now and before.
   */
  async setLogLevel(nodeId: number, level: string): Promise<admin.SetLogLevelResponse> {
    text(level, 'level');
    return this.#connection.change(admin.AdminService.setLogLevel, { nodeId: idOf(nodeId, 'nodeId'), level });
  }

  /** Which versions the nodes can write, which one is in force, and what keeps a newer one from coming into force. */
  upgradeStatus(): Promise<admin.UpgradeStatus> {
    return this.#connection.call(admin.AdminService.getUpgrade, {});
  }

  /**
   * Brings a version into force, such as `0.2`. After that, no node can go back to a release that does not write it.
   *
   * @throws ServiceError INVALID_ARGUMENT when not every node is up and can write it.
   */
  async finalizeUpgrade(version: string): Promise<admin.UpgradeStatus> {
    text(version, 'version');
    return this.#connection.change(admin.AdminService.finalizeUpgrade, { version });
  }

  /** Transfers the leadership of a range to a node that has a replica of it. */
  async transferLeader(rangeId: number, toNode: number): Promise<admin.TransferLeaderResponse> {
    const request = { rangeId: idOf(rangeId, 'rangeId'), toNode: idOf(toNode, 'toNode') };
    return this.#connection.change(admin.AdminService.transferLeader, request);
  }

  /** Discards the history of keys before a revision; 0 stands for the newest one. */
  async compact(revision: number): Promise<admin.CompactResponse> {
    return this.#connection.change(admin.AdminService.compact, { revision: idOf(revision, 'revision') });
  }

  /**
   * Makes an empty cluster start after this revision, as if all revisions up to it had been used.
   *
   * @throws ServiceError INVALID_ARGUMENT when it has keys or leases.
   */
  async beginRestore(revision: number): Promise<admin.BeginRestoreResponse> {
    return this.#connection.change(admin.AdminService.beginRestore, { revision: idOf(revision, 'revision') });
  }

  /** Says that everything is restored: until then, `restoreUnderWay` is a condition of the cluster. */
  async endRestore(): Promise<void> {
    await this.#connection.change(admin.AdminService.endRestore, {});
  }

  /** Users with the hashes of their passwords, and roles with their permissions. */
  exportUsers(): Promise<admin.UsersAndRoles> {
    return this.#connection.call(admin.AdminService.exportUsers, {});
  }

  /**
   * Adds users and roles; those that exist keep their passwords and permissions. Switches authentication on if
   * `enabled` is true.
   */
  async importUsers(content: admin.UsersAndRoles): Promise<admin.ImportUsersResponse> {
    object(content, 'the users and roles');
    flag(content.enabled, 'enabled');
    list(content.users, 'users');
    list(content.roles, 'roles');
    return this.#connection.change(admin.AdminService.importUsers, content);
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
    return this.#connection.change(admin.AdminService.changeRange, { rangeId: epochOf(id, 'id'), ...epoch, change });
  }

  /** Spreads the ranges with routing keys from `start` up to, but without, `end` over the nodes. */
  async scatter(span: { readonly start: Uint8Array; readonly end: Uint8Array }): Promise<admin.ScatterResponse> {
    object(span, 'the span to scatter');
    const [start, end] = [bytesOf(span.start, 'start'), bytesOf(span.end, 'end')];
    return this.#connection.change(admin.AdminService.scatter, { start, end });
  }

  /** Balances the cluster now. With `dryRun` it only returns what it would do. */
  async rebalance(options: { readonly dryRun: boolean }): Promise<admin.RebalanceResponse> {
    object(options, 'the options of rebalance');
    flag(options.dryRun, 'dryRun');
    const { rebalance } = admin.AdminService;
    return options.dryRun ? this.#connection.call(rebalance, options) : this.#connection.change(rebalance, options);
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
    const { operators } = await this.#connection.call(admin.AdminService.listOperators, request);
    return operators;
  }

  /** Cancels an operator. Returns it as it ended. */
  async cancelOperator(id: number): Promise<admin.Operator> {
    return this.#connection.change(admin.AdminService.cancelOperator, { id: idOf(id, 'id') });
  }

  /** The schedulers, and which of them are paused. */
  async schedulers(): Promise<readonly admin.Scheduler[]> {
    const { schedulers } = await this.#connection.call(admin.AdminService.listSchedulers, {});
    return schedulers;
  }

  /** Pauses a scheduler for so many ms; 0 resumes it. Returns all schedulers after the change. */
  async pauseScheduler(name: string, forMs: number): Promise<readonly admin.Scheduler[]> {
    text(name, 'name');
    const request = { name, forMs: idOf(forMs, 'forMs') };
    const { schedulers } = await this.#connection.change(admin.AdminService.pauseScheduler, request);
    return schedulers;
  }

  /** Sets the duty of a node, such as `up` or maintenance; `forMs` limits a maintenance. */
  async setNodeDuty(nodeId: number, duty: string, forMs = 0): Promise<void> {
    text(duty, 'duty');
    const request = { nodeId: idOf(nodeId, 'nodeId'), duty, forMs: idOf(forMs, 'forMs') };
    await this.#connection.change(admin.AdminService.setNodeDuty, request);
  }

  /** Explains what is happening to a range or a node, or why nothing is: one statement a line. */
  async why(of: { readonly rangeId: number } | { readonly nodeId: number }): Promise<readonly string[]> {
    object(of, 'a range or a node');
    const [rangeId, nodeId] = 'rangeId' in of ? [of.rangeId, 0] : [0, of.nodeId];
    const request = { rangeId: idOf(rangeId, 'rangeId'), nodeId: idOf(nodeId, 'nodeId') };
    const { lines } = await this.#connection.call(admin.AdminService.why, request);
    return lines;
  }

  /** One step of a recovery from lost majorities. Repeat it until it is done. It loses data. */
  async recoverMajority(request: admin.RecoverMajorityRequest): Promise<admin.RecoverMajorityResponse> {
    object(request, 'the request');
    flag(request.dryRun, 'dryRun');
    const { recoverMajority } = admin.AdminService;
    return request.dryRun
      ? this.#connection.call(recoverMajority, request)
      : this.#connection.change(recoverMajority, request);
  }

  /** Closes the connection. A later call opens a new one. */
  close(): void {
    this.#connection.close();
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
