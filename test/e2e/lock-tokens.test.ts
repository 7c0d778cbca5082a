/** The token of a lock's owner is a secret: no door shows it to anybody but the caller that got the grant. */

import { credentials } from '@grpc/grpc-js';
import { ownerId } from '@remora/lock';
import { RangeRequest } from '@remora/protocol/etcd';
import { KVClient, RemoraLockClient } from '@remora/protocol/grpc-clients';
import {
  AcquireRequest,
  CheckRequest,
  ListRequest,
  ListSessionsRequest,
  ReleaseRequest,
  ShowRequest,
  ShowSessionRequest,
  WatchRequest,
} from '@remora/protocol/remora';
import { connect, type RemoraClient } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Run } from './command.ts';
import { runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { askLock } from './http-locks.ts';

/** Of a holder, of a waiter, and of a holder over HTTP. */
const SECRETS = ['secret-of-the-holder', 'secret-of-the-waiter', 'secret-over-http'] as const;
const [HOLDER, WAITER, HTTP] = SECRETS;

let cluster: Cluster;
let client: RemoraClient;
let locks: RemoraLockClient;
let kv: KVClient;
let session: string;
let incarnation: number;
let gaveUp: Promise<unknown>;
const over = new AbortController();

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1, flags: { 'log-level': 'debug' } });
  client = await connect({ endpoints: cluster.endpoints });
  await client.lock('held').acquire({ token: HOLDER, data: 'data' });
  gaveUp = client.lock('held').acquire({ token: WAITER, signal: over.signal }).catch(String);
  const shown = await eventually('somebody waits', async () => {
    const state = await client.locks.show('held');
    return state?.waiters.length === 1 && state;
  });
  const held = shown.holders[0]?.owner.session;
  session = held?.lease.toString(16) ?? '';
  incarnation = held?.incarnation ?? 0;
  locks = new RemoraLockClient(cluster.node(1).client, credentials.createInsecure());
  kv = new KVClient(cluster.node(1).client, credentials.createInsecure());
});
afterAll(async () => {
  over.abort();
  await gaveUp;
  locks?.close();
  kv?.close();
  await client?.close();
  await cluster?.stop();
});

/** In every form in which bytes are shown. */
function expectNoSecret(where: string, shown: string): void {
  expect([where, shown]).not.toEqual([where, '']);
  for (const secret of SECRETS) {
    const bytes = Buffer.from(secret);
    // The ends of base64 depend on what stands around the bytes.
    const inner = [0, 1, 2].map((skip) => bytes.subarray(skip, skip + 15).toString('base64'));
    for (const form of [secret, bytes.toString('hex'), JSON.stringify([...bytes]).slice(1, -1), ...inner]) {
      expect([where, secret, shown.includes(form)]).toEqual([where, secret, false]);
    }
  }
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, each: unknown) => (typeof each === 'bigint' ? String(each) : each));

test('the caller that got the grant learns its token', async () => {
  const { status, body } = await askLock(cluster.node(1), 'http', 'acquire', { token: HTTP });
  expect([status, body.token]).toEqual([200, HTTP]);
});

test.each([
  { words: ['lock', 'show', 'held'] },
  { words: ['lock', 'list'] },
  { words: ['lock', 'check', 'held', '1'] },
  { words: ['lock', 'run', '--wait', '0', 'held', '--', 'true'] },
  { words: ['election', 'observe', 'held', '--once'] },
  { words: ['session', 'list'] },
  { words: ['session', 'show', 'SESSION'] },
  { words: ['admin', 'ranges', 'list'] },
  { words: ['status'] },
])('the command line: $words', async ({ words }) => {
  const args = words.map((word) => (word === 'SESSION' ? session : word));
  const json = words.includes('--') ? [] : [['--json']];
  for (const more of [[], ...json]) {
    const { out, err } = await runHere(cluster.endpoints, [...args, ...more]);
    expectNoSecret(args.join(' '), out + err);
  }
});

test.each([{ flags: [] }, { flags: ['--json'] }])('the command line: lock watch $flags', async ({ flags }) => {
  const run = new Run(cluster.endpoints, ['lock', 'watch', '--prefix', '', ...flags], {});
  await eventually('it shows the lock', () => run.out.includes('held'));
  run.child.kill('SIGTERM');
  await run.ended;
  expectNoSecret('lock watch', run.out + run.err);
});

test.each([
  '/v1/locks/default',
  '/v1/locks/default/held',
  '/v1/locks/default/http',
  '/v1/sessions',
  '/v1/sessions/SESSION',
  '/ready',
  '/metrics',
])('HTTP: GET %s', async (path) => {
  const response = await fetch(`http://${cluster.node(1).http}${path.replace('SESSION', `${session}.${incarnation}`)}`);
  expectNoSecret(path, await response.text());
});

test('HTTP: refusals, and events', async () => {
  const refused = await askLock(cluster.node(1), 'held', 'acquire', {});
  expect(refused.status).toBe(423);
  const released = await askLock(cluster.node(1), 'held', 'release', { token: 'a token of somebody' });
  expectNoSecret('refusals', text([refused, released]));
  const events = await fetch(`http://${cluster.node(1).http}/v1/events/default?prefix=`);
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
  let told = '';
  while (!told.includes('"held"') || !told.includes('"http"')) told += (await reader?.read())?.value ?? '';
  await reader?.cancel();
  expectNoSecret('events', told);
});

test('gRPC: lists, states, sessions, refusals and watches', async () => {
  const lock = { namespace: '', name: Buffer.from('held') };
  const call = (ask: (done: (error: unknown, reply?: unknown) => void) => unknown): Promise<unknown> =>
    new Promise((resolve) => {
      ask((error, reply) => resolve(reply ?? [String(error), (error as { metadata?: object }).metadata]));
    });
  const id = BigInt(`0x${session}`);
  const owner = { session: { id, incarnation: BigInt(incarnation) }, token: 'a token of somebody' };
  const answers = {
    show: await call((done) => locks.show(ShowRequest.fromPartial({ lock }), done)),
    list: await call((done) => locks.list(ListRequest.fromPartial({ limit: 10 }), done)),
    check: await call((done) => locks.check(CheckRequest.fromPartial({ checks: [{ lock, version: 1n }] }), done)),
    listSessions: await call((done) => locks.listSessions(ListSessionsRequest.fromPartial({ limit: 10 }), done)),
    showSession: await call((done) => locks.showSession(ShowSessionRequest.fromPartial({ id }), done)),
    busy: await call((done) => locks.acquire(AcquireRequest.fromPartial({ lock, owner, attempt: 1 }), done)),
    wrongOwner: await call((done) => locks.release(ReleaseRequest.fromPartial({ lock, owner, attempt: 1 }), done)),
  };
  for (const [name, answer] of Object.entries(answers)) expectNoSecret(name, text(answer));
  // They show its owner by its id.
  for (const name of ['show', 'list', 'showSession', 'busy'] as const)
    expect(text(answers[name])).toContain(ownerId(HOLDER));
  const watch = locks.watch(WatchRequest.fromPartial({ target: { $case: 'prefix', value: Buffer.alloc(0) } }));
  const told: unknown[] = [];
  watch.on('data', (message: unknown) => told.push(message));
  watch.on('error', () => {});
  await eventually('the watch shows the lock', () => text(told).includes(ownerId(HOLDER)));
  watch.cancel();
  expectNoSecret('watch', text(told));
});

test('keys, the log of the node, and other clients of the SDK', async () => {
  const all = RangeRequest.fromPartial({ key: Buffer.of(0), rangeEnd: Buffer.of(0) });
  const range = await new Promise<unknown>((resolve) => {
    kv.range(all, (error: unknown, reply: unknown) => resolve(reply ?? error));
  });
  expectNoSecret('keys', text(range));
  await using other = await connect({ endpoints: cluster.endpoints });
  const refused = await other
    .lock('held')
    .acquire({ wait: 0 })
    .catch((error: unknown) => error);
  const seen = [
    await other.locks.show('held'),
    await other.locks.list({ prefix: '' }).toArray(),
    refused,
    String(refused),
  ];
  expectNoSecret('SDK', text(seen));
  expectNoSecret('log', cluster.node(1).log());
});
