/** The shell blocks of the documentation, run against real clusters. Programs are compiled by `sdk-package.test.ts`. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { shelfPages } from '../../../packages/cli/test/docs/pages.ts';
import { EtcdProcess, missingEtcd } from '../../etcd-diff/servers/etcd-process.ts';
import { describeWith } from '../../support/needs.ts';
import { missingEtcdctl } from '../etcd-twins/etcdctl.ts';
import { Cluster } from '../harness.ts';
import { FOUNDING_PAGES } from './founding-pages.ts';
import { PageRunner, runnableBlocks } from './page-run.ts';

describe('pages for any cluster', () => {
  let cluster: Cluster;
  let runner: PageRunner;

  beforeAll(async () => {
    cluster = await Cluster.start();
    runner = new PageRunner(cluster);
  });
  afterAll(async () => {
    runner?.remove();
    await cluster?.stop();
  });

  const pages = shelfPages().filter(
    (page) => ![...FOUNDING_PAGES, USERS, MOVE].includes(page) && runnableBlocks(page).length > 0,
  );

  test.each(pages)('%s: its commands work as it says', async (page) => {
    await runner.run(page);
  });
});

/** Its etcd is at 10.0.0.8. */
const MOVE = 'docs/how-to/cluster/move-from-etcd.md';

describeWith(missingEtcd() ?? missingEtcdctl(), 'the page on moving from etcd', () => {
  test('its commands work as it says', async () => {
    const [cluster, etcd] = await Promise.all([Cluster.start({ nodes: 1 }), EtcdProcess.start()]);
    const runner = new PageRunner(cluster, { '10.0.0.8:2379': etcd.client });
    try {
      await runner.run(MOVE);
    } finally {
      runner.remove();
      await Promise.all([cluster.stop(), etcd.stop()]);
    }
  });
});

/** It switches authentication on. */
const USERS = 'docs/how-to/cluster/users-and-permissions.md';

test('users and roles are managed as the page says', async () => {
  const cluster = await Cluster.start();
  const runner = new PageRunner(cluster);
  try {
    await runner.run(USERS);
  } finally {
    runner.remove();
    await cluster.stop();
  }
});
