import { bool, field, list, nothing, struct } from '../../schema/kinds.ts';
import {
  CheckReport,
  FinalizeUpgradeRequest,
  HotRangesRequest,
  NodesOverview,
  RangesOverview,
  RangesRequest,
  SetSettingRequest,
  SettingInfo,
  TransferLeaderRequest,
  UpgradeStatus,
} from '../admin-api.ts';
import { RangeStatus } from '../query.ts';
import { RangeInfoRequest } from '../range-api.ts';
import { rareMethod } from './rare-method.ts';

export const masterNodes = rareMethod('master.nodes', {
  meaning: 'Lists the nodes, as the leader of the masters knows them.',
  callers: 'nodes',
  request: nothing,
  reply: NodesOverview,
});

export const masterRanges = rareMethod('master.ranges', {
  meaning: 'Lists a page of the ranges.',
  callers: 'nodes',
  request: RangesRequest,
  reply: RangesOverview,
});

export const masterHotRanges = rareMethod('master.hotRanges', {
  meaning: 'Lists the ranges with the most load.',
  callers: 'nodes',
  request: HotRangesRequest,
  reply: RangesOverview,
});

export const masterCheck = rareMethod('master.check', {
  meaning: 'Lists what is wrong with the cluster.',
  callers: 'nodes',
  request: nothing,
  reply: CheckReport,
});

export const masterSettings = rareMethod('master.settings', {
  meaning: 'Lists the settings of the cluster.',
  callers: 'nodes',
  request: nothing,
  reply: list(SettingInfo),
});

export const masterSetSetting = rareMethod('master.setSetting', {
  meaning: 'Changes a setting; answered when the change is replicated, with all settings as they are then.',
  callers: 'nodes',
  request: SetSettingRequest,
  reply: list(SettingInfo),
});

export const masterNoteRestore = rareMethod('master.noteRestore', {
  meaning:
    'Notes that a restore has begun, or has ended, as a condition of the cluster; answered when it is replicated.',
  callers: 'nodes',
  request: struct('restore', { isUnderWay: field(bool, 'It has begun, and has not ended.') }),
  reply: nothing,
});

export const masterUpgradeStatus = rareMethod('master.upgradeStatus', {
  meaning: 'Reports which versions the nodes can write, and which one is in force.',
  callers: 'nodes',
  request: nothing,
  reply: UpgradeStatus,
});

export const masterFinalizeUpgrade = rareMethod('master.finalizeUpgrade', {
  meaning: 'Brings a version into force; answered when it is replicated. INVALID_ARGUMENT says why it is not possible.',
  callers: 'nodes',
  request: FinalizeUpgradeRequest,
  reply: UpgradeStatus,
});

export const rangeStatus = rareMethod('range.status', {
  meaning: 'Reports how the replica of the node stands; only the leader knows the other replicas.',
  callers: 'nodes',
  request: RangeInfoRequest,
  reply: RangeStatus,
});

export const rangeTransferLeader = rareMethod('range.transferLeader', {
  meaning: 'Begins to hand the range over; answered by its leader at the beginning.',
  callers: 'nodes',
  request: TransferLeaderRequest,
  reply: nothing,
});
