import { ServiceError } from '@remora/base';
import type { HealthCondition } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';

const NOSPACE = 1;
const ACTIVATE = 1;
const DEACTIVATE = 2;

/**
 * Alarms follow from the state of the nodes: NOSPACE of each whose disk has less free space than its reserve
 * (`--disk-reserve`). Nobody raises or disarms them. There is no CORRUPT: a node that finds damaged data stops
 * (docs/decisions/0084).
 */
export function alarmsOf(conditions: readonly HealthCondition[]): pb.AlarmMember[] {
  const nodes = conditions.filter(({ name }) => name === 'diskReserve').map(({ nodeId }) => nodeId);
  return [...new Set(nodes)].sort((a, b) => a - b).map((memberID) => ({ memberID, alarm: NOSPACE }));
}

/** The alarms that a request asks for. @throws {ServiceError} for one that would raise or disarm an alarm. */
export function answerAlarm(
  { action, memberID, alarm }: pb.AlarmRequest,
  conditions: readonly HealthCondition[],
): pb.AlarmMember[] {
  const alarms = alarmsOf(conditions);
  if (action === ACTIVATE) {
    const message = 'remora: alarms cannot be raised; set --disk-reserve to refuse values while space is left';
    throw new ServiceError('UNIMPLEMENTED', message);
  }
  if (action !== DEACTIVATE) return alarms.filter((each) => alarm === 0 || each.alarm === alarm);
  const raised = alarms.find((each) => BigInt(each.memberID) === memberID && each.alarm === alarm);
  if (raised === undefined) return [];
  const message = `remora: the alarm NOSPACE of member ${memberID} ends by itself when its disk has room again`;
  throw new ServiceError('UNIMPLEMENTED', message);
}

/** As etcd prints an alarm among the errors of `Status`. */
export function alarmText({ memberID }: pb.AlarmMember): string {
  return `memberID:${memberID} alarm:NOSPACE `;
}
