/**
 * Decides which operations the cluster had a chance to serve, and counts how many of them it served.
 *
 * A client is in a total outage while, by the present faults alone, nothing could serve it: there is no voter of the
 * range that is linked, both ways, with a majority of the voters (of each side of a joint membership), and with a
 * working gateway that is linked with the client. A node works while its process runs, is not paused, and its disk
 * neither stalls nor is full or lost. A link counts as broken if nothing gets through, not if much is lost.
 *
 * If ranges change, a client is also in a total outage while that holds for any range, or while no voter of the masters
 * is linked with a majority of them: the masters allocate revisions and know the routes.
 *
 * An operation with such a moment is not counted. Elections, route look-ups and repeated messages are not an excuse: of
 * all other operations 70 % must be answered.
 *
 * An operation that was refused because of the limit of requests per second, where there is one, is not counted either:
 * that is the purpose of the limit.
 */
import { type ConfState, MASTER_GROUP } from '@remora/raft';
import { isQuorumOf } from '../../common/raft/quorum.ts';
import type { SimNode } from '../node.ts';
import { FIRST_RANGE } from '../topology.ts';
import type { OperationEnd } from '../workloads/workload.ts';
import type { World } from '../world.ts';

const LOOK_MS = 50;
/** The share among operations outside total outages. */
const ANSWERED_MIN = 0.7;

/** A group, with its membership. */
interface StandingGroup {
  readonly conf: ConfState;
  /** The node of a replica; undefined if its disk is lost. */
  readonly nodeOf: (replicaId: number) => number | undefined;
}

/** The components that work at a moment. */
export interface PeerRefusalPolicy {
  /** All groups that must work; none while there is no range. */
  readonly groups: readonly StandingGroup[];
  readonly works: (nodeId: number) => boolean;
  readonly gateways: readonly number[];
  /** Whether anything gets through, both ways. */
  readonly linked: (a: number, b: number) => boolean;
}

export function couldServe(now: PeerRefusalPolicy, clientId: number): boolean {
  const { groups, works, linked } = now;
  const joined = (a: number, b: number): boolean => works(a) && works(b) && (a === b || linked(a, b));
  const gateways = now.gateways.filter((id) => works(id) && linked(id, clientId));
  const mayLead = ({ conf, nodeOf }: StandingGroup, leader: number): boolean =>
    gateways.some((gateway) => joined(gateway, leader)) &&
    isQuorumOf(conf, (replicaId) => joined(leader, nodeOf(replicaId) ?? 0));
  const canServe = (group: StandingGroup): boolean => {
    const { conf, nodeOf } = group;
    return [...conf.voters, ...conf.votersOutgoing].some((replicaId) => mayLead(group, nodeOf(replicaId) ?? 0));
  };
  return groups.length > 0 && groups.every(canServe);
}

export class Outages {
  readonly #world: World;
  /** When each client was last seen in a total outage. */
  readonly #lastMs = new Map<number, number>();
  /** Operations outside total outages. */
  asked = 0;
  answered = 0;
  /** Refused because of the limit of requests per second. */
  overLimit = 0;

  constructor(world: World) {
    this.#world = world;
  }

  run(): void {
    this.#look();
    this.#world.loop.setTimer(LOOK_MS, () => {
      if (!this.#world.resting) this.run();
    });
  }

  /** An operation of a client, begun at `beganMs`, has ended. */
  ended(clientId: number, beganMs: number, end: OperationEnd): void {
    if (isOverLimit(end, this.#world.options)) {
      this.overLimit++;
      return;
    }
    if ((this.#lastMs.get(clientId) ?? -1) >= beganMs - LOOK_MS) return;
    this.asked++;
    if (end.how === 'done') this.answered++;
  }

  #look(): void {
    const { clients, loop } = this.#world;
    const now = this.#standing();
    for (const { id } of clients) if (!couldServe(now, id)) this.#lastMs.set(id, loop.monotonicMs());
  }

  #groupIds(): readonly number[] {
    const { options, placement } = this.#world;
    if (!options.steered) return [FIRST_RANGE];
    const ranges = placement.ranges.map(({ rangeId }) => rangeId);
    return ranges.length === 0 ? [] : [MASTER_GROUP, ...ranges];
  }

  #group(groupId: number): StandingGroup | undefined {
    const { observer, members } = this.#world;
    const conf = observer.has(groupId) ? observer.group(groupId).confs.at(-1)?.conf : undefined;
    if (conf === undefined) return undefined;
    return {
      conf,
      nodeOf: (replicaId) =>
        members.isLost(groupId, replicaId) ? undefined : observer.view(groupId, replicaId)?.nodeId,
    };
  }

  #standing(): PeerRefusalPolicy {
    const { nodes, network } = this.#world;
    const working = new Set(nodes.filter(works).map(({ id }) => id));
    const open = (from: number, to: number): boolean => {
      const { blocked, dropPerMille } = network.faultsOf(from, to);
      return !blocked && dropPerMille < 1_000;
    };
    return {
      groups: this.#groupIds().flatMap((groupId) => this.#group(groupId) ?? []),
      works: (id) => working.has(id),
      gateways: nodes.filter(({ machine }) => machine.roles.includes('gateway')).map(({ id }) => id),
      linked: (a, b) => open(a, b) && open(b, a),
    };
  }
}

function works({ up, clock, stall, diskFull }: SimNode): boolean {
  return up && !clock.paused && !stall.stalled && !diskFull;
}

/** Whether it was refused because of the limit of requests per second, where there is one. */
export function isOverLimit(
  { how, code }: OperationEnd,
  { requestsPerSecondMax }: { readonly requestsPerSecondMax: number },
): boolean {
  return requestsPerSecondMax > 0 && how === 'refused' && code === 'RESOURCE_EXHAUSTED';
}

/** Why a run over many seeds fails although no promise was broken. */
export function tooFewAnswered({ asked, answered }: { readonly asked: number; readonly answered: number }): string {
  if (asked > 0 && answered >= ANSWERED_MIN * asked) return '';
  return `of ${asked} operations outside total outages ${answered} were answered: fewer than ${100 * ANSWERED_MIN} %`;
}
