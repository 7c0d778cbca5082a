import { afterAll, beforeAll, expect, test } from 'vitest';
import { EtcdProcess, missingEtcd } from '../etcd-diff/servers/etcd-process.ts';
import { describeWith } from '../support/needs.ts';
import { Cluster } from './harness.ts';

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const FOO = b64('foo');

interface Call {
  readonly path: string;
  readonly body: string | object;
  /** Where Remora differs from etcd 3.4.23, as etcd 3.6 does or on purpose. */
  readonly differs?: { readonly status?: number; readonly body?: object; readonly why: string };
}

const WORDS = 'the text of a fault in the JSON names the field; etcd has the words of its library';
const v2 = { status: 400, why: 'grpc-gateway v2, which etcd 3.6 uses, answers FAILED_PRECONDITION with 400' };

/** In this order: each changes what the later ones see. */
const CALLS: readonly Call[] = [
  { path: 'kv/put', body: { key: FOO, value: b64('bar') } },
  { path: 'kv/put', body: { key: FOO, value: b64('baz'), prev_kv: true } },
  { path: 'kv/put', body: { key: FOO, value: b64('qux'), prevKv: true, unknown: { a: [1] } } },
  { path: 'kv/put', body: { key: b64('foo/1'), value: b64('\u00e9\u0000\u00ff') } },
  { path: 'kv/range', body: { key: FOO } },
  { path: 'kv/range', body: { key: FOO, range_end: b64('fop'), sortOrder: 'DESCEND', sort_target: 'MOD' } },
  { path: 'kv/range', body: { key: FOO, rangeEnd: b64('fop'), sort_order: 2, sort_target: 4, limit: '1' } },
  { path: 'kv/range', body: { key: FOO, range_end: b64('fop'), count_only: true } },
  { path: 'kv/range', body: { key: FOO, range_end: b64('fop'), keysOnly: true, serializable: true } },
  { path: 'kv/range', body: { key: b64('none') } },
  { path: 'kv/range', body: { key: FOO, limit: null } },
  { path: 'kv/range', body: '{"key":"bm9uZQ==","key":"Zm9v"}' },
  { path: 'kv/range', body: { key: FOO, revision: 2 } },
  {
    path: 'kv/txn',
    body: {
      compare: [
        { target: 'VALUE', key: FOO, value: b64('qux') },
        { target: 0, result: 'GREATER', key: FOO, version: '1' },
      ],
      success: [
        { request_put: { key: FOO, value: b64('txn') } },
        { requestRange: { key: FOO } },
        { request_delete_range: { key: b64('foo/1'), prev_kv: true } },
        { request_txn: { success: [{ request_range: { key: b64('none') } }] } },
      ],
    },
  },
  { path: 'kv/txn', body: { compare: [{ key: FOO, version: 99 }], failure: [{ request_range: { key: FOO } }] } },
  { path: 'kv/txn', body: {} },
  { path: 'kv/deleterange', body: { key: FOO, prev_kv: true } },
  { path: 'kv/deleterange', body: { key: FOO } },
  { path: 'kv/compaction', body: { revision: '3' } },
  { path: 'kv/compaction', body: { revision: '3' } },
  { path: 'kv/range', body: { key: FOO, revision: 2 } },
  { path: 'kv/range', body: {} },
  { path: 'kv/range', body: '' },
  { path: 'kv/range', body: 'null' },
  { path: 'kv/range', body: { key: FOO, revision: 99999 } },
  { path: 'kv/range', body: 'nojson', differs: { why: WORDS } },
  { path: 'kv/range', body: '[]', differs: { why: WORDS } },
  { path: 'kv/range', body: { key: '***' }, differs: { why: WORDS } },
  { path: 'kv/range', body: { key: 5 }, differs: { why: WORDS } },
  { path: 'kv/range', body: { key: FOO, limit: 3.5 }, differs: { why: WORDS } },
  { path: 'kv/range', body: { key: FOO, limit: 'x' }, differs: { why: WORDS } },
  { path: 'kv/range', body: { key: FOO, keys_only: 'true' }, differs: { why: WORDS } },
  { path: 'kv/range', body: { key: FOO, sort_order: 'UP' }, differs: { why: WORDS } },

  { path: 'lease/grant', body: '{"TTL":100,"ID":7587862094123456789}' },
  { path: 'lease/grant', body: '{"TTL":"100","ID":"7587862094123456789"}', differs: v2 },
  { path: 'kv/put', body: { key: FOO, lease: '7587862094123456789' } },
  { path: 'kv/range', body: { key: FOO } },
  { path: 'lease/leases', body: {} },
  { path: 'kv/lease/leases', body: {} },
  { path: 'lease/keepalive', body: '{"ID":7587862094123456789}' },
  { path: 'lease/keepalive', body: '{"ID":1}{"ID":7587862094123456789}' },
  { path: 'kv/lease/revoke', body: '{"ID":7587862094123456789}' },
  { path: 'lease/revoke', body: '{"ID":7587862094123456789}' },
  { path: 'lease/timetolive', body: '{"ID":7587862094123456789}' },

  { path: 'lease/grant', body: { ID: 31, TTL: 3000 } },
  { path: 'lease/grant', body: { ID: 32, TTL: 1000 } },
  { path: 'lease/grant', body: { ID: 33, TTL: 2000 } },
  { path: 'lease/leases', body: {} },

  { path: 'cluster/member/remove', body: { ID: 5 } },
  { path: 'maintenance/defragment', body: {} },
  { path: 'maintenance/alarm', body: { action: 'GET' } },
  { path: 'maintenance/transfer-leadership', body: { targetID: '5' }, differs: v2 },
  { path: 'auth/user/list', body: {} },
  { path: 'auth/role/list', body: {} },
  { path: 'auth/authenticate', body: { name: 'x' }, differs: v2 },
  { path: 'election/leader', body: { name: b64('nobody') } },
  { path: 'election/proclaim', body: {} },
  { path: 'lock/unlock', body: { key: b64('none') } },
];

describeWith(missingEtcd(), "etcd's JSON gateway answers as that of etcd 3.4.23", () => {
  let etcd: EtcdProcess;
  let cluster: Cluster;

  beforeAll(async () => {
    [etcd, cluster] = await Promise.all([
      EtcdProcess.start(),
      Cluster.start({ nodes: 1, flags: { 'pre-split': 'foo,foo/,g,m' } }),
    ]);
  });
  afterAll(() => Promise.all([etcd?.stop(), cluster?.stop()]));

  test.each(CALLS)('$path $body', async ({ path, body, differs }) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const [theirs, ours] = await Promise.all([etcd.client, cluster.node(1).http].map((at) => answerOf(at, path, text)));
    if (differs === undefined) return expect(ours).toEqual(theirs);
    expect(ours).not.toEqual(theirs);
    expect(ours?.status).toBe(differs.status ?? theirs?.status);
    expect(codesOf(ours)).toEqual(codesOf(theirs));
  });

  test('a watch of the past and of what comes prints the same lines', async () => {
    const watched = await Promise.all(
      [etcd.client, cluster.node(1).http].map(async (at) => {
        await answerOf(at, 'kv/put', JSON.stringify({ key: b64('watched'), value: b64('1') }));
        const create_request = { key: b64('watched'), start_revision: '4', prev_kv: true };
        const over = new AbortController();
        const url = `http://${at}/v3/watch`;
        const body = JSON.stringify({ create_request });
        const response = await fetch(url, { method: 'POST', body, signal: over.signal });
        await answerOf(at, 'kv/deleterange', JSON.stringify({ key: b64('watched') }));
        const lines: unknown[] = [];
        let rest = '';
        for await (const chunk of response.body ?? []) {
          const texts = (rest + Buffer.from(chunk).toString()).split('\n');
          rest = texts.pop() ?? '';
          lines.push(...texts.map((line) => plain(JSON.parse(line))));
          if (JSON.stringify(lines).includes('DELETE')) break;
        }
        over.abort();
        return eventsOf(lines);
      }),
    );
    expect(watched[1]).toEqual(watched[0]);
    expect(watched[1]).toHaveLength(2);
  });

  test('the port for clients answers HTTP as the HTTP port does, beside gRPC', async () => {
    const { client, http } = cluster.node(1);
    const get = async (at: string, path: string): Promise<Response> => fetch(`http://${at}${path}`);
    for (const at of [client, http]) {
      expect(await (await get(at, '/version')).json()).toEqual({ etcdserver: '3.6.0', etcdcluster: '3.6.0' });
      expect(await (await get(at, '/health')).json()).toMatchObject({ health: 'true' });
      expect(await (await get(at, '/metrics')).text()).toMatch(/^process_resident_memory_bytes \d+$/m);
    }
    const range = JSON.stringify({ key: FOO });
    const put = await answerOf(client, 'kv/put', JSON.stringify({ key: FOO, value: b64('by the client port') }));
    expect(put.status).toBe(200);
    expect(await answerOf(client, 'kv/range', range)).toEqual(await answerOf(http, 'kv/range', range));
    const foreign = await fetch(`http://${client}/v3/kv/put`, {
      method: 'POST',
      headers: { origin: 'http://evil.example' },
      body: range,
    });
    expect(foreign.status).toBe(403);
  });
});

interface Answered {
  readonly status: number;
  readonly lines: readonly unknown[];
}

async function answerOf(at: string, path: string, body: string): Promise<Answered> {
  const response = await fetch(`http://${at}/v3/${path}`, { method: 'POST', body });
  const text = await response.text();
  return {
    status: response.status,
    lines: text
      .trim()
      .split('\n')
      .map((line) => plain(JSON.parse(line))),
  };
}

/** What is of one server is left out: the cluster, its revisions, and times that pass. */
function plain(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (name, value) => {
      if (name === 'header' || name.endsWith('_revision')) return undefined;
      return name === 'TTL' || name === 'granted_TTL' ? typeof value : value;
    }),
  );
}

function codesOf(answer: Answered | undefined): readonly unknown[] {
  return (answer?.lines ?? []).map((line) => (line as { readonly code?: number }).code);
}

/** Events may come in any number of responses. */
function eventsOf(lines: readonly unknown[]): readonly unknown[] {
  return lines.flatMap((line) => (line as { readonly result: { readonly events?: object[] } }).result.events ?? []);
}
