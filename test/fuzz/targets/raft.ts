import { ConfChangeError, decodeConfChange, encodeConfChange, type Message } from '@remora/raft';
import type { Heartbeat, HeartbeatReply, SnapshotHeader } from '../../../packages/raft/src/multi/ports.ts';
import {
  decodeFrame,
  decodeSnapshotHeader,
  encodeFrame,
  encodeSnapshotHeader,
} from '../../../packages/raft/src/multi/transport/codec.ts';
import { HeartbeatDecoder, HeartbeatEncoder } from '../../../packages/raft/src/multi/transport/heartbeat-codec.ts';
import {
  decodeReceiverMessage,
  decodeSenderMessage,
  encodeReceiverMessage,
  encodeSenderMessage,
  type ReceiverMessage,
  type SenderMessage,
} from '../../../packages/raft/src/multi/transport/snapshot-messages.ts';
import { WireError } from '../../../packages/raft/src/multi/transport/wire-bytes.ts';
import { sameAgain, type Target } from '../target.ts';

const isWireError = (error: unknown): boolean => error instanceof WireError;

const LARGE = Number.MAX_SAFE_INTEGER;
const conf = { voters: [1, 2, LARGE], votersOutgoing: [1], learners: [4], learnersNext: [5, 6], autoLeave: true };
const snapshot = { index: 77, term: 3, conf };
const envelope = { from: 1, to: 2, term: 2 ** 40 };
const committed = { index: 5, term: 2 };

const MESSAGES: readonly Message[] = [
  { type: 'preVote', ...envelope, lastIndex: 5, lastTerm: 4 },
  { type: 'vote', ...envelope, lastIndex: 5, lastTerm: 4, force: true, committed },
  { type: 'preVoteResponse', ...envelope, reject: true },
  { type: 'voteResponse', ...envelope, reject: false, committed },
  {
    type: 'append',
    ...envelope,
    prevIndex: 9,
    prevTerm: 2,
    commit: 8,
    entries: [
      { index: 10, term: 2, type: 'normal', data: Buffer.from('first') },
      { index: 11, term: 2, type: 'normal', data: Buffer.alloc(300, 7) },
      { index: 12, term: 3, type: 'conf', data: Buffer.alloc(0) },
    ],
  },
  { type: 'appendResponse', ...envelope, reject: true, index: 4, hintIndex: 3, hintTerm: 1, commit: 2 },
  { type: 'heartbeat', ...envelope, commit: 3, readContext: 12 },
  { type: 'heartbeatResponse', ...envelope, commit: 3, readContext: 12 },
  { type: 'snapshot', ...envelope, snapshot },
  { type: 'timeoutNow', ...envelope },
];

const frames: Target = {
  name: 'raft-frame',
  // The smallest entry is two bytes, and in memory an object with a view of them.
  memoryFactor: 400,
  corpus: () => [
    ...MESSAGES.map((message) => encodeFrame([{ groupId: 3, message }])),
    encodeFrame(MESSAGES.map((message, i) => ({ groupId: 100 * i, message }))),
    encodeFrame([]),
  ],
  decode(bytes) {
    sameAgain(decodeFrame(bytes), (messages) => decodeFrame(encodeFrame(messages)));
  },
  expected: isWireError,
};

const BEATS: readonly (Heartbeat | HeartbeatReply)[] = [
  { type: 'heartbeat', bootId: 9, sequence: 300, groups: [] },
  { type: 'heartbeat', bootId: 9, sequence: 301, groups: [1, 2, 3, 500, LARGE] },
  { type: 'reply', bootId: 9, sequence: 301, replierBootId: 4, refused: [] },
  {
    type: 'reply',
    bootId: 9,
    sequence: 301,
    replierBootId: 4,
    refused: [
      { groupId: 1, reason: 'noReplica', term: 0 },
      { groupId: 700, reason: 'notFollowing', term: 12 },
    ],
  },
];

const heartbeats: Target = {
  name: 'raft-heartbeat',
  corpus: () => BEATS.map((beat) => new HeartbeatEncoder().encode(beat)),
  decode(bytes) {
    const decoder = new HeartbeatDecoder();
    sameAgain(decoder.decode(bytes), (frame) => decoder.decode(new HeartbeatEncoder().encode(frame)));
  },
  expected: isWireError,
};

const header: SnapshotHeader = { groupId: 3, from: 1, to: 2, term: 5, meta: snapshot };

const headers: Target = {
  name: 'raft-snapshot-header',
  corpus: () => [encodeSnapshotHeader(header)],
  decode(bytes) {
    sameAgain(decodeSnapshotHeader(bytes), (value) => decodeSnapshotHeader(encodeSnapshotHeader(value)));
  },
  expected: isWireError,
};

const SENT: readonly SenderMessage[] = [
  { type: 'open', id: '0123456789abcdef', attempt: 2, header },
  { type: 'chunk', number: 7, bytes: Buffer.from('rows') },
  { type: 'finish', count: 8 },
  { type: 'abort', reason: 'stopped' },
];

const sender: Target = {
  name: 'raft-snapshot-sender',
  corpus: () => SENT.map(encodeSenderMessage),
  decode(bytes) {
    const message = decodeSenderMessage(bytes);
    // A reason is for people: it is truncated, and invalid UTF-8 is replaced.
    if (message.type !== 'abort')
      sameAgain<SenderMessage>(message, (value) => decodeSenderMessage(encodeSenderMessage(value)));
  },
  expected: isWireError,
};

const ANSWERED: readonly ReceiverMessage[] = [
  { type: 'ready', wanted: 4, stored: 3, window: 8 },
  { type: 'stored', stored: 5 },
  { type: 'working' },
  { type: 'installed' },
  { type: 'refused', refusal: 'busy', reason: 'three others' },
];

const receiver: Target = {
  name: 'raft-snapshot-receiver',
  corpus: () => ANSWERED.map(encodeReceiverMessage),
  decode(bytes) {
    const message = decodeReceiverMessage(bytes);
    if (message.type !== 'refused')
      sameAgain<ReceiverMessage>(message, (value) => decodeReceiverMessage(encodeReceiverMessage(value)));
  },
  expected: isWireError,
};

const confChanges: Target = {
  name: 'raft-conf-change',
  corpus: () => [
    encodeConfChange({ steps: [], transition: 'auto', context: new Uint8Array(0) }),
    encodeConfChange({
      steps: [
        { type: 'addVoter', replica: 4 },
        { type: 'addLearner', replica: LARGE },
        { type: 'remove', replica: 1 },
      ],
      transition: 'joint',
      context: Buffer.from('why'),
    }),
  ],
  decode(bytes) {
    sameAgain(decodeConfChange(bytes), (change) => decodeConfChange(encodeConfChange(change)));
  },
  expected: (error) => error instanceof ConfChangeError,
};

export const RAFT_TARGETS: readonly Target[] = [frames, heartbeats, headers, sender, receiver, confChanges];
