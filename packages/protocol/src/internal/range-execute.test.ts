import type { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { LinkCaller } from '../rpc/caller.ts';
import { createRpcRegistry } from '../rpc/registry.ts';
import { DEFAULT_SERVER_LIMITS, serveLink } from '../rpc/server.ts';
import { createMemoryLink } from '../testing/memory-link.ts';
import { rangeExecute } from './methods/node-methods.ts';
import type { RangeReply, RangeRequest } from './range-api.ts';

const bytes = Buffer.alloc(200, 1);
const kv = { key: bytes, value: bytes, createRevision: 1, modRevision: 1, version: 1, lease: 0n };
const del = { type: 'delete', key: bytes, prevKv: true } as const;
const range = { type: 'range', key: bytes, revision: 0, limit: 0, sortOrder: 'none', sortTarget: 'key' } as const;
const all = { minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 };

const ROWS: readonly {
  readonly name: string;
  readonly body: RangeRequest['body'];
  readonly result: RangeReply['result'];
  readonly expected: object;
}[] = [
  {
    name: 'a command is not refused: it was applied',
    body: { kind: 'command', command: { type: 'kv', op: del } },
    result: { type: 'delete', deleted: 1, prev: [kv] },
    expected: { code: 'RESULT_LOST' },
  },
  {
    name: 'a query is refused',
    body: {
      kind: 'query',
      query: { type: 'range', op: { ...range, ...all, keysOnly: false, countOnly: false }, serializable: false },
      notBefore: 0,
    },
    result: { type: 'range', kvs: [kv], count: 1, more: false },
    expected: { code: 'RESOURCE_EXHAUSTED' },
  },
];

test.each(ROWS)('when the answer of a range is too large to be sent, $name', ({ body, result, expected }) => {
  const clock = new ManualClock();
  const registry = createRpcRegistry();
  registry.handle(rangeExecute, (_request, _context, done) => {
    done(undefined, { revision: 7, raftTerm: 1, rangeTimeMs: 5, result });
  });
  const pair = createMemoryLink(clock);
  serveLink({
    link: pair.server,
    caller: { kind: 'node', nodeId: 1 },
    registry,
    clock,
    limits: { ...DEFAULT_SERVER_LIMITS, replyBytesMax: 100 },
  });
  let seen: ServiceError | undefined;
  const epoch = { confVersion: 1, version: 1 };
  const request = { rangeId: 2, epoch, requestId: 'r1', authRevision: 0, deadlineMs: 1_000, body };
  new LinkCaller({ link: pair.client, clock }).call(rangeExecute, request, { timeoutMs: 1_000 }, (error) => {
    seen = error;
  });
  clock.advance(1);
  expect(seen).toMatchObject(expected);
});
