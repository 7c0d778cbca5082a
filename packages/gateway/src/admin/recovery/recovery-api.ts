import { ServiceError } from '@remora/base';
import {
  type GoOnAloneRequest,
  MASTERS,
  type Method,
  masterStrikeOff,
  masterView,
  namedNode,
  nodeGoOnAlone,
  nodeGroups,
  type RangeDescriptor,
  type RpcDialer,
} from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { CallInfo } from '../../calls.ts';
import type { ClusterCalls } from '../cluster-calls.ts';
import { type Loss, type LostGroup, planRecovery, type RecoveryPlan } from './plan.ts';
import { fromPlan } from './recovery-messages.ts';

/** A node of the cluster, as this node knows it. */
export interface ClusterNode {
  readonly nodeId: number;
  readonly name: string;
  readonly removed: boolean;
}

export interface RecoveryApiDeps {
  readonly dialer: RpcDialer;
  /** Returns the nodes, also while no master can be reached. */
  readonly nodes: () => readonly ClusterNode[];
}

const NODE_TIMEOUT_MS = 2_000;

interface Step {
  readonly done: boolean;
  readonly did: readonly string[];
}

/**
 * Recovers a cluster after the loss of majorities, in steps: first the masters, then the dead nodes are removed for
 * good, so that they cannot return, then each range without a majority.
 *
 * RA1. Each step is computed from the answers of the remaining nodes: the caller may fail between two steps, and two
 *      callers may run at once. No replica continues alone before all remaining nodes have reported what they hold.
 * RA2. Nothing is done while a node named dead answers, or a node not named dead does not.
 * RA3. A node that was removed before and does not answer counts as dead without being named. One that answers has not
 *      learned of its removal yet, and its replicas count.
 */
export class RecoveryApi {
  readonly #calls: ClusterCalls;
  readonly #deps: RecoveryApiDeps;

  constructor(calls: ClusterCalls, deps: RecoveryApiDeps) {
    this.#calls = calls;
    this.#deps = deps;
  }

  async recoverMajority(
    request: admin.RecoverMajorityRequest,
    { timeoutMs }: CallInfo,
  ): Promise<admin.RecoverMajorityResponse> {
    const named = this.#resolve(request.dead);
    const { seen, dead } = await this.#look(named);
    if (!seen.some(({ groups }) => groups.some(({ groupId }) => groupId === MASTERS))) throw wrong(NO_MASTER_LEFT);
    const masterless = planRecovery({ dead, seen, known: [] });
    const known = masterless.masters === undefined ? await this.#known(timeoutMs) : [];
    const plan = planRecovery({ dead, seen, known });
    if (!request.begun && isNothingLost(plan)) throw wrong(NOTHING_LOST);
    const step = request.dryRun ? { done: false, did: [] } : await this.#step(plan, named, timeoutMs);
    return fromPlan(plan, dead, step);
  }

  /** Finds nodes by id or by name. */
  #resolve(wanted: readonly string[]): readonly number[] {
    const nodes = this.#deps.nodes();
    if (wanted.length === 0) throw wrong('dead: name the nodes that are gone for good');
    return wanted.map((text) => {
      const found = namedNode(nodes, text);
      if ('problem' in found) throw wrong(found.problem);
      return found.node.nodeId;
    });
  }

  /** Asks all nodes. Returns the answers of the remaining ones (RA2), and the dead nodes (RA3). */
  async #look(named: readonly number[]): Promise<Pick<Loss, 'seen' | 'dead'>> {
    const unnamed = this.#deps.nodes().filter(({ nodeId }) => !named.includes(nodeId));
    const others = unnamed.filter(({ removed }) => !removed);
    const removed = unnamed.filter((node) => node.removed).map(({ nodeId }) => nodeId);
    const look = (nodeIds: readonly number[]) =>
      Promise.all(nodeIds.map((nodeId) => this.#ask(nodeId, nodeGroups, undefined)));
    const [answers, fromDead, fromRemoved] = await Promise.all([
      look(others.map(({ nodeId }) => nodeId)),
      look(named),
      look(removed),
    ]);
    const alive = fromDead.find((answer) => !(answer instanceof ServiceError));
    if (alive !== undefined && !(alive instanceof ServiceError)) {
      throw wrong(`node ${alive.nodeId} is alive: it answers; name only nodes that are gone for good`);
    }
    const seen = answers.map((answer, i) => {
      if (!(answer instanceof ServiceError)) return answer;
      const advice = 'start it, as it may hold what others lack; or name it, too, if it is gone for good';
      throw wrong(`${others[i]?.name} does not answer: ${advice}`);
    });
    return { seen, dead: [...named, ...removed.filter((_, i) => fromRemoved[i] instanceof ServiceError)] };
  }

  async #known(timeoutMs: number): Promise<readonly RangeDescriptor[]> {
    return (await this.#calls.master(masterView, undefined, timeoutMs)).ranges;
  }

  async #step(plan: RecoveryPlan, dead: readonly number[], timeoutMs: number): Promise<Step> {
    if (plan.masters !== undefined) return { done: false, did: [await this.#goOn(plan.masters)] };
    await this.#calls.change(masterStrikeOff, { nodeIds: dead }, timeoutMs);
    const did = await Promise.all(plan.ranges.map((lost) => this.#goOn(lost)));
    return { done: did.length === 0, did };
  }

  async #goOn({ groupId, replicaId, lastTerm, lastIndex, epoch, survivor }: LostGroup): Promise<string> {
    const request: GoOnAloneRequest = { groupId, replicaId, lastTerm, lastIndex, epoch };
    const answer = await this.#ask(survivor, nodeGoOnAlone, request);
    if (answer instanceof ServiceError) throw answer;
    const what = groupId === MASTERS ? 'the masters go' : `range ${groupId} goes`;
    return `${what} on with the replica on node ${survivor}, from entry ${lastIndex} of term ${lastTerm}`;
  }

  #ask<Request, Reply>(
    nodeId: number,
    method: Method<Request, Reply>,
    request: Request,
  ): Promise<Reply | ServiceError> {
    return new Promise((resolve) => {
      const options = { timeoutMs: NODE_TIMEOUT_MS };
      this.#deps.dialer.channel(nodeId).call(method, request, options, (error, reply) => {
        resolve(error ?? (reply as Reply));
      });
    });
  }
}

const NOTHING_LOST =
  'nothing has lost its majority with these nodes, so nothing need be lost: remove them (nodes remove), and their ' +
  'replicas are replaced; or wait, if ranges have just lost their leaders';

const NO_MASTER_LEFT =
  'no master is left, and the metadata of the cluster is lost: read the remaining data with kv get --serializable ' +
  'or from a backup, and write it into a new cluster';

function isNothingLost({ masters, ranges, unrecoverable }: RecoveryPlan): boolean {
  return masters === undefined && ranges.length === 0 && unrecoverable.length === 0;
}

function wrong(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
