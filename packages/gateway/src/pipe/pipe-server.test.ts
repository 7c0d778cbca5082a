import type { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { LinkCaller, type PipeCommand, pipeCommand } from '@remora/protocol';
import { createMemoryLink } from '@remora/protocol/testing';
import { expect, test } from 'vitest';
import { anonymousConnection, NO_AUTHENTICATION } from '../../test/support/no-authentication.ts';
import type { Backend } from '../backend.ts';
import { createPipeRegistry, PIPE_LIMITS, servePipe } from './pipe-server.ts';

test('a client is not told that its command was refused when only the answer is too large', () => {
  const clock = new ManualClock();
  const bytes = Buffer.alloc(100, 1);
  const kv = { key: bytes, value: bytes, createRevision: 1, modRevision: 1, version: 1, lease: 0n };
  const backend: Pick<Backend, 'command' | 'rangeTimeMs'> = {
    command(_command, _options, done) {
      const result = { type: 'delete', deleted: 1, prev: [kv] } as const;
      done(undefined, { result, revision: 7, raftTerm: 1 });
      return () => {};
    },
    rangeTimeMs: () => 5,
  };
  const pair = createMemoryLink(clock);
  const limits = { ...PIPE_LIMITS, replyBytesMax: 100 };
  const registry = createPipeRegistry(backend as Backend, { identification: NO_AUTHENTICATION });
  servePipe({ link: pair.server, connection: anonymousConnection(), registry, clock, limits });
  const caller = new LinkCaller({ link: pair.client, clock });
  const request: PipeCommand = {
    command: { type: 'kv', op: { type: 'delete', key: bytes, prevKv: true } },
    requestId: 'r1',
    timeoutMs: 1_000,
  };
  let seen: ServiceError | undefined;
  caller.call(pipeCommand, request, { timeoutMs: 1_000 }, (error) => {
    seen = error;
  });
  clock.advance(1);
  expect(seen).toMatchObject({ code: 'RESULT_LOST' });
});

const DELETE: PipeCommand['command'] = { type: 'kv', op: { type: 'delete', key: Buffer.from('k'), prevKv: false } };

test.each([true, undefined] as const)('a command that says %s of earlier attempts is passed on with that', (again) => {
  const clock = new ManualClock();
  const seen: unknown[] = [];
  const backend: Pick<Backend, 'command'> = {
    command(_command, options) {
      seen.push(options.again);
      return () => {};
    },
  };
  const pair = createMemoryLink(clock);
  const registry = createPipeRegistry(backend as Backend, { identification: NO_AUTHENTICATION });
  servePipe({ link: pair.server, connection: anonymousConnection(), registry, clock });
  const caller = new LinkCaller({ link: pair.client, clock });
  const request: PipeCommand = { command: DELETE, requestId: 'r1', timeoutMs: 1_000, again };
  caller.call(pipeCommand, request, { timeoutMs: 1_000 }, () => {});
  clock.advance(1);
  expect(seen).toEqual([again]);
});
