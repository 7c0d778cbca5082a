import { type Logger, type ServiceError, silentLogger, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { ClusterView, Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Backend, BackendDone } from '../backend.ts';
import { Admission } from './admission.ts';
import { AdmittedBackend } from './admitted-backend.ts';

/** Counts what reaches it. */
class CountingBackend implements Backend {
  readonly nodeId = 7;
  reached = 0;

  command(): () => void {
    return this.#count();
  }
  query(): () => void {
    return this.#count();
  }
  watch() {
    this.#count();
    return { cancel() {}, progress() {}, pause() {}, resume() {} };
  }
  watchLocks() {
    return this.watch();
  }
  view(): ClusterView {
    return { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  }
  check(): void {}

  rangeTimeMs(): number {
    return 5;
  }
  #count(): () => void {
    this.reached++;
    return () => {};
  }
}

interface Bed {
  readonly clock: ManualClock;
  readonly behind: CountingBackend;
  readonly admission: Admission;
  readonly ask: (request: Request) => string;
  readonly errors: ServiceError[];
  readonly logged: unknown[];
}

type Request = { readonly command: Command } | { readonly query: Query } | { readonly watch: true };

function bed(requestsPerSecondMax: number): Bed {
  const clock = new ManualClock();
  const logged: unknown[] = [];
  const logger: Logger = { ...silentLogger, warn: (fields) => logged.push(fields) };
  const behind = new CountingBackend();
  const admission = new Admission({ clock, logger }, { requestsPerSecondMax });
  const backend = new AdmittedBackend(behind, admission);
  const errors: ServiceError[] = [];
  const options = { timeoutMs: 1_000, principal: undefined };
  const ask = (request: Request): string => {
    let refused: ServiceError | undefined;
    const done: BackendDone<CommandResult | QueryResult> = (error) => {
      refused = error;
    };
    if ('command' in request) backend.command(request.command, options, done);
    else if ('query' in request) backend.query(request.query, options, done);
    else backend.watch(WATCH, { onCreated() {}, onEvents() {}, onProgress() {}, onEnd() {} });
    if (refused !== undefined) errors.push(refused);
    return refused?.code ?? 'ok';
  };
  return { clock, behind, admission, ask, errors, logged };
}

const WATCH = { key: utf8('k'), startRevision: 0, noPut: false, noDelete: false, prevKv: false, principal: undefined };
const lock = { namespace: 'default', name: utf8('l') };
const owner = { session: { lease: 1n, incarnation: 1 }, token: 't' };
const put: Request = {
  command: {
    type: 'kv',
    op: {
      type: 'put',
      key: utf8('k'),
      value: utf8('v'),
      lease: 0n,
      prevKv: false,
      ignoreValue: false,
      ignoreLease: false,
    },
  },
};
const acquire: Request = {
  command: {
    type: 'lock',
    command: {
      type: 'acquire',
      lock,
      owner,
      wait: true,
      waitUntilMs: 0,
      deadlineMs: 0,
      attempt: 1,
      depthMax: 1,
      data: utf8(''),
    },
  },
};

const never: { readonly name: string; readonly request: Request }[] = [
  { name: 'a heartbeat', request: { query: { type: 'leaseKeepAlive', id: 1n, incarnation: 1 } } },
  { name: 'a wait in a queue', request: { query: { type: 'lockAwait', lock, owner } } },
  {
    name: 'a wait for the end of a grant',
    request: { query: { type: 'grantEnd', lock, version: 1, session: owner.session } },
  },
  { name: 'the status of the range', request: { query: { type: 'status' } } },
  {
    name: 'a release',
    request: { command: { type: 'lock', command: { type: 'release', lock, owner, all: false, deadlineMs: 0 } } },
  },
  {
    name: 'a cancel',
    request: { command: { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 0 } } },
  },
  { name: 'a forced release', request: { command: { type: 'lock', command: { type: 'forceRelease', lock } } } },
  { name: 'the end of a lease', request: { command: { type: 'leaseRevoke', id: 1n, incarnation: 1 } } },
  { name: 'a watch', request: { watch: true } },
];
test.each(never)('$name is let in when nothing else is', ({ request }) => {
  const { ask } = bed(1);
  ask(put);
  expect(ask(put)).toBe('RESOURCE_EXHAUSTED');
  for (let i = 0; i < 100; i++) expect(ask(request)).toBe('ok');
});

const refusable: { readonly name: string; readonly request: Request }[] = [
  { name: 'a put', request: put },
  {
    name: 'a transaction',
    request: { command: { type: 'txn', txn: { compare: [], success: [], failure: [] } } },
  },
  { name: 'a new lease', request: { command: { type: 'leaseGrant', id: 1n, ttlMs: 5_000, attributes: {} } } },
  { name: 'an acquire', request: acquire },
  { name: 'a look at a lock', request: { query: { type: 'lock', query: { type: 'show', lock } } } },
  { name: 'a list of leases', request: { query: { type: 'leases' } } },
];
test.each(refusable)('$name is refused above the limit, and reaches nothing', ({ request }) => {
  const { ask, behind, errors } = bed(10);
  const answers = Array.from({ length: 8 }, () => ask(request));
  expect(answers).toEqual([...Array(5).fill('ok'), ...Array(3).fill('RESOURCE_EXHAUSTED')]);
  expect(behind.reached).toBe(5);
  expect(errors[0]).toMatchObject({ retry: 'later', details: { retryAfterMs: 100 } });
  expect(errors[0]?.message).toContain('--requests-per-second-max');
});

test('heartbeats take nothing from others, releases do', () => {
  const { ask } = bed(10);
  for (let i = 0; i < 4; i++) ask({ query: { type: 'leaseKeepAlive', id: 1n, incarnation: 1 } });
  for (let i = 0; i < 4; i++) ask({ command: { type: 'leaseRevoke', id: 1n, incarnation: 1 } });
  expect([ask(put), ask(put)]).toEqual(['ok', 'RESOURCE_EXHAUSTED']);
});

test('time lets in what the rate allows', () => {
  const { ask, clock } = bed(10);
  while (ask(put) === 'ok');
  clock.advance(99);
  expect(ask(put)).toBe('RESOURCE_EXHAUSTED');
  clock.advance(1);
  expect([ask(put), ask(put)]).toEqual(['ok', 'RESOURCE_EXHAUSTED']);
});

test('a limit of 0 is none', () => {
  const { ask, admission } = bed(0);
  for (let i = 0; i < 10_000; i++) expect(ask(put)).toBe('ok');
  expect(admission.stats).toEqual({
    admitted: { ordinary: 10_000, charged: 0, free: 0 },
    refused: { rate: 0, calls: 0, waits: 0 },
    malformed: { pipe: 0, grpc: 0, http: 0 },
  });
});

test('what was let in and refused is counted, and said in the log now and then', () => {
  const { ask, admission, clock, logged } = bed(2);
  for (let i = 0; i < 5; i++) ask(put);
  ask({ watch: true });
  ask({ query: { type: 'status' } });
  admission.countBusy();
  for (let i = 0; i < 2; i++) admission.countWait();
  for (const door of ['pipe', 'http', 'http'] as const) admission.countMalformed(door);
  expect(admission.stats).toEqual({
    admitted: { ordinary: 1, charged: 1, free: 1 },
    refused: { rate: 4, calls: 1, waits: 2 },
    malformed: { pipe: 1, grpc: 0, http: 2 },
  });
  expect(logged).toEqual([{ limitPerSecond: 2, refused: 1 }]);
  clock.advance(10_000);
  for (let i = 0; i < 5; i++) ask(put);
  expect(logged).toEqual([
    { limitPerSecond: 2, refused: 1 },
    { limitPerSecond: 2, refused: 4 },
  ]);
});

test('what is asked of the gateway itself passes', () => {
  const backend = new AdmittedBackend(
    new CountingBackend(),
    new Admission({ clock: new ManualClock(), logger: silentLogger }, { requestsPerSecondMax: 1 }),
  );
  expect([backend.nodeId, backend.rangeTimeMs(), backend.view().clusterId]).toEqual([7, 5, 'c']);
});
