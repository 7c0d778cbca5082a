/** Checks whether a cluster whose masters schedule has come to rest, once there are no more faults. */
import { whyNode, whyRange } from '@remora/master';
import type { World } from '../world.ts';

/** Operators check once more that their intentions hold: their last requests may have been overtaken. */
export function asIntended({ admin, nodes, leaving }: World): void {
  admin.retryUntilAnswered('set', (api, call) => api.setSetting({ name: 'scheduling', value: 'true' }, call));
  for (const { nodeId, roles } of nodes) {
    if (nodeId === undefined || roles?.store === undefined) continue;
    const duty = leaving.has(nodeId) ? 'decommissioning' : 'serving';
    admin.setDuty({ nodeId, duty });
  }
}

/** What is not as it should be; empty if everything is. */
export function unsettled(world: World): string {
  const { admin, placement, leaving } = world;
  if (!admin.idle) return 'operators wait for an answer';
  const { master } = placement;
  if (master === undefined) return 'the masters have no leader';
  const staying = stayingNodes(world);
  const voters = Math.min(master.settings.replicas, staying.size);
  const left = [...leaving].find((nodeId) => !world.isEmpty(nodeId));
  if (left !== undefined) return `node ${left} is decommissioned, and has replicas`;
  const led = new Set(master.view().leaders.map(([rangeId]) => rangeId));
  const unled = placement.ranges.find(({ rangeId }) => !led.has(rangeId));
  if (unled !== undefined) return `range ${unled.rangeId} has no leader that the masters have heard of`;
  return placement.misplaced() || placement.unrepaired(voters, staying) || placement.unbalanced(staying);
}

/** Nodes that store data and stay. */
function stayingNodes({ nodes, leaving }: World): ReadonlySet<number> {
  const ids = nodes.flatMap(({ nodeId, roles }) =>
    roles?.store === undefined || nodeId === undefined ? [] : [nodeId],
  );
  return new Set(ids.filter((id) => !leaving.has(id)));
}

/** The ranges, their nodes, and their leaders. */
export function standOf({ placement }: World): string {
  const leaders = new Map(placement.master?.view().leaders);
  const ranges = placement.ranges.map(({ rangeId, epoch, replicas }) => {
    const nodes = replicas.map(({ nodeId }) => nodeId).join(' ');
    return `range ${rangeId} (${epoch.confVersion}, ${epoch.version}) on ${nodes} led by ${leaders.get(rangeId)}`;
  });
  return ranges.join('; ');
}

/** The masters' explanation. */
export function whyNot(world: World): string {
  const care = world.placement.master?.care;
  if (care === undefined) return '';
  const { scheduling, nowMs } = care;
  const { model } = scheduling;
  const ofRanges = [...model.ranges()].flatMap((range) =>
    whyRange(scheduling, range, nowMs).map((line) => `range ${range.descriptor.rangeId}: ${line}`),
  );
  const ofNodes = [...model.nodes()].flatMap((node) =>
    whyNode(scheduling, node, nowMs).map((line) => `node ${node.info.nodeId}: ${line}`),
  );
  return [standOf(world), ...ofRanges, ...ofNodes].join('\n');
}
