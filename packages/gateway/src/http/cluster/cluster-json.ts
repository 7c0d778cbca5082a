/** Converts answers of `remora.v1.Admin` to the JSON forms of `/v1/cluster`. */
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type {
  HealthJson,
  NodeJson,
  OperatorJson,
  RangeJson,
  RangesJson,
  RebalanceJson,
  SchedulerJson,
  SettingJson,
  UpgradeJson,
} from '../json/cluster.ts';

export function nodeJson(node: admin.Node): NodeJson {
  const { id, name, state, duty, roles, isMaster, version, peerAddress, clientAddress, httpAddress } = node;
  const { silentMs, maintenanceLeftMs, replicas, leaders, bytes, capacityBytes, availableBytes, labels } = node;
  return {
    ...{ id, name, state, duty, roles, isMaster, version, peerAddress, clientAddress, httpAddress },
    ...{ silentMs, maintenanceLeftMs, replicas, leaders, bytes, capacityBytes, availableBytes, labels },
  };
}

export function healthJson({ nodes, ranges, conditions }: admin.CheckClusterResponse): HealthJson {
  return {
    ...{ nodes, ranges },
    conditions: conditions.map(({ name, severity, scope, rangeId, nodeId, text, advice, docs }) => ({
      ...{ name, severity, scope, rangeId, nodeId, text, advice, docs },
    })),
  };
}

export function rangesJson({ ranges, more }: admin.ListRangesResponse): RangesJson {
  const end = ranges.at(-1)?.end;
  const next = more && end !== undefined && end.length > 0 ? { next: routingKeyText(end) } : {};
  return { ranges: ranges.map(rangeJson), ...next };
}

export function rangeJson(range: admin.Range): RangeJson {
  const { id, start, end, confVersion, version, leaderNode, revisionSource, state, load } = range;
  return {
    ...{ id, start: routingKeyText(start), end: routingKeyText(end), epoch: { confVersion, version } },
    ...{ leaderNode, revisionSource },
    replicas: range.replicas.map((replica) => {
      const { id, nodeId, type, state, logBehind, commitBehind, bytes, silentMs } = replica;
      return { id, nodeId, type, state, logBehind, commitBehind, bytes, silentMs };
    }),
    ...(state === undefined ? {} : { state: { ...state } }),
    ...(load === undefined ? {} : { load: { ...load } }),
  };
}

export function operatorJson(operator: admin.Operator): OperatorJson {
  const { id, rangeId, kind, status, reason, steps, step, ageMs, endedMs, outcome } = operator;
  const ended = endedMs < 0 ? {} : { endedMs };
  return { id, rangeId, kind, status, reason, steps, step, ageMs, ...ended, outcome };
}

export function schedulerJson({ name, description, pausedMs, last, settings }: admin.Scheduler): SchedulerJson {
  return { name, description, ...(pausedMs < 0 ? {} : { pausedMs }), last, settings };
}

export function rebalanceJson({ changes, schedulers }: admin.RebalanceResponse): RebalanceJson {
  return {
    changes: changes.map(({ rangeId, kind, reason, steps }) => ({ rangeId, kind, reason, steps })),
    schedulers: schedulers.map(schedulerJson),
  };
}

export function settingJson({ name, value, defaultValue, placeholder, description }: admin.Setting): SettingJson {
  return { name, value, defaultValue, placeholder, description };
}

export function upgradeJson({ inForce, newest, nodes, blockers }: admin.UpgradeStatus): UpgradeJson {
  return {
    ...{ inForce, newest, blockers },
    nodes: nodes.map(({ id, name, build, state, canWriteFrom, canWriteTo, knows }) => ({
      ...{ id, name, build, state, canWriteFrom, canWriteTo, knows },
    })),
  };
}
