import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { EtcdApi } from './etcd-twins/etcd-api.ts';
import { missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { COMMAND_BORDERS, COMMAND_CASES, EtcdctlSession } from './etcd-twins/etcdctl-cases.ts';
import { KV_BORDERS, KV_READS, type KvCase, writeFixture } from './etcd-twins/kv-cases.ts';
import { ranked, startTwins, type Twins } from './etcd-twins/twins.ts';
import { TXN_CASES } from './etcd-twins/txn-cases.ts';

const RANGES = 45;
/** Where nothing is: so that there are that many. */
const FURTHER = Array.from(
  { length: RANGES - 1 - KV_BORDERS.length - COMMAND_BORDERS.length },
  (_, i) => `z/${String(i).padStart(2, '0')}`,
);

let twins: Twins;
beforeAll(async () => {
  twins = await startTwins([...KV_BORDERS, ...COMMAND_BORDERS, ...FURTHER]);
});
afterAll(() => twins?.stop());

describeWith(missingEtcdctl(), 'etcdctl prints the same with one range and with many', () => {
  test.each(COMMAND_CASES)('$name', async ({ run }) => {
    const sessions = [twins.one, twins.many].map((cluster) => new EtcdctlSession(cluster.node(1).client));
    await Promise.all(sessions.map(run));
    const [one, many] = sessions.map(({ told }) => ranked(told));
    expect(one).not.toEqual([]);
    expect(many).toEqual(one);
  });
});

describe("etcd's KV API answers alike with one range and with many", () => {
  let apis: readonly { readonly api: EtcdApi; readonly revisions: readonly number[] }[];

  beforeAll(async () => {
    apis = await Promise.all(
      [twins.one, twins.many].map(async (cluster) => {
        const api = new EtcdApi(cluster.node(1).client);
        return { api, revisions: await writeFixture(api) };
      }),
    );
  });
  afterAll(() => {
    for (const { api } of apis ?? []) api.close();
  });

  test('the second cluster has as many', async () => {
    const leads = await twins.many.node(1).metrics('remora_range_leader');
    expect([...leads.values()].filter((value) => value === 1)).toHaveLength(RANGES);
  });

  const asked = async ({ run }: KvCase) => {
    const [one, many] = await Promise.all(apis.map(({ api, revisions }) => run(api, revisions)));
    expect(ranked(many)).toEqual(ranked(one));
    return one ?? [];
  };
  test.each(TXN_CASES)('$name', async (each) => {
    await asked(each);
  });
  test.each(KV_READS)('$name', async (each) => {
    expect((await asked(each)).some((told) => !('error' in told))).toBe(true);
  });
});
