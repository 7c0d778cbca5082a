/** What callers reach that nobody knows, at the port for nodes: every method, by every kind of caller. */
import { BUILD_VERSIONS, type Hello, nodeClock, openFramePort, rangeText, ServiceError } from '@remora/base';
import { afterEach, describe, expect, test } from 'vitest';
import * as protocol from '../../index.ts';
import type { Caller } from '../access.ts';
import { LinkCaller } from '../caller.ts';
import { FRAME_BYTES_MAX } from '../link.ts';
import { createRpcRegistry } from '../registry.ts';
import type { Method } from '../rpc.ts';
import { dialLink } from './frame-link.ts';
import { createRpcService, incarnationDigest } from './socket-rpc.ts';

const SELF = { clusterId: 'the-cluster', nodeId: 2, incarnation: 'the-incarnation' };
const KNOWN = { cluster: SELF.clusterId, node: '3', incarnation: 'i3' };

const EXPORTED: readonly unknown[] = Object.values(protocol);
const METHODS = EXPORTED.filter(isMethod);

function isMethod(value: unknown): value is Method<unknown, unknown> {
  return typeof value === 'object' && value !== null && 'decodeRequest' in value;
}

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

/** A node that serves every method there is and knows node 3; each method is answered with its caller. */
async function everything() {
  const registry = createRpcRegistry();
  for (const method of METHODS) {
    const open = {
      ...method,
      decodeRequest: () => null,
      encodeReply: (caller: unknown) => caller,
      changes: () => false,
    };
    registry.handle(open, (_request, { caller }, done) => done(undefined, caller));
  }
  const known = { ids: new Map([[3, 'i3']]) };
  const identify = ({ nodeId, incarnation }: { nodeId: number; incarnation: string }): Caller | ServiceError => {
    const expected = known.ids.get(nodeId);
    if (expected === undefined) return { kind: 'joiner', claims: nodeId };
    return expected === incarnation ? { kind: 'node', nodeId } : new ServiceError('NODE_CONFLICT', 'another one');
  };
  const clock = nodeClock();
  const service = createRpcService({ identity: () => SELF, registry, clock, identify });
  const port = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: [service] });
  cleanups.push(() => {
    service.close();
    port.close();
  });
  return { address: `127.0.0.1:${port.port}`, known };
}

/** What answers such a hello, and what a call is answered with. */
function callAs(address: string, who: Hello) {
  const heard: { hello?: Hello } = {};
  const hello = { service: 'rpc', versions: rangeText(BUILD_VERSIONS), ...who };
  const check = (answer: Hello): undefined => {
    heard.hello = answer;
  };
  const clock = nodeClock();
  const link = dialLink({ address, hello, check }, { clock, frameBytesMax: FRAME_BYTES_MAX });
  const caller = new LinkCaller({ link, clock });
  cleanups.push(() => caller.close(new ServiceError('UNAVAILABLE', 'the test is over')));
  const call = (method: Method<unknown, unknown>): Promise<unknown> =>
    new Promise((resolve) => {
      const plain = { ...method, encodeRequest: () => null, decodeReply: (raw: unknown) => raw };
      caller.call(plain, null, { timeoutMs: 10_000 }, (error, reply) => resolve(error ?? reply));
    });
  return { heard, call };
}

const STRANGERS: readonly { name: string; who: Hello; code: string }[] = [
  { name: 'names nothing', who: {}, code: 'UNIMPLEMENTED' },
  { name: 'names the cluster, and node 0', who: { ...KNOWN, node: '0' }, code: 'UNIMPLEMENTED' },
  { name: 'names the cluster, and no node', who: { cluster: SELF.clusterId }, code: 'UNIMPLEMENTED' },
  { name: 'names the cluster, and a node below 0', who: { ...KNOWN, node: '-1' }, code: 'UNIMPLEMENTED' },
  {
    name: 'names a known node and its incarnation, but no cluster',
    who: { ...KNOWN, cluster: '' },
    code: 'UNIMPLEMENTED',
  },
  { name: 'names a node that is not known', who: { ...KNOWN, node: '4' }, code: 'UNAVAILABLE' },
];

test('every method says who may call it', () => {
  const table = Object.fromEntries(METHODS.map(({ name, callers }) => [name, callers]));
  expect(METHODS.length).toBeGreaterThan(40);
  expect(Object.keys(table).filter((name) => table[name] === 'joiners')).toEqual(['master.join', 'master.view']);
  const forClients = Object.keys(table).filter((name) => table[name] === 'clients');
  expect(forClients.sort()).toEqual([
    'cluster.view',
    'conditions',
    'gateways',
    'kv.command',
    'kv.query',
    'lock.watch',
    'logIn',
    'watch',
  ]);
});

describe.each(STRANGERS)('a caller that $name', ({ who, code }) => {
  test('may join and view, and nothing else', async () => {
    const { address } = await everything();
    const { call } = callAs(address, who);
    for (const method of METHODS) {
      const answer = await call(method);
      if (method.callers === 'joiners') expect(answer, method.name).toMatchObject({ kind: 'joiner' });
      else expect(answer, method.name).toMatchObject({ code });
    }
  });

  test('hears no incarnation, and no cluster that it did not name', async () => {
    const { address } = await everything();
    const { heard, call } = callAs(address, who);
    await call(protocol.masterView as Method<unknown, unknown>);
    const answer = JSON.stringify(heard.hello);
    expect(answer).not.toContain(SELF.incarnation);
    if (who.cluster !== SELF.clusterId) expect(answer).not.toContain(SELF.clusterId);
  });
});

test('a caller that names the cluster hears a digest of the incarnation in its answer', async () => {
  const { address } = await everything();
  const { heard, call } = callAs(address, KNOWN);
  await call(protocol.masterView as Method<unknown, unknown>);
  expect(heard.hello).toMatchObject({
    cluster: SELF.clusterId,
    node: '2',
    digest: incarnationDigest(SELF.incarnation),
  });
});

test('a node that is known calls all methods for nodes, none for clients, and is never this process', async () => {
  const { address } = await everything();
  const { call } = callAs(address, KNOWN);
  for (const method of METHODS) {
    const expected = method.callers === 'clients' ? { code: 'UNIMPLEMENTED' } : { kind: 'node', nodeId: 3 };
    expect(await call(method), method.name).toMatchObject(expected);
  }
});

test('a node that becomes known while its link stands calls what nodes call from then on', async () => {
  const { address, known } = await everything();
  const { call } = callAs(address, { ...KNOWN, node: '4', incarnation: 'i4' });
  const info = protocol.rangeInfo as Method<unknown, unknown>;
  const view = protocol.masterView as Method<unknown, unknown>;
  expect(await call(view)).toMatchObject({ kind: 'joiner', claims: 4 });
  expect(await call(info)).toMatchObject({ code: 'UNAVAILABLE', details: { join: true } });
  known.ids.set(4, 'i4');
  expect(await call(info)).toMatchObject({ kind: 'node', nodeId: 4 });
  expect(await call(view)).toMatchObject({ kind: 'node', nodeId: 4 });
});

test.each([
  { name: 'was removed', change: (ids: Map<number, string>) => ids.delete(3) },
  { name: 'is known by another incarnation', change: (ids: Map<number, string>) => ids.set(3, 'x') },
])('a node that $name calls nothing more over the link that it has (A4)', async ({ change }) => {
  const { address, known } = await everything();
  const { call } = callAs(address, KNOWN);
  const info = protocol.rangeInfo as Method<unknown, unknown>;
  expect(await call(info)).toMatchObject({ kind: 'node', nodeId: 3 });
  change(known.ids);
  expect(await call(info)).toBeInstanceOf(ServiceError);
  expect(await call(info)).toBeInstanceOf(ServiceError);
});

test.each([
  { name: 'another cluster', who: { ...KNOWN, cluster: 'other' }, code: 'WRONG_CLUSTER' },
  { name: 'a known node with a false incarnation', who: { ...KNOWN, incarnation: 'false' }, code: 'NODE_CONFLICT' },
])('a caller that names $name is refused, and told nothing that only members know', async ({ who, code }) => {
  const { address } = await everything();
  const { call } = callAs(address, who);
  const answer = await call(protocol.rangeInfo as Method<unknown, unknown>);
  expect(answer).toMatchObject({ code });
  expect(JSON.stringify([answer, String(answer)])).not.toMatch(/the-cluster|the-incarnation|i3/);
});
