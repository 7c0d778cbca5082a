import {
  type CommandBatch,
  decodeEntry,
  encodeEntry,
  type HeldGroup,
  type Method,
  masterCheck,
  masterDrawRevisions,
  masterHeartbeat,
  masterHotRanges,
  masterJoin,
  masterNodes,
  masterRanges,
  masterSetSetting,
  masterSettings,
  masterStrikeOff,
  masterView,
  nodeGoOnAlone,
  nodeGroups,
  type PipeWatchMessage,
  type PipeWatchRequest,
  packVersioned,
  pipeCommand,
  pipeQuery,
  pipeView,
  pipeWatch,
  rangeAwaitLeader,
  rangeExecute,
  rangeInfo,
  rangeStatus,
  rangeTransferLeader,
  rangeWatch,
  unpackVersioned,
} from '@remora/protocol';
import * as samples from '../../../packages/protocol/src/internal/codec/test-samples.ts';
import { decodeError, decodeFrame, encodeFrame } from '../../../packages/protocol/src/rpc/frame.ts';
import { isInvalidArgument, sameAgain, type Target } from '../target.ts';

const { COMMANDS, QUERIES, COMMAND_RESULTS, QUERY_RESULTS, NODE, RANGE, VIEW } = samples;
const VERSION = 1;

const entries: Target = {
  name: 'entry',
  corpus: () => [
    encodeEntry(samples.BATCH),
    encodeEntry(samples.BLOCK_BATCH),
    ...samples.BATCH.commands.map((command) => encodeEntry({ ...samples.BATCH, commands: [command] })),
    encodeEntry({
      ...samples.BATCH,
      commands: samples.TERMS_COMMANDS.map((command) => ({ command, requestId: 'r', deadlineMs: 5 })),
    }),
  ],
  decode(bytes) {
    sameAgain<CommandBatch>(decodeEntry(bytes), (batch) => decodeEntry(encodeEntry(batch)));
  },
  expected: isInvalidArgument,
};

/** One side of a method: what its codec makes of a message. */
function side<T>(
  name: string,
  codec: { encode(value: T): unknown; decode(raw: unknown): T },
  values: readonly T[],
): Target {
  const decode = (bytes: Uint8Array): T => codec.decode(unpackVersioned(VERSION, bytes, name));
  const encode = (value: T): Uint8Array => packVersioned(VERSION, codec.encode(value));
  return {
    name,
    corpus: () => values.map(encode),
    decode(bytes) {
      sameAgain(decode(bytes), (value) => decode(encode(value)));
    },
    expected: isInvalidArgument,
  };
}

function method<Q, R>(given: Method<Q, R>, requests: readonly Q[], replies: readonly R[]): Target[] {
  const name = `method-${given.name.replaceAll('.', '-')}`;
  return [
    side(`${name}-request`, { encode: given.encodeRequest, decode: given.decodeRequest }, requests),
    side(`${name}-reply`, { encode: given.encodeReply, decode: given.decodeReply }, replies),
  ];
}

const { nodeId: _, ...descriptor } = NODE;
const header = { revision: 9, raftTerm: 2, rangeTimeMs: 7.5 };

const HELD: HeldGroup = {
  ...{ groupId: 2, replicaId: 9, range: RANGE, voters: [1, 2], votersOutgoing: [3] },
  ...{ lastTerm: 2, lastIndex: 7, led: true },
};

const METHODS: readonly Target[] = [
  ...method(rangeExecute, samples.REQUESTS, samples.REPLIES),
  ...method(rangeWatch, samples.WATCH_REQUESTS, samples.WATCH_MESSAGES),
  ...method(
    rangeAwaitLeader,
    [{ rangeId: 2, waitMs: 250 }],
    [{ rangeId: 2, leaderNode: 1, rangeTimeMs: 5, revision: 4, term: 3 }],
  ),
  ...method(rangeInfo, [{ rangeId: 2 }], [{ rangeId: 2, leaderNode: 1, rangeTimeMs: 5, revision: 4, term: 3 }]),
  ...method(masterJoin, [{ nodeId: 0, descriptor }], [{ nodeId: 4, clusterId: 'c' }]),
  ...method(
    masterHeartbeat,
    [samples.HEARTBEAT],
    [
      {
        tasks: samples.TASKS,
        view: VIEW,
        incarnations: [[1, 'abc']],
        splits: samples.SPLITS,
        conditions: samples.HEALTH,
      },
    ],
  ),
  ...method(masterDrawRevisions, [samples.DRAWS], [samples.DRAWN]),
  ...method(masterView, [undefined], [VIEW]),
  ...method(nodeGroups, [undefined], [{ nodeId: 3, groups: [HELD, { ...HELD, groupId: 1, range: undefined }] }]),
  ...method(nodeGoOnAlone, [{ ...HELD, epoch: RANGE.epoch }], [undefined]),
  ...method(masterStrikeOff, [{ nodeIds: [4, 5] }], [undefined]),
  ...method(masterNodes, [undefined], [samples.NODES]),
  ...method(masterRanges, [{ from: new Uint8Array([3]), limit: 500, rangeId: 0 }], [samples.RANGES]),
  ...method(masterHotRanges, [{ by: 'reads' as const, limit: 20 }], [samples.RANGES]),
  ...method(masterCheck, [undefined], [samples.CHECKED]),
  ...method(masterSettings, [undefined], [samples.SETTINGS]),
  ...method(masterSetSetting, [{ name: 'down-after', value: '5m' }], [samples.SETTINGS]),
  ...method(rangeStatus, [{ rangeId: 2 }], [samples.STATUS]),
  ...method(rangeTransferLeader, [{ rangeId: 2, toNode: 3 }], [undefined]),
  ...method(
    pipeCommand,
    [...COMMANDS, ...samples.TERMS_COMMANDS].map((command) => ({
      command,
      requestId: 'r',
      timeoutMs: 5,
      deadlineMs: 77.5,
      waitMs: 0,
    })),
    [...COMMAND_RESULTS, ...samples.TERMS_RESULTS].map((result) => ({ ...header, result })),
  ),
  ...method(
    pipeQuery,
    [...QUERIES, ...samples.SESSION_QUERIES].map((query) => ({ query, timeoutMs: 5 })),
    [...QUERY_RESULTS, ...samples.SESSION_RESULTS].map((result) => ({ ...header, rangeTimeMs: undefined, result })),
  ),
  ...method<PipeWatchRequest, PipeWatchMessage>(
    pipeWatch,
    [
      { kind: 'progress' },
      { kind: 'create', key: Buffer.from('a'), startRevision: 3, noPut: true, noDelete: false, prevKv: true },
    ],
    [
      { kind: 'created', revision: 4 },
      { kind: 'events', revision: 9, events: samples.EVENTS },
    ],
  ),
  ...method(pipeView, [undefined], [VIEW]),
];

const frames: Target = {
  name: 'rpc-frame',
  corpus: () => [
    encodeFrame([
      [0, 1, 'range.execute'],
      [1, 2, 1, rangeExecute.encodeRequest(samples.REQUESTS[0] ?? fail())],
      [2, 2],
      [5, 9, 100],
    ]),
    encodeFrame([[1, 2, ['NOT_LEADER', 'somebody else', { leader: 3, tried: ['a', 'b'], at: { x: 1n } }]]]),
  ],
  decode(bytes) {
    const items = decodeFrame(bytes);
    for (const item of items) if (item[0] === 1) tolerate(() => decodeError(item[2]));
    sameAgain(items, (value) => decodeFrame(encodeFrame(value)));
  },
  expected: isInvalidArgument,
};

function tolerate(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!isInvalidArgument(error)) throw error;
  }
}

function fail(): never {
  throw new Error('there are no samples');
}

export const PROTOCOL_TARGETS: readonly Target[] = [entries, ...METHODS, frames];
