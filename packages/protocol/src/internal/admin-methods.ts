import type { Method } from '../rpc/rpc.ts';
import type {
  CheckReport,
  HotRangesRequest,
  NodesOverview,
  RangesOverview,
  RangesRequest,
  SetSettingRequest,
  SettingInfo,
  TransferLeaderRequest,
} from './admin-api.ts';
import {
  decodeCheckReport,
  decodeHotRangesRequest,
  decodeNodesOverview,
  decodeRangesOverview,
  decodeRangesRequest,
  decodeSetSetting,
  decodeSettings,
  decodeTransferLeader,
  encodeCheckReport,
  encodeHotRangesRequest,
  encodeNodesOverview,
  encodeRangesOverview,
  encodeRangesRequest,
  encodeSetSetting,
  encodeSettings,
  encodeTransferLeader,
} from './codec/admin.ts';
import { decodeRangeStatus, encodeRangeStatus } from './codec/query.ts';
import { decodeRangeInfoRequest, encodeRangeInfoRequest } from './codec/range.ts';
import type { RangeStatus } from './command.ts';
import type { RangeInfoRequest } from './range-api.ts';

const NOTHING = { encode: (): null => null, decode: (): undefined => undefined };

/** Answered by the master's leader, as the other `master.` methods are. */
export const masterNodes: Method<undefined, NodesOverview> = {
  name: 'master.nodes',
  callers: 'nodes',
  encodeRequest: NOTHING.encode,
  decodeRequest: NOTHING.decode,
  encodeReply: encodeNodesOverview,
  decodeReply: decodeNodesOverview,
};

export const masterRanges: Method<RangesRequest, RangesOverview> = {
  name: 'master.ranges',
  callers: 'nodes',
  encodeRequest: encodeRangesRequest,
  decodeRequest: decodeRangesRequest,
  encodeReply: encodeRangesOverview,
  decodeReply: decodeRangesOverview,
};

export const masterHotRanges: Method<HotRangesRequest, RangesOverview> = {
  name: 'master.hotRanges',
  callers: 'nodes',
  encodeRequest: encodeHotRangesRequest,
  decodeRequest: decodeHotRangesRequest,
  encodeReply: encodeRangesOverview,
  decodeReply: decodeRangesOverview,
};

export const masterCheck: Method<undefined, CheckReport> = {
  name: 'master.check',
  callers: 'nodes',
  encodeRequest: NOTHING.encode,
  decodeRequest: NOTHING.decode,
  encodeReply: encodeCheckReport,
  decodeReply: decodeCheckReport,
};

export const masterSettings: Method<undefined, readonly SettingInfo[]> = {
  name: 'master.settings',
  callers: 'nodes',
  encodeRequest: NOTHING.encode,
  decodeRequest: NOTHING.decode,
  encodeReply: encodeSettings,
  decodeReply: decodeSettings,
};

/** Answered when it is replicated, with all settings as they are then. */
export const masterSetSetting: Method<SetSettingRequest, readonly SettingInfo[]> = {
  name: 'master.setSetting',
  callers: 'nodes',
  encodeRequest: encodeSetSetting,
  decodeRequest: decodeSetSetting,
  encodeReply: encodeSettings,
  decodeReply: decodeSettings,
};

/** Answered by any replica, of itself; only its leader knows the others. */
export const rangeStatus: Method<RangeInfoRequest, RangeStatus> = {
  name: 'range.status',
  callers: 'nodes',
  encodeRequest: encodeRangeInfoRequest,
  decodeRequest: decodeRangeInfoRequest,
  encodeReply: encodeRangeStatus,
  decodeReply: decodeRangeStatus,
};

/** Answered by the leader as it begins to hand over; whether another one leads then is seen there. */
export const rangeTransferLeader: Method<TransferLeaderRequest, undefined> = {
  name: 'range.transferLeader',
  callers: 'nodes',
  encodeRequest: encodeTransferLeader,
  decodeRequest: decodeTransferLeader,
  encodeReply: NOTHING.encode,
  decodeReply: NOTHING.decode,
};
