import type { Bytes, Row } from '@remora/base';
import { crc32, FIRST_VERSION } from '@remora/base';
import { AuthState } from '../../../packages/auth/src/state/auth-state.ts';
import { decodeMarker, encodeMarker } from '../../../packages/dataserver/src/install/marker.ts';
import {
  encodeSnapshot,
  SnapshotFormatError,
  SnapshotParser,
} from '../../../packages/dataserver/src/install/snapshot-stream.ts';
import {
  attachedTarget,
  currentKey,
  historyKey,
  leaseIdOfKey,
  leaseKey,
  parseHistoryKey,
  rangeIdOfLocalKey,
} from '../../../packages/dataserver/src/state/keys.ts';
import { decodeVersion, encodeVersion } from '../../../packages/dataserver/src/state/kv/record.ts';
import { decodeLease, encodeLease } from '../../../packages/dataserver/src/state/leases/leases.ts';
import { decodeRangeMeta, encodeRangeMeta } from '../../../packages/dataserver/src/state/meta-codec.ts';
import { decodeOutcomePage, encodeOutcomePage } from '../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import { stateAt } from '../../../packages/dataserver/test/support/install-data.ts';
import { LockKeys, lockOfKey, lockStart } from '../../../packages/lock/src/records/keys.ts';
import * as locks from '../../../packages/lock/src/records/records.ts';
import * as lockRows from '../../../packages/lock/src/records/row-records.ts';
import type { MasterImage } from '../../../packages/master/src/metadata/master-state.ts';
import {
  decodeMasterCommand,
  decodeMasterImage,
  encodeMasterCommand,
  encodeMasterImage,
} from '../../../packages/master/src/metadata/metadata-codec.ts';
import {
  encodeMasterSnapshot,
  MasterSnapshotError,
  receiveMasterSnapshot,
} from '../../../packages/master/src/metadata/metadata-snapshot.ts';
import type { AuthImage } from '../../../packages/protocol/src/internal/auth-api.ts';
import { COMMAND_RESULTS, NODE, RANGE } from '../../../packages/protocol/test/support/samples.ts';
import { isInvariant, sameAgain, type Target } from '../target.ts';

// ------------------------------------------------------------------------------------------------ snapshots

const EVERYTHING = { start: new Uint8Array(0), end: new Uint8Array(0) };
const IDENTITY = { rangeId: 2, span: EVERYTHING, applied: { index: 7, term: 2 } };
const ROWS: readonly Row[] = [
  {
    key: leaseKey(9n),
    value: encodeLease({ id: 9n, incarnation: 3, ttlMs: 1000, attributes: {}, spans: [], ending: false, change: 0 }),
  },
  { key: currentKey(Buffer.from('a')), value: Buffer.from('b') },
  { key: historyKey(Buffer.from('a\0b'), 12), value: Buffer.alloc(300) },
  stateAt(7),
];

/** Frames of a stream: the basis of its corpus and of the repaired streams. */
let stream: Promise<Buffer> | undefined;
function snapshotStream(): Promise<Buffer> {
  async function* all() {
    yield ROWS;
  }
  const gather = async (): Promise<Buffer> => {
    const parts: Bytes[] = [];
    for await (const part of encodeSnapshot(IDENTITY, all())) parts.push(Buffer.from(part));
    return Buffer.concat(parts);
  };
  stream ??= gather();
  return stream;
}
const STREAM = await snapshotStream();

function parse(bytes: Uint8Array): void {
  const parser = new SnapshotParser(IDENTITY);
  // In two pieces, cut anywhere, as chunks may be.
  const cut = bytes.length % 61;
  for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) for (const rows of parser.push(piece)) void rows;
  parser.finish();
}

/** The frames of the stream after its magic. */
function bodies(): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 8; at < STREAM.length; ) {
    const length = STREAM.readUInt32BE(at);
    found.push(STREAM.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return found;
}

function checked(body: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length, 0);
  head.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([head, body]);
}

const isSnapshotError = (error: unknown): boolean => error instanceof SnapshotFormatError;

const snapshots: Target = {
  name: 'snapshot-stream',
  corpus: () => [STREAM],
  decode: parse,
  expected: isSnapshotError,
};

/** Frames with correct checksums and arbitrary content, in place of the rows and of the header. */
const snapshotFrames: Target = {
  name: 'snapshot-frame',
  corpus: bodies,
  decode(body) {
    const [magic, header] = [STREAM.subarray(0, 8), bodies()[0] ?? Buffer.alloc(0)];
    const parser = new SnapshotParser(IDENTITY);
    for (const rows of parser.push(Buffer.concat([magic, checked(header), checked(body)]))) void rows;
    parse(Buffer.concat([magic, checked(body)]));
  },
  expected: isSnapshotError,
};

const CONF = { voters: [1, 2, 3], votersOutgoing: [], learners: [4], learnersNext: [], autoLeave: false };
const IMAGE: MasterImage = {
  clusterVersion: FIRST_VERSION,
  applied: { index: 4, term: 2 },
  conf: CONF,
  nextNodeId: 1001,
  nextRangeId: 3,
  nextReplicaId: 1004,
  revisionBound: 0,
  settings: { version: 0, texts: new Map() },
  nodes: [NODE],
  ranges: [RANGE],
  duties: [],
  pauses: [],
  forgottenNodes: [],
  formerMasters: [],
  mastersWanted: 3,
  asked: [],
  ended: [],
  chosen: [],
  operators: [],
  auth: new AuthState().image,
};
const USERS: AuthImage = {
  enabled: true,
  revision: 9,
  users: [{ name: 'root', passwordHash: '$scrypt$ln=15,r=8,p=3$MDEy$MDEy', roles: ['root'], version: 2 }],
  roles: [
    {
      name: 'orders',
      keys: [{ access: 'readWrite', key: Buffer.from('a'), end: Buffer.from('b') }],
      locks: [{ namespace: 'default', name: Buffer.from('orders/'), isPrefix: true, verb: 'acquire' }],
    },
  ],
  tokenKey: Buffer.alloc(32, 1),
};
const SET_IMAGE: MasterImage = { ...IMAGE, settings: { version: 1, texts: new Map([['down-after', '5m']]) } };

const CARE_IMAGE: MasterImage = {
  ...SET_IMAGE,
  duties: [{ nodeId: 1, duty: 'maintenance', untilMs: 1_700_000_000_000 }],
  pauses: [{ name: 'bytes', untilMs: 1_700_000_000_000 }],
  asked: [{ rangeId: 2, epoch: RANGE.epoch, childId: 9, replicas: RANGE.replicas }],
  ended: [{ rangeId: 8, into: 2 }],
  operators: [
    {
      ...{ operatorId: 2_000_001, rangeId: 2, partner: 0, kind: 'admin', status: 'success', reason: 'requested' },
      ...{
        steps: ['transfer the leader to node 2'],
        step: 1,
        outcome: 'done',
        createdMs: 1,
        endedMs: 1_700_000_000_000,
      },
    },
  ],
  auth: USERS,
};

async function receive(bytes: Uint8Array): Promise<void> {
  const { applied, conf } = IMAGE;
  const receiver = receiveMasterSnapshot({ ...applied, conf }, async () => {});
  await receiver.chunk(bytes);
  await receiver.finish(() => {});
}

const isMasterError = (error: unknown): boolean => error instanceof MasterSnapshotError;

const masterSnapshots: Target = {
  name: 'master-snapshot',
  corpus: () => [IMAGE, { ...IMAGE, revisionBound: 900 }, SET_IMAGE, CARE_IMAGE].map(encodeMasterSnapshot),
  decode: receive,
  expected: isMasterError,
};

const masterSnapshotBodies: Target = {
  name: 'master-snapshot-body',
  corpus: () => [IMAGE, SET_IMAGE, CARE_IMAGE].map(encodeMasterImage),
  decode: (body) => receive(Buffer.concat([encodeMasterSnapshot(IMAGE).subarray(0, 8), checked(body)])),
  expected: isMasterError,
};

// ------------------------------------------------------------------------------------------------ rows

/** A row of the engine, or an entry of the log. Only this program has written it, so damage is a broken invariant. */
function row<T>(
  name: string,
  values: readonly T[],
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
): Target {
  return {
    name,
    corpus: () => values.map(encode),
    decode(bytes) {
      sameAgain(decode(bytes), (value) => decode(encode(value)));
    },
    expected: isInvariant,
  };
}

const owner = { session: { lease: 2n ** 62n, incarnation: 4 }, token: 'tökén' };
const holder = { owner, version: 9, depth: 2, lockTimeMs: 5.5, data: Buffer.from('d') };
const head = { ...locks.emptyHead(), waiters: 1, nextSequence: 2, marks: 1, marksDueMs: 7.25 };
const terms = { keepData: false, delayMs: 0, delayed: false };
const numbers = { firstAttempt: 3, attempt: 3, upgradeAttempt: 0 };
const hold = { holder, mode: 'exclusive', permits: 0, ...numbers, ...terms } as const;
const shareKeys = new LockKeys({ namespace: 'n', name: Buffer.from('l') });

const MARKER = {
  ...{ rangeId: 2, replicaId: 3, span: EVERYTHING, applied: { index: 7, term: 2 } },
  ...{ file: '2-1.snapshot', bytes: 70 },
};

const ROW_TARGETS: readonly Target[] = [
  row('row-range-state', [decodeRangeMeta(stateAt(7).value)], encodeRangeMeta, decodeRangeMeta),
  row(
    'row-install-marker',
    [MARKER, { ...MARKER, span: { start: Buffer.from([3, 7]), end: Buffer.from([3, 9]) } }],
    encodeMarker,
    decodeMarker,
  ),
  row(
    'row-outcomes',
    [
      [],
      COMMAND_RESULTS.map((result, i) => ({
        requestId: `r${i}`,
        deadlineMs: 5.5,
        outcome: { ok: true as const, revision: i, result },
      })),
      [
        {
          requestId: 'failed',
          deadlineMs: 1,
          outcome: { ok: false as const, revision: 3, code: 'COMPACTED' as const, message: 'gone', details: { at: 3 } },
        },
      ],
    ],
    encodeOutcomePage,
    decodeOutcomePage,
  ),
  row(
    'row-lease',
    [
      { id: 9n, incarnation: 3, ttlMs: 1000, attributes: { host: 'a', '': 'b' }, spans: [], ending: false, change: 0 },
      {
        ...{ id: 9n, incarnation: 3, ttlMs: 1000, attributes: {}, ending: true, change: 0 },
        spans: [{ start: Buffer.from([3]), end: Buffer.from([4]) }],
      },
      {
        ...{ id: 9n, incarnation: 3, ttlMs: 1500, attributes: { host: 'a' }, spans: [], ending: false, change: 2 },
        condition: { heartbeatMs: 500, serverMisses: 3, holderMisses: 2 },
      },
      {
        ...{ id: 9n, incarnation: 3, ttlMs: 1500, attributes: {}, spans: [], ending: false, change: 0 },
        remainingMs: 700,
      },
    ],
    encodeLease,
    (bytes) => decodeLease(9n, bytes),
  ),
  row(
    'row-version',
    [{ createRevision: 1, modRevision: 2 ** 53 - 1, version: 3, lease: -1n, value: Buffer.from('v') }],
    encodeVersion,
    decodeVersion,
  ),
  row(
    'row-master-command',
    [
      { type: 'registerNode', descriptor: NODE },
      { type: 'bootstrapRange', nodeIds: [1, 2, 3] },
    ],
    encodeMasterCommand,
    decodeMasterCommand,
  ),
  row('row-master-state', [IMAGE], encodeMasterImage, decodeMasterImage),
  row(
    'row-lock-head',
    [
      { ...head, hold: undefined },
      { ...head, hold },
      { ...head, hold: { ...hold, firstAttempt: 2 } },
      { ...head, hold: { ...hold, upgradeAttempt: 2 } },
      { ...head, hold: { ...hold, keepData: true }, keepsData: true },
      { ...head, hold: { ...hold, delayMs: 9, delayed: true }, delayed: 1 },
      { ...head, hold: undefined, sharers: 2, permits: 3, capacity: 5, capacityIsSet: true },
    ],
    locks.encodeHead,
    locks.decodeHead,
  ),
  row(
    'row-lock-waiter',
    [
      {
        owner,
        mode: 'exclusive',
        permits: 0,
        attempt: 1,
        waitUntilMs: 0,
        sinceMs: 8.5,
        data: Buffer.alloc(0),
        keepData: false,
        delayMs: 0,
      },
      {
        owner,
        mode: 'permits',
        permits: 2,
        attempt: 1,
        waitUntilMs: 0,
        sinceMs: 8.5,
        data: Buffer.alloc(0),
        keepData: true,
        delayMs: 9,
      },
    ],
    lockRows.encodeWaiter,
    lockRows.decodeWaiter,
  ),
  row(
    'row-lock-owner',
    [
      { sequence: 4, mark: undefined, shareVersion: 0 },
      { sequence: 0, mark: { attempt: 2, deadlineMs: 3 }, shareVersion: 0 },
      { sequence: 0, mark: undefined, shareVersion: 7 },
    ],
    lockRows.encodeOwner,
    lockRows.decodeOwner,
  ),
  row(
    'row-lock-share',
    [
      { ...hold, mode: 'shared' },
      { ...hold, mode: 'permits', permits: 3 },
    ],
    lockRows.encodeShare,
    (value) => lockRows.shareAt(shareKeys, { key: shareKeys.share(owner, holder.version), value }),
  ),
  {
    name: 'row-keys',
    corpus: () => [
      ...ROWS.map(({ key }) => key),
      Buffer.from(`\x02\x07defaulta\0\xffb\0\x01\0`, 'latin1'),
      Buffer.from('\x02\x00\x00\x01', 'latin1'),
    ],
    decode(key) {
      for (const read of [parseHistoryKey, leaseIdOfKey, rangeIdOfLocalKey, attachedTarget, lockStart, lockOfKey]) {
        try {
          read(key);
        } catch (error) {
          if (!isInvariant(error)) throw error;
        }
      }
    },
    expected: isInvariant,
  },
];

export const STORAGE_TARGETS: readonly Target[] = [
  snapshots,
  snapshotFrames,
  masterSnapshots,
  masterSnapshotBodies,
  ...ROW_TARGETS,
];
