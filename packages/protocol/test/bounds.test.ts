// Bounds of messages that declarations set, at both of their ends.
import { describe, expect, test } from 'vitest';
import * as protocol from '../src/index.ts';
import { schema } from '../src/index.ts';
import type { Kind } from '../src/schema/shape.ts';

interface Row<T> {
  readonly name: string;
  readonly kind: Kind<T>;
  readonly accepted: readonly T[];
  readonly refused: readonly T[];
}

function row<T>(name: string, kind: Kind<T>, accepted: readonly T[], refused: readonly T[]): Row<unknown> {
  return { name, kind, accepted, refused } as Row<unknown>;
}

const operators = (limit: number) => ({ ended: true, rangeId: 0, limit });
const ranges = (limit: number) => ({ from: Buffer.of(), limit, rangeId: 0 });
const draws = (count: number, each = 1) => ({
  floor: 0,
  draws: Array.from({ length: count }, () => ({ rangeId: 2, count: each })),
});
const condition = (text: string) => protocol.healthCondition('diskReserve', { nodeId: 1 }, text);
const gateways = (count: number, address = 'a:1') => ({ cluster: 'c', addresses: Array<string>(count).fill(address) });
const setting = (value: string) => ({ name: 'down-after', value });
const block = (first: number, count: number) => ({ first, count });

const ROWS = [
  row('operators', protocol.OperatorsRequest, [1, 1_000].map(operators), [0, 1_001].map(operators)),
  row('ranges', protocol.RangesRequest, [1, 500].map(ranges), [0, 501].map(ranges)),
  row(
    'draws',
    protocol.DrawRevisionsRequest,
    [draws(0), draws(20_000)],
    [draws(20_001), draws(1, 0), draws(1, 65_537)],
  ),
  row('floors', protocol.DrawRevisionsRequest, [{ floor: 2 ** 52, draws: [] }], [{ floor: 2 ** 52 + 1, draws: [] }]),
  row('conditions', protocol.HealthCondition, [condition('x'.repeat(2_000))], [condition('x'.repeat(2_001))]),
  row('gateways', protocol.PipeGateways, [gateways(64, 'x'.repeat(300))], [gateways(65), gateways(1, 'x'.repeat(301))]),
  row('settings', protocol.SetSettingRequest, [setting('x'.repeat(1_024))], [setting('x'.repeat(1_025))]),
  row('request ids', protocol.RequestId, ['', 'x'.repeat(64)], ['x'.repeat(65)]),
  row('ids of transactions', protocol.TxnId, ['x', 'x'.repeat(48)], ['', 'x'.repeat(49)]),
  row(
    'blocks',
    protocol.RevisionBlock,
    [block(1, 65_536)],
    [block(0, 1), block(1, 0), block(Number.MAX_SAFE_INTEGER, 1)],
  ),
];

describe.each(ROWS)('$name', ({ kind, accepted, refused }) => {
  const { encode, decode } = schema.openCodec(kind);

  test('within their bounds are accepted', () => {
    for (const value of accepted) expect(decode(encode(value))).toEqual(value);
  });

  test('beyond them are refused, and the error names the field', () => {
    for (const value of refused) {
      expect(() => decode(encode(value))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
      expect(() => decode(encode(value))).toThrow(/malformed/);
    }
  });
});

test('what came with an answer later is left out when there is nothing to say', () => {
  const reply = { revision: 9, raftTerm: 2, rangeTimeMs: 7.5, result: { type: 'noop' } } as const;
  const plain = protocol.pipeCommand.encodeReply(reply) as unknown[];
  expect(protocol.pipeCommand.encodeReply({ ...reply, queuedAt: 3 })).toEqual([...plain, 3]);
  expect(protocol.pipeCommand.decodeReply([...plain, 3]).queuedAt).toBe(3);
  expect(protocol.pipeCommand.decodeReply(plain).queuedAt).toBeUndefined();
});
