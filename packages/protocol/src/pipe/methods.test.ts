import { createHash } from 'node:crypto';
import { ServiceError, utf8 } from '@remora/base';
import type { LockNews } from '@remora/lock';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  COMMAND_RESULTS,
  COMMANDS,
  EVENTS,
  HEALTH,
  QUERIES,
  QUERY_RESULTS,
  VIEW,
} from '../internal/codec/test-samples.ts';
import { packVersioned, unpackVersioned } from '../internal/codec/wire.ts';
import type { Method } from '../rpc/rpc.ts';
import {
  type PipeWatchMessage,
  type PipeWatchRequest,
  pipeCommand,
  pipeConditions,
  pipeGateways,
  pipeLockWatch,
  pipeQuery,
  pipeView,
  pipeWatch,
} from './methods.ts';

const HEADER = { revision: 9, raftTerm: 2, rangeTimeMs: 7.5, queuedAt: undefined };
const WATCH: PipeWatchRequest = {
  kind: 'create',
  key: utf8('a'),
  end: utf8('b'),
  startRevision: 3,
  noPut: true,
  noDelete: false,
  prevKv: true,
};
const WATCH_MESSAGES: PipeWatchMessage[] = [
  { kind: 'created', revision: 4 },
  { kind: 'events', revision: 9, events: EVENTS },
  { kind: 'events', revision: 10, events: [] },
];

const LOCK = { namespace: 'n', name: utf8('l') };
const OWNER = { session: { lease: 5n, incarnation: 3 }, id: 't' };
const NEWS: readonly LockNews[] = [
  { type: 'begin', from: utf8('a'), to: utf8('z') },
  { type: 'state', lock: LOCK, revision: 4, state: undefined },
  { type: 'live' },
  { type: 'events', lock: LOCK, revision: 5, events: [{ type: 'left', owner: OWNER, code: 'LOCK_TIMEOUT' }] },
];

interface Case {
  readonly name: string;
  readonly method: Method<unknown, unknown>;
  readonly requests: readonly unknown[];
  readonly replies: readonly unknown[];
}

function methodCase<Q, R>(method: Method<Q, R>, requests: readonly Q[], replies: readonly R[]): Case {
  return { name: method.name, method: method as unknown as Method<unknown, unknown>, requests, replies };
}

const CASES = [
  methodCase(
    pipeCommand,
    COMMANDS.flatMap((command) => [
      { command, requestId: 'r', timeoutMs: 5, deadlineMs: undefined, waitMs: undefined },
      { command, requestId: 'r', timeoutMs: 5, deadlineMs: 77.5, waitMs: 0 },
    ]),
    COMMAND_RESULTS.map((result) => ({ ...HEADER, result })),
  ),
  methodCase(
    pipeQuery,
    QUERIES.map((query) => ({ query, timeoutMs: 5 })),
    QUERY_RESULTS.map((result) => ({ ...HEADER, rangeTimeMs: undefined, result })),
  ),
  methodCase<PipeWatchRequest, PipeWatchMessage>(pipeWatch, [WATCH, { kind: 'progress' }], WATCH_MESSAGES),
  methodCase(pipeView, [undefined], [VIEW]),
  methodCase(pipeGateways, [undefined], [{ cluster: 'c', addresses: ['10.0.0.1:7480', '[::1]:7480'] }]),
  methodCase(pipeConditions, [undefined], [HEALTH]),
  methodCase(pipeLockWatch, [{ namespace: 'n', name: utf8('l'), single: true }], [NEWS]),
];

function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'sample');
}

/** Bytes as text, as a Buffer is no Uint8Array to `toStrictEqual`. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}

test.each(CASES)('requests and replies of $name survive the wire', ({ method, requests, replies }) => {
  for (const request of requests) {
    expect(plain(method.decodeRequest(overTheWire(method.encodeRequest(request))))).toStrictEqual(plain(request));
  }
  for (const reply of replies) {
    expect(plain(method.decodeReply(overTheWire(method.encodeReply(reply))))).toStrictEqual(plain(reply));
  }
});

test.each(CASES)('any value at all is a message of $name or INVALID_ARGUMENT', ({ method }) => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withTypedArray: true }), (raw) => {
      for (const decode of [method.decodeRequest, method.decodeReply]) {
        try {
          decode(raw);
        } catch (error) {
          if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
        }
      }
    }),
  );
});

test('the public format is what it was: what older peers would misread needs a new method name', () => {
  const hash = createHash('sha256');
  for (const { name, method, requests, replies } of CASES) {
    hash.update(name);
    for (const request of requests) hash.update(packVersioned(1, method.encodeRequest(request)));
    for (const reply of replies) hash.update(packVersioned(1, method.encodeReply(reply)));
  }
  expect(hash.digest('hex')).toBe('de67957015691075b65b479c4860eba3d45dae17406a03b8f3a752cfb498253f');
});

test('the place in the queue comes after all that was there before it, and only with acquires that had one', () => {
  const reply = { ...HEADER, result: COMMAND_RESULTS[0] } as const;
  const plainly = pipeCommand.encodeReply(reply as never) as unknown[];
  const queued = pipeCommand.encodeReply({ ...reply, queuedAt: 3 } as never) as unknown[];
  expect(queued).toEqual([...plainly, 3]);
  expect(pipeCommand.decodeReply(overTheWire(queued))).toMatchObject({ queuedAt: 3 });
  expect(pipeCommand.decodeReply(overTheWire(plainly)).queuedAt).toBeUndefined();
});
