import { method } from '../rpc/method.ts';
import { list, nothing } from '../schema/kinds.ts';
import {
  CheckReport,
  HotRangesRequest,
  NodesOverview,
  RangesOverview,
  RangesRequest,
  SetSettingRequest,
  SettingInfo,
  TransferLeaderRequest,
} from './admin-api.ts';
import { RangeStatus } from './query.ts';
import { RangeInfoRequest } from './range-api.ts';

export const masterNodes = method('master.nodes', {
  meaning: 'Lists the nodes, as the leader of the masters knows them.',
  callers: 'nodes',
  request: nothing,
  reply: NodesOverview,
});

export const masterRanges = method('master.ranges', {
  meaning: 'Lists a page of the ranges.',
  callers: 'nodes',
  request: RangesRequest,
  reply: RangesOverview,
});

export const masterHotRanges = method('master.hotRanges', {
  meaning: 'Lists the ranges with the most load.',
  callers: 'nodes',
  request: HotRangesRequest,
  reply: RangesOverview,
});

export const masterCheck = method('master.check', {
  meaning: 'Lists what is wrong with the cluster.',
  callers: 'nodes',
  request: nothing,
  reply: CheckReport,
});

export const masterSettings = method('master.settings', {
  meaning: 'Lists the settings of the cluster.',
  callers: 'nodes',
  request: nothing,
  reply: list(SettingInfo),
});

export const masterSetSetting = method('master.setSetting', {
  meaning: 'Changes a setting; answered when the change is replicated, with all settings as they are then.',
  callers: 'nodes',
  request: SetSettingRequest,
  reply: list(SettingInfo),
});

export const rangeStatus = method('range.status', {
  meaning: 'Reports how the replica of the node stands; only the leader knows the other replicas.',
  callers: 'nodes',
  request: RangeInfoRequest,
  reply: RangeStatus,
});

export const rangeTransferLeader = method('range.transferLeader', {
  meaning: 'Begins to hand the range over; answered by its leader at the beginning.',
  callers: 'nodes',
  request: TransferLeaderRequest,
  reply: nothing,
});
