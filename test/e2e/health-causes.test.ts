/**
 * Faults of nodes, each caused in a real process: every view of every node shows the same conditions, and `/ready` says
 * 503 only where clients are better served elsewhere. A full disk is in disk-full.test.ts; clusters without a majority
 * are in health.test.ts. What no process can be brought into in a test's time is simulated in unit tests: a clock of
 * another rate (clock-comparison.test.ts), a range without leader and a follower behind (master-admin.test.ts).
 */
import { fileURLToPath } from 'node:url';
import { AdminClient } from 'remora/admin';
import { afterEach, expect, test } from 'vitest';
import { jsonHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { eventuallyShown, readyOf, viewsOf } from './health-views.ts';
import type { NodeProcess } from './node-process.ts';
import { TestCertificates } from './tls-certificates.ts';

const FAULTY = ['--import', fileURLToPath(new URL('faulty-process.mjs', import.meta.url))];
const DAY_MS = 86_400_000;

let cluster: Cluster | undefined;
let certificates: TestCertificates | undefined;
afterEach(async () => {
  await cluster?.stop();
  certificates?.close();
  cluster = undefined;
  certificates = undefined;
});

/** A node that does not lead the masters: the clock of their leader is what others compare theirs with. */
async function follower({ nodes }: Cluster): Promise<number> {
  const { view } = (await jsonHere([nodes[0]?.client ?? ''], ['status'])) as { view: { masterLeader: number } };
  return view.masterLeader === 3 ? 2 : 3;
}

test('a wrong clock, a disk that hangs and a dead node are shown by all nodes, one after the other', async () => {
  cluster = await Cluster.start({ nodeArguments: FAULTY });
  const { nodes } = cluster;
  const n = await follower(cluster);
  const faulty = cluster.node(n);
  const others = nodes.filter((node) => node !== faulty);
  const shown = async (at: readonly NodeProcess[], ...expected: readonly object[]): Promise<void> => {
    for (const node of at)
      await eventuallyShown(
        node,
        expected.map((each) => expect.objectContaining(each)),
      );
  };
  const own = { nodeId: n, scope: 'node', severity: 'warning' };

  await faulty.ask({ clockAheadMs: 90_000 });
  const more = expect.stringMatching(new RegExp(`^the clock of node n${n} shows (89|90)\\.\\d s more than`));
  await shown(nodes, { ...own, name: 'clockAhead', text: more, docs: 'docs/reference/conditions.md#clockahead' });
  expect((await readyOf(faulty)).status).toBe(200);
  await faulty.ask({ clockAheadMs: 0 });
  await shown(nodes);

  await faulty.ask({ diskHangs: true });
  await shown(nodes, { ...own, name: 'logHangs', advice: expect.stringContaining('Check the disk') });
  expect((await readyOf(faulty)).status).toBe(200);
  await faulty.ask({ diskHangs: false });
  await shown(nodes);

  await faulty.end('SIGKILL');
  const replica = { ...own, name: 'silentReplica', scope: 'cluster' };
  await shown(others, { ...own, name: 'silentNode', advice: expect.stringContaining('exit code 74') }, replica);
  for (const node of others) expect((await readyOf(node)).status).toBe(200);
  faulty.start();
  await shown(nodes);
});

test('a restore that has begun is shown until it has ended', async () => {
  cluster = await Cluster.start({ nodes: 1 });
  const node = cluster.node(1);
  const admin = new AdminClient({ endpoints: [node.client], timeoutMs: 20_000, connectTimeoutMs: 5_000 });
  try {
    await admin.beginRestore(1_000);
    const restoring = { name: 'restoreUnderWay', severity: 'warning', scope: 'cluster' };
    await eventuallyShown(node, [expect.objectContaining(restoring)]);
    await admin.endRestore();
    await eventuallyShown(node, []);
  } finally {
    admin.close();
  }
});

test('a certificate that is about to expire is shown, and then one that has expired', async () => {
  certificates = await TestCertificates.make();
  cluster = await Cluster.start({ nodes: 1, nodeArguments: FAULTY, flags: certificates.clientFlags('n1') });
  const node = cluster.node(1);
  const tls = ['--cacert', certificates.path('ca.crt')];
  const [days = 0] = (await node.metrics('remora_tls_certificate_expiry_days')).values();
  expect(days).toBeGreaterThan(14);
  await eventuallyShown(node, [], tls);

  const shown = async (daysLeft: number, name: string, severity: string, text: RegExp): Promise<void> => {
    await node.ask({ clockAheadMs: (days - daysLeft) * DAY_MS });
    const expected = { name, severity, nodeId: 1, text: expect.stringMatching(text) };
    await eventuallyShown(node, [expect.objectContaining(expected)], tls);
    // No other node would serve better.
    expect((await readyOf(node)).status).toBe(200);
  };
  await shown(5.5, 'certificateExpires', 'warning', /for clients expires in 5 days: replace the files of --tls-cert$/);
  await shown(-0.5, 'certificateExpired', 'critical', /for clients has expired: replace the files of --tls-cert$/);
});

test('an address that resolves to nothing is shown by the nodes that dial it', async () => {
  cluster = await Cluster.start({ started: 0, awaitReady: false });
  const [n1, n2] = cluster.nodes;
  // RFC 6761: names below `.invalid` never resolve.
  const members = `n1=${n1?.peer},n2=${n2?.peer},n3=n3.remora.invalid:7481`;
  for (const node of cluster.nodes.slice(0, 2)) node.start({ 'initial-cluster': members });
  for (const [i, node] of cluster.nodes.slice(0, 2).entries()) {
    const text = expect.stringMatching(/cannot resolve n3\.remora\.invalid \(E\w+\), the address of n3$/);
    const unresolved = { name: 'addressUnresolved', severity: 'warning', nodeId: i + 1, text };
    await eventually(`${node.name} shows the name in every view`, async () => {
      const { ready, status, check, metrics } = await viewsOf(node);
      for (const view of [ready, status, check]) expect(view).toContainEqual(expect.objectContaining(unresolved));
      expect(metrics).toContain('addressUnresolved');
      return true;
    });
    // The name is shown before the masters have a leader.
    await eventually(`${node.name} is ready all the same`, async () => (await readyOf(node)).status === 200);
  }
});
