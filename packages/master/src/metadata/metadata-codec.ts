import type { Bytes } from '@remora/base';
import {
  asBytes,
  asCount,
  asFields,
  asList,
  asText,
  asTextMap,
  decodeConfFields,
  decodeEpoch,
  decodeNodeDescriptor,
  decodeRangeDescriptor,
  decodeReplica,
  decodeStored,
  encodeConfFields,
  encodeEpoch,
  encodeNodeDescriptor,
  encodeRangeDescriptor,
  encodeReplica,
  encodeStored,
  invalid,
  NODE_DUTIES,
  type StoredFormat,
  textMapToWire,
} from '@remora/protocol';
import type { AskedSplit, EndedRange } from '../ranges/range-registry.ts';
import type { FirstRangePlan, MasterCommand } from './master-commands.ts';
import type { DutyRecord, IdGap, MasterImage, PauseRecord, SettingsImage } from './master-state.ts';

/**
 * Log entries and checkpoints of the master, each with a format number in front. A program stops at a command of a type
 * that it does not know: new types are written only once something asks for what they do.
 */
const COMMAND: StoredFormat = { what: 'a master command', version: 1, fields: 2 };
const IMAGE: StoredFormat = { what: "the master's state", version: 1, fields: 5 };
/** With the bound of revisions; written once there is one, so that programs that do not know it can read all before. */
const REVISIONS_IMAGE: StoredFormat = { ...IMAGE, version: 2, fields: 6 };
/** With settings as well; written once one was set. */
const SETTINGS_IMAGE: StoredFormat = { ...IMAGE, version: 3, fields: 7 };
/**
 * With what is kept of nodes (duties), schedulers (pauses), splits (ids given out) and merges (what has ended); written
 * once there is any of it.
 */
const CARE_IMAGE: StoredFormat = { ...IMAGE, version: 4, fields: 11 };
/** With the gaps that a master left in ids when it went on alone; written once there is one. */
const GAPS_IMAGE: StoredFormat = { ...IMAGE, version: 5, fields: 12 };
/** With the ranges that begin where people chose; written once there is one. */
const CHOSEN_IMAGE: StoredFormat = { ...IMAGE, version: 6, fields: 13 };
/** With who left the masters, and how many there should be; written once they are not those that founded the cluster. */
const MASTERS_IMAGE: StoredFormat = { ...IMAGE, version: 7, fields: 15 };
const OLDER_IMAGES = [IMAGE, REVISIONS_IMAGE, SETTINGS_IMAGE, CARE_IMAGE, GAPS_IMAGE, CHOSEN_IMAGE] as const;
const IMAGES = [...OLDER_IMAGES, MASTERS_IMAGE] as const;
const REGISTER_NODE = 1;
const BOOTSTRAP_RANGE = 2;
const CHANGE_RANGE = 3;
const LIFT_REVISIONS = 4;
const ALLOCATE_REPLICAS = 5;
const CHANGE_SETTING = 6;
const SET_DUTY = 7;
const PAUSE_SCHEDULER = 8;
const DESCRIBE_RANGE = 9;
const ASK_SPLIT = 10;
const BOOTSTRAP_RANGES = 11;
const ASK_SPLIT_BY_HAND = 12;

export function encodeMasterCommand(command: MasterCommand): Buffer {
  switch (command.type) {
    case 'registerNode':
      return encodeStored(COMMAND, [REGISTER_NODE, encodeNodeDescriptor(command.descriptor)]);
    case 'bootstrapRange':
      return encodeStored(COMMAND, [BOOTSTRAP_RANGE, command.nodeIds]);
    case 'bootstrapRanges': {
      const plans = command.ranges.map(({ start, nodeIds }) => [start, nodeIds]);
      return encodeStored(COMMAND, [BOOTSTRAP_RANGES, plans]);
    }
    case 'changeRange':
      return encodeStored(COMMAND, [CHANGE_RANGE, encodeRangeDescriptor(command.descriptor)]);
    case 'describeRange':
      return encodeStored(COMMAND, [DESCRIBE_RANGE, encodeRangeDescriptor(command.descriptor)]);
    case 'askSplit':
      return encodeStored(COMMAND, [
        command.byHand ? ASK_SPLIT_BY_HAND : ASK_SPLIT,
        encodeRangeDescriptor(command.descriptor),
      ]);
    case 'setDuty':
      return encodeStored(COMMAND, [SET_DUTY, encodeDuty(command)]);
    case 'pauseScheduler':
      return encodeStored(COMMAND, [PAUSE_SCHEDULER, encodePause(command)]);
    case 'liftRevisions':
      return encodeStored(COMMAND, [LIFT_REVISIONS, command.upTo]);
    case 'allocateReplicas':
      return encodeStored(COMMAND, [ALLOCATE_REPLICAS, command.count]);
    case 'changeSetting':
      return encodeStored(COMMAND, [CHANGE_SETTING, [command.expected, command.name, command.text]]);
  }
}

/** Throws an `InvariantError` for anything else. */
export function decodeMasterCommand(bytes: Bytes): MasterCommand {
  return decodeStored(COMMAND, bytes, ([type, body]) => {
    switch (type) {
      case REGISTER_NODE:
        return { type: 'registerNode', descriptor: decodeNodeDescriptor(body) };
      case BOOTSTRAP_RANGE:
        return { type: 'bootstrapRange', nodeIds: decodeNodeIds(body) };
      case BOOTSTRAP_RANGES:
        return { type: 'bootstrapRanges', ranges: asList(body, 'first ranges', decodeFirstRange) };
      case CHANGE_RANGE:
        return { type: 'changeRange', descriptor: decodeRangeDescriptor(body) };
      case DESCRIBE_RANGE:
        return { type: 'describeRange', descriptor: decodeRangeDescriptor(body) };
      case ASK_SPLIT:
        return { type: 'askSplit', descriptor: decodeRangeDescriptor(body), byHand: false };
      case ASK_SPLIT_BY_HAND:
        return { type: 'askSplit', descriptor: decodeRangeDescriptor(body), byHand: true };
      case SET_DUTY:
        return { type: 'setDuty', ...decodeDuty(body) };
      case PAUSE_SCHEDULER:
        return { type: 'pauseScheduler', ...decodePause(body) };
      case LIFT_REVISIONS:
        return { type: 'liftRevisions', upTo: asCount(body, 'bound of revisions') };
      case ALLOCATE_REPLICAS:
        return { type: 'allocateReplicas', count: asCount(body, 'count of replica ids') };
      case CHANGE_SETTING: {
        const f = asFields(body, 3, 'change of a setting');
        const [name, text] = [asText(f[1], 'setting'), asText(f[2], 'setting')];
        return { type: 'changeSetting', expected: asCount(f[0], 'version of settings'), name, text };
      }
      default:
        throw invalid(`the unknown type ${String(type)}`);
    }
  });
}

function decodeNodeIds(raw: unknown): readonly number[] {
  return asList(raw, 'node ids', (id) => asCount(id, 'node id'));
}

function decodeFirstRange(raw: unknown): FirstRangePlan {
  const f = asFields(raw, 2, 'first range');
  return { start: Buffer.from(asBytes(f[0], 'start')), nodeIds: decodeNodeIds(f[1]) };
}

export function encodeMasterImage(image: MasterImage): Buffer {
  const { applied, revisionBound, settings, duties, pauses, asked, ended, forgottenNodes, chosen } = image;
  const { conf, formerMasters, mastersWanted } = image;
  const fields = [
    [applied.index, applied.term],
    encodeConfFields(image.conf),
    [image.nextNodeId, image.nextRangeId, image.nextReplicaId],
    image.nodes.map(encodeNodeDescriptor),
    image.ranges.map(encodeRangeDescriptor),
  ];
  const set = [settings.version, textMapToWire(Object.fromEntries(settings.texts))];
  const care = [duties.map(encodeDuty), pauses.map(encodePause), asked.map(encodeAsked), ended.map(encodeEnded)];
  const gaps = forgottenNodes.map(({ from, to }) => [from, to]);
  if (formerMasters.length > 0 || mastersWanted !== conf.voters.length) {
    const masters = [formerMasters, mastersWanted];
    return encodeStored(MASTERS_IMAGE, [...fields, revisionBound, set, ...care, gaps, chosen, ...masters]);
  }
  if (chosen.length > 0) return encodeStored(CHOSEN_IMAGE, [...fields, revisionBound, set, ...care, gaps, chosen]);
  if (gaps.length > 0) return encodeStored(GAPS_IMAGE, [...fields, revisionBound, set, ...care, gaps]);
  if (duties.length + pauses.length + asked.length + ended.length > 0) {
    return encodeStored(CARE_IMAGE, [...fields, revisionBound, set, ...care]);
  }
  if (settings.version > 0) return encodeStored(SETTINGS_IMAGE, [...fields, revisionBound, set]);
  return revisionBound === 0 ? encodeStored(IMAGE, fields) : encodeStored(REVISIONS_IMAGE, [...fields, revisionBound]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeMasterImage(bytes: Bytes): MasterImage {
  return decodeStored(IMAGES, bytes, (fields) => {
    const [position, rawConf, ids, nodes, ranges, revisionBound = 0, settings = [0, []], ...care] = fields;
    const [duties = [], pauses = [], asked = [], ended = [], gaps = [], chosen = [], former = [], wanted] = care;
    const conf = decodeConfFields(rawConf);
    const applied = asFields(position, 2, 'applied');
    const next = asFields(ids, 3, 'next ids');
    return {
      applied: { index: asCount(applied[0], 'applied.index'), term: asCount(applied[1], 'applied.term') },
      conf,
      nextNodeId: asCount(next[0], 'nextNodeId'),
      nextRangeId: asCount(next[1], 'nextRangeId'),
      nextReplicaId: asCount(next[2], 'nextReplicaId'),
      revisionBound: asCount(revisionBound, 'revisionBound'),
      settings: decodeSettingsImage(settings),
      nodes: asList(nodes, 'nodes', decodeNodeDescriptor),
      ranges: asList(ranges, 'ranges', decodeRangeDescriptor),
      duties: asList(duties, 'duties', decodeDuty),
      pauses: asList(pauses, 'pauses', decodePause),
      asked: asList(asked, 'asked splits', decodeAsked),
      ended: asList(ended, 'ended ranges', decodeEnded),
      forgottenNodes: asList(gaps, 'gaps in the ids of nodes', decodeGap),
      chosen: asList(chosen, 'chosen ranges', (id) => asCount(id, 'range id')),
      formerMasters: decodeNodeIds(former),
      mastersWanted: wanted === undefined ? conf.voters.length : asCount(wanted, 'masters wanted'),
    };
  });
}

function encodeDuty({ nodeId, duty, untilMs }: DutyRecord): unknown[] {
  return [nodeId, NODE_DUTIES.encode(duty), untilMs];
}

function decodeDuty(raw: unknown): DutyRecord {
  const f = asFields(raw, 3, 'duty');
  return { nodeId: asCount(f[0], 'node id'), duty: NODE_DUTIES.decode(f[1]), untilMs: asCount(f[2], 'untilMs') };
}

function encodePause({ name, untilMs }: PauseRecord): unknown[] {
  return [name, untilMs];
}

function decodePause(raw: unknown): PauseRecord {
  const f = asFields(raw, 2, 'pause');
  return { name: asText(f[0], 'scheduler'), untilMs: asCount(f[1], 'untilMs') };
}

function encodeAsked({ rangeId, epoch, childId, replicas }: AskedSplit): unknown[] {
  return [rangeId, encodeEpoch(epoch), childId, replicas.map(encodeReplica)];
}

function decodeAsked(raw: unknown): AskedSplit {
  const f = asFields(raw, 4, 'asked split');
  return {
    rangeId: asCount(f[0], 'range id'),
    epoch: decodeEpoch(f[1]),
    childId: asCount(f[2], 'child id'),
    replicas: asList(f[3], 'replicas', decodeReplica),
  };
}

function encodeEnded({ rangeId, into }: EndedRange): unknown[] {
  return [rangeId, into];
}

function decodeEnded(raw: unknown): EndedRange {
  const f = asFields(raw, 2, 'ended range');
  return { rangeId: asCount(f[0], 'range id'), into: asCount(f[1], 'range id') };
}

function decodeGap(raw: unknown): IdGap {
  const f = asFields(raw, 2, 'gap in ids');
  return { from: asCount(f[0], 'node id'), to: asCount(f[1], 'node id') };
}

function decodeSettingsImage(raw: unknown): SettingsImage {
  const f = asFields(raw, 2, 'settings');
  return { version: asCount(f[0], 'version of settings'), texts: new Map(Object.entries(asTextMap(f[1], 'settings'))) };
}
