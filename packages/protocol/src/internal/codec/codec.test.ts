import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  masterCheck,
  masterHotRanges,
  masterNodes,
  masterRanges,
  masterSetSetting,
  masterSettings,
  rangeStatus,
  rangeTransferLeader,
} from '../admin-methods.ts';
import {
  masterAskSplit,
  masterDrawRevisions,
  masterHeartbeat,
  masterJoin,
  masterRangeChanged,
  masterView,
  rangeAwaitLeader,
  rangeExecute,
  rangeInfo,
  rangeWatch,
} from '../methods.ts';
import { decodeEntry, encodeEntry } from './entry.ts';
import { decodeCommand, decodeKvOp, decodeQuery, encodeKvOp } from './test-codecs.ts';
import {
  BATCH,
  BLOCK_BATCH,
  CHECKED,
  COMMANDS,
  DRAWN,
  DRAWS,
  HEALTH,
  HEARTBEAT,
  NODE,
  NODES,
  RANGE,
  RANGES,
  REPLIES,
  REQUESTS,
  SETTINGS,
  SPLITS,
  STATUS,
  TASKS,
  VIEW,
  WATCH_MESSAGES,
  WATCH_REQUESTS,
} from './test-samples.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

interface Case {
  readonly name: string;
  readonly samples: readonly unknown[];
  readonly encode: (value: unknown) => unknown;
  readonly decode: (raw: unknown) => unknown;
}

function codecCase<T>(name: string, samples: readonly T[], encode: (value: T) => unknown, decode: (raw: unknown) => T) {
  return { name, samples, encode: (value) => encode(value as T), decode } satisfies Case;
}

const { nodeId: _, ...SELF } = NODE;
const INFO = { rangeId: 2, leaderNode: 3, rangeTimeMs: 4.5, revision: 6, term: 7 };

const CASES: readonly Case[] = [
  codecCase('range requests', REQUESTS, rangeExecute.encodeRequest, rangeExecute.decodeRequest),
  codecCase('range replies', REPLIES, rangeExecute.encodeReply, rangeExecute.decodeReply),
  codecCase('watch requests', WATCH_REQUESTS, rangeWatch.encodeRequest, rangeWatch.decodeRequest),
  codecCase('watch messages', WATCH_MESSAGES, rangeWatch.encodeReply, rangeWatch.decodeReply),
  codecCase('range info requests', [{ rangeId: 4 }], rangeInfo.encodeRequest, rangeInfo.decodeRequest),
  codecCase(
    'waits for a leader',
    [{ rangeId: 4, waitMs: 250 }],
    rangeAwaitLeader.encodeRequest,
    rangeAwaitLeader.decodeRequest,
  ),
  codecCase('range info', [INFO], rangeInfo.encodeReply, rangeInfo.decodeReply),
  codecCase('join requests', [{ nodeId: 0, descriptor: SELF }], masterJoin.encodeRequest, masterJoin.decodeRequest),
  codecCase('join replies', [{ nodeId: 4, clusterId: 'c' }], masterJoin.encodeReply, masterJoin.decodeReply),
  codecCase('heartbeats', [HEARTBEAT], masterHeartbeat.encodeRequest, masterHeartbeat.decodeRequest),
  codecCase(
    'heartbeat replies',
    [{ tasks: TASKS, view: VIEW, incarnations: [[1, 'abc']], splits: SPLITS, conditions: HEALTH }],
    masterHeartbeat.encodeReply,
    masterHeartbeat.decodeReply,
  ),
  codecCase('changed ranges', [RANGE], masterRangeChanged.encodeRequest, masterRangeChanged.decodeRequest),
  codecCase(
    'revision draws',
    [DRAWS, { floor: 0, draws: [] }],
    masterDrawRevisions.encodeRequest,
    masterDrawRevisions.decodeRequest,
  ),
  codecCase('revision blocks', [DRAWN], masterDrawRevisions.encodeReply, masterDrawRevisions.decodeReply),
  codecCase(
    'asks for splits',
    [
      { range: RANGE, at: undefined, cause: 'size' },
      { range: RANGE, at: RANGE.end, cause: 'admin' },
    ],
    masterAskSplit.encodeRequest,
    masterAskSplit.decodeRequest,
  ),
  codecCase(
    'ids for splits',
    [{ childId: 9, replicas: [{ nodeId: 1, replicaId: 70 }] }],
    masterAskSplit.encodeReply,
    masterAskSplit.decodeReply,
  ),
  codecCase('cluster views', [VIEW], masterView.encodeReply, masterView.decodeReply),
  codecCase('overviews of nodes', [NODES], masterNodes.encodeReply, masterNodes.decodeReply),
  codecCase(
    'ranges requests',
    [{ from: new Uint8Array([3]), limit: 500, rangeId: 0 }],
    masterRanges.encodeRequest,
    masterRanges.decodeRequest,
  ),
  codecCase(
    'hot ranges requests',
    [{ by: 'writeBytes', limit: 1 }],
    masterHotRanges.encodeRequest,
    masterHotRanges.decodeRequest,
  ),
  codecCase('overviews of ranges', [RANGES], masterRanges.encodeReply, masterRanges.decodeReply),
  codecCase('check reports', [CHECKED], masterCheck.encodeReply, masterCheck.decodeReply),
  codecCase('settings', [SETTINGS], masterSettings.encodeReply, masterSettings.decodeReply),
  codecCase(
    'changes of settings',
    [{ name: 'down-after', value: '' }],
    masterSetSetting.encodeRequest,
    masterSetSetting.decodeRequest,
  ),
  codecCase('states of ranges', [STATUS], rangeStatus.encodeReply, rangeStatus.decodeReply),
  codecCase(
    'transfers of leaders',
    [{ rangeId: 2, toNode: 3 }],
    rangeTransferLeader.encodeRequest,
    rangeTransferLeader.decodeRequest,
  ),
];

/** Over the wire and back. Bytes come back as Buffers, which `toEqual` tells from Uint8Arrays: compare as text. */
function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'sample');
}

function canonical(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (typeof value === 'bigint') return `bigint:${value}`;
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, canonical(field)]));
}

describe('internal messages', () => {
  test.each(CASES)('$name survive the wire', ({ samples, encode, decode }) => {
    for (const sample of samples) {
      expect(canonical(decode(overTheWire(encode(sample))))).toStrictEqual(canonical(sample));
    }
  });

  test('the wire format is what it was: change it only together with its version', () => {
    const hash = createHash('sha256');
    for (const { samples, encode } of CASES)
      for (const sample of samples) hash.update(packVersioned(1, encode(sample)));
    expect(hash.digest('hex')).toBe('45d027b4e80cdf16b27895c6d3a26026d06d020fdc8692e47011259e38edf48a');
  });

  test('the format of log entries with a block is what it was: change it only together with its version', () => {
    expect(createHash('sha256').update(encodeEntry(BLOCK_BATCH)).digest('hex')).toBe(
      'a5fed878c7f31de9bd18ba93bbfb05405ad7196ae1691de0672e847b24ac247c',
    );
  });

  test('the log entry format is what it was: change it only together with its version', () => {
    expect(createHash('sha256').update(encodeEntry(BATCH)).digest('hex')).toBe(
      '7bdf74925e7003a24a475d69bf57e5321407d04e296be73164dececedbbe8ac4',
    );
  });

  test.each(CASES)(
    'a damaged field of $name is INVALID_ARGUMENT, never another error',
    ({ samples, encode, decode }) => {
      for (const sample of samples) {
        for (const damaged of damages(overTheWire(encode(sample)))) expectDecodesOrRefuses(() => decode(damaged));
      }
    },
  );

  test('any value at all decodes or is INVALID_ARGUMENT', () => {
    const anything = fc.anything({ withBigInt: true, withTypedArray: true, maxDepth: 4 });
    const tagged = fc
      .tuple(fc.nat({ max: 40 }), fc.array(anything, { maxLength: 6 }))
      .map(([tag, rest]) => [tag, ...rest]);
    fc.assert(
      fc.property(fc.oneof(anything, tagged), (raw) => {
        for (const { decode } of CASES) expectDecodesOrRefuses(() => decode(raw));
        expectDecodesOrRefuses(() => decodeCommand(raw));
        expectDecodesOrRefuses(() => decodeQuery(raw));
      }),
      { numRuns: 300 },
    );
  });
});

describe('numbers', () => {
  test('lease ids of 63 bits survive, and small ones come back as bigint', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (id) => {
        const { requestId, deadlineMs } = { requestId: 'r', deadlineMs: 1 };
        const command = { type: 'leaseRevoke', id, incarnation: 0 } as const;
        const back = decodeEntry(encodeEntry({ ...BATCH, commands: [{ requestId, deadlineMs, command }] }));
        expect(back.commands[0]?.command).toStrictEqual(command);
      }),
    );
  });

  const unsafe = [2 ** 53, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 5n, '5', null];
  test.each(unsafe)('a revision of %s is refused', (revision) => {
    expect(() => decodeCommand([2, revision])).toThrow(ServiceError);
  });
});

describe('key-value operations', () => {
  const bytes = fc.uint8Array({ maxLength: 40 });
  const keyRange = fc
    .tuple(bytes, fc.option(bytes, { nil: undefined }))
    .map(([key, end]) => (end ? { key, end } : { key }));
  const op = fc.oneof(
    fc.record({
      type: fc.constant('put' as const),
      key: bytes,
      value: bytes,
      lease: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      prevKv: fc.boolean(),
      ignoreValue: fc.boolean(),
      ignoreLease: fc.boolean(),
    }),
    fc.tuple(keyRange, fc.boolean()).map(([range, prevKv]) => ({ type: 'delete' as const, ...range, prevKv })),
  );

  test('any put and delete survives the wire', () => {
    fc.assert(
      fc.property(op, (given) => {
        expect(canonical(decodeKvOp(overTheWire(encodeKvOp(given))))).toStrictEqual(canonical(given));
      }),
    );
  });

  test('transactions nested too deep are refused', () => {
    let raw: unknown = [3, [[], [], []]];
    for (let i = 0; i < 50; i++) raw = [3, [[], [raw], []]];
    expect(() => decodeKvOp(raw)).toThrow(/nested too deep/);
  });
});

describe('log entries', () => {
  test('every command survives', () => {
    expect(canonical(decodeEntry(encodeEntry(BATCH)))).toStrictEqual(canonical(BATCH));
  });

  test('the first byte is the version, and another one is refused', () => {
    const entry = encodeEntry(BATCH);
    expect(entry[0]).toBe(1);
    entry[0] = 99;
    expect(() => decodeEntry(entry)).toThrow(/format version 99/);
  });

  test('only an entry with a block of revisions has the newer format', () => {
    expect(encodeEntry(BLOCK_BATCH)[0]).toBe(2);
    expect(canonical(decodeEntry(encodeEntry(BLOCK_BATCH)))).toStrictEqual(canonical(BLOCK_BATCH));
  });

  test.each([
    { name: 'begins at 0', block: { first: 0, count: 1 } },
    { name: 'is empty', block: { first: 5, count: 0 } },
    { name: 'ends above the safe integers', block: { first: Number.MAX_SAFE_INTEGER, count: 1 } },
  ])('a block that $name is refused', ({ block }) => {
    expect(() => decodeEntry(encodeEntry({ ...BATCH, block }))).toThrow(/revision/);
  });

  test.each([BATCH, BLOCK_BATCH])('an entry cut short or altered decodes or is INVALID_ARGUMENT', (batch) => {
    const entry = encodeEntry(batch);
    for (let length = 0; length < entry.length; length += 7) {
      expectRefuses(() => decodeEntry(entry.subarray(0, length)));
    }
    fc.assert(
      fc.property(fc.nat({ max: entry.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
        const altered = Buffer.from(entry);
        altered[at] = byte;
        expectDecodesOrRefuses(() => decodeEntry(altered));
      }),
      { numRuns: 1_000 },
    );
  });

  test('two entries made one after the other do not share memory', () => {
    const [first] = COMMANDS.slice(0, 1).map((command) =>
      encodeEntry({ ...BATCH, commands: [{ requestId: 'a', deadlineMs: 0, command }] }),
    );
    const before = Buffer.from(first ?? []);
    for (let i = 0; i < 100; i++) encodeEntry(BATCH);
    expect(first?.equals(before)).toBe(true);
  });
});

/** Every copy of `raw` in which one field, at any depth, is replaced by something of another type or left out. */
function* damages(raw: unknown): Generator<unknown> {
  yield null;
  yield 'text';
  yield -5;
  yield {};
  if (!Array.isArray(raw)) return;
  yield raw.slice(1);
  yield [...raw, 1];
  for (let i = 0; i < raw.length; i++) {
    for (const damaged of damages(raw[i])) yield raw.with(i, damaged);
  }
}

function expectDecodesOrRefuses(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
  }
}

function expectRefuses(decode: () => unknown): void {
  expect(decode).toThrow(ServiceError);
}
