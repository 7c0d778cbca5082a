import {
  type ClusterView,
  type NodeDescriptor,
  type NodeEntry,
  type NodeState,
  type PublicNode,
  publicNode,
} from '@remora/protocol';
import { type ConfState, isMember } from '@remora/raft';
import type { MasterState } from './metadata/master-state.ts';
import type { NodeReports } from './nodes/node-reports.ts';
import type { Liveness } from './scheduling/cluster-model.ts';

export interface MasterViewDeps {
  readonly nodeId: number;
  /** The name of the cluster in views. */
  readonly shownClusterId: string;
  readonly state: Pick<MasterState, 'nodes' | 'ranges' | 'conf' | 'dutyOf'>;
  readonly reports: Pick<NodeReports, 'leaders' | 'version'>;
  readonly stateOf: (nodeId: number) => Liveness;
  readonly leader: () => number;
  readonly term: () => number;
}

type Leaders = ClusterView['leaders'];

interface Current {
  readonly view: ClusterView;
  readonly version: string;
  /** What the view was made of. */
  readonly nodes: readonly NodeDescriptor[];
  readonly conf: ConfState;
}

/**
 * A master's view of the cluster, for nodes and clients.
 *
 * MV1. While nothing changes, the view is the same object and has the same version: nodes that have it are not sent it
 *      again.
 * MV2. A version names the master and its term, so the versions of two leaders differ, and those of two terms.
 */
export class MasterView {
  readonly #deps: MasterViewDeps;
  #current: Current | undefined;
  #count = 0;
  #leaders: { readonly version: number; readonly list: Leaders } | undefined;

  constructor(deps: MasterViewDeps) {
    this.#deps = deps;
  }

  current(): { readonly view: ClusterView; readonly version: string } {
    const { nodeId, shownClusterId, state, leader, term } = this.#deps;
    const { conf } = state;
    const [nodes, ranges, leaders] = [state.nodes(), state.ranges(), this.#knownLeaders()];
    const known = { ranges, leaders, masterLeader: leader() };
    const prefix = `${nodeId}.${term()}.`;
    const last = this.#current;
    if (last?.conf === conf && last.version.startsWith(prefix) && isAsBefore(known, last)) {
      if (this.#areAsShown(nodes, last)) return last; // MV1
    }
    const view = { clusterId: shownClusterId, nodes: this.#entries(nodes), ...known };
    const next = { view, version: `${prefix}${++this.#count}`, nodes, conf };
    this.#current = next;
    return next;
  }

  #entries(nodes: readonly NodeDescriptor[]): readonly NodeEntry[] {
    const { conf } = this.#deps.state;
    return nodes.map((node) => ({ descriptor: asItServes(node, conf), state: this.#shownState(node.nodeId) }));
  }

  #areAsShown(nodes: readonly NodeDescriptor[], { nodes: before, view }: Current): boolean {
    if (nodes.length !== before.length) return false;
    return nodes.every((node, i) => node === before[i] && this.#shownState(node.nodeId) === view.nodes[i]?.state);
  }

  /** The same list as long as the leaders are the same. */
  #knownLeaders(): Leaders {
    const { reports } = this.#deps;
    const known = this.#leaders;
    if (known?.version === reports.version) return known.list;
    const now = reports.leaders();
    const list = known !== undefined && areEqual(known.list, now) ? known.list : now;
    this.#leaders = { version: reports.version, list };
    return list;
  }

  /** The state of a node for other nodes and clients: its liveness and its duty in one word. */
  #shownState(nodeId: number): NodeState {
    const { duty } = this.#deps.state.dutyOf(nodeId);
    if (duty === 'removed') return duty;
    const state = this.#deps.stateOf(nodeId);
    return state === 'up' && duty !== 'serving' ? 'draining' : state;
  }
}

/** A node with the role that is not one of the masters now gets no requests as one. */
function asItServes(node: NodeDescriptor, conf: ConfState): PublicNode {
  const shown = publicNode(node);
  if (isMember(conf, node.nodeId) || !node.roles.includes('master')) return shown;
  return { ...shown, roles: node.roles.filter((role) => role !== 'master') };
}

function isAsBefore(
  known: Pick<ClusterView, 'ranges' | 'leaders' | 'masterLeader'>,
  { view: { ranges, leaders, masterLeader } }: Current,
): boolean {
  return known.ranges === ranges && known.leaders === leaders && known.masterLeader === masterLeader;
}

function areEqual(a: Leaders, b: Leaders): boolean {
  return a.length === b.length && a.every(([range, node], i) => range === b[i]?.[0] && node === b[i]?.[1]);
}
