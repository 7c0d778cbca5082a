/** Real nodes over TLS: clients, nodes that are not who they say, new certificates, and the way from plain text. */
import { execFile } from 'node:child_process';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { connect, type RemoraClient } from 'remora';
import { AdminClient } from 'remora/admin';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { runHere } from './command-line.ts';
import { missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { eventually } from './eventually.ts';
import { Cluster, withCluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';
import { TestCertificates } from './tls-certificates.ts';

const run = promisify(execFile);
let certificates: TestCertificates;
const made: TestCertificates[] = [];

async function newCertificates(): Promise<TestCertificates> {
  const created = await TestCertificates.make();
  made.push(created);
  return created;
}

beforeAll(async () => {
  certificates = await newCertificates();
});
afterAll(() => {
  for (const each of made) each.close();
});

/** The lines of a node's log with this text in them. */
function logged(node: NodeProcess, wanted: string): readonly Readonly<Record<string, unknown>>[] {
  return node
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes(wanted))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function logsOf(node: NodeProcess | undefined): string {
  return node?.log() ?? '';
}

/** Puts and takes locks until it is stopped; every failure is kept. */
class Load {
  done = 0;
  readonly failures: string[] = [];
  readonly #client: RemoraClient;
  readonly #ended: Promise<unknown>;
  #isStopped = false;

  constructor(client: RemoraClient, name: string) {
    this.#client = client;
    this.#ended = Promise.all([
      this.#repeat((i) => client.kv.put(`${name}/${i % 100}`, `${i}`)),
      this.#repeat(() => client.lock(`${name}/lock`).run(async () => {})),
    ]);
  }

  async #repeat(work: (i: number) => Promise<unknown>): Promise<void> {
    for (let i = 0; !this.#isStopped; i++) {
      await work(i).then(
        () => this.done++,
        (error: unknown) => this.failures.push(String(error)),
      );
    }
  }

  /** Waits until it has done some more. */
  async goesOn(): Promise<void> {
    const until = this.done + 20;
    await eventually('the load goes on', () => this.done >= until, { timeoutMs: 60_000 });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
    await this.#client.close();
  }
}

describe('three nodes that require TLS and client certificates', () => {
  let cluster: Cluster;
  const endpoints = (): readonly string[] => cluster.endpoints.map((endpoint) => `https://${endpoint}`);

  beforeAll(async () => {
    cluster = await Cluster.start({ flagsOf: (name) => certificates.flags(name) });
  });
  afterAll(() => cluster.stop());

  test('serve the SDK, also from its renewal thread', async () => {
    const client = await connect({ endpoints: endpoints(), tls: certificates.tlsOf('root'), renewInWorker: true });
    await client.kv.put('a', 'b');
    await client.lock('orders/42').run(async ({ version }) => expect(version).toBeGreaterThan(0));
    await client.close();
  });

  test('serve the command line, its administration too', async () => {
    for (const args of [['kv', 'put', 'x', 'y'], ['admin', 'check'], ['admin', 'ranges'], ['status']]) {
      const keyFlag = args[1] === 'ranges' ? '--cert-key' : '--key';
      const tls = certificates.argumentsOf('root').map((arg) => (arg === '--key' ? keyFlag : arg));
      expect(await runHere(endpoints(), [...args, ...tls]), args.join(' ')).toMatchObject({ code: 0, err: '' });
    }
  });

  test.skipIf(missingEtcdctl() !== undefined)('serve etcdctl with --cacert, --cert and --key', async () => {
    const all = ['--endpoints', endpoints().join(','), ...certificates.argumentsOf('root')];
    const env = { ...process.env, ETCDCTL_API: '3' };
    expect((await run('etcdctl', [...all, 'put', 'from', 'etcdctl'], { env })).stdout).toBe('OK\n');
    expect((await run('etcdctl', [...all, 'get', 'from'], { env })).stdout).toBe('from\netcdctl\n');
    const { stdout } = await run('etcdctl', [...all, 'member', 'list'], { env });
    expect(stdout).toContain(`https://${cluster.node(1).client}`);
  });

  test('serve HTTP on both ports', async () => {
    const node = cluster.node(1);
    for (const [address, path] of [
      [node.client, '/v3/maintenance/status'],
      [node.http, '/health'],
    ] as const) {
      const [host, port] = address.split(':');
      const method = path.startsWith('/v3') ? 'POST' : 'GET';
      const answer = await new Promise<string>((resolve, reject) => {
        const sent = request({ host, port, path, method, ...certificates.tlsOf('root') }, (response) => {
          resolve(text(response));
        });
        sent.on('error', reject).end(method === 'POST' ? '{}' : undefined);
      });
      expect(answer, path).toMatch(/version|health/);
    }
  });

  test('tell clients without TLS, or without a certificate, what is missing', async () => {
    const plain = connect({ endpoints: cluster.endpoints, connectTimeout: '2s' });
    await expect(plain).rejects.toThrow('this port requires TLS');
    const anonymous = connect({
      endpoints: endpoints(),
      tls: { ca: certificates.text('ca.crt') },
      connectTimeout: '2s',
    });
    await expect(anonymous).rejects.toThrow('requires a client certificate');
    const command = ['admin', 'check', '--cacert', certificates.path('ca.crt')];
    const { code, err } = await runHere(endpoints(), command);
    expect(code).not.toBe(0);
    expect(err).toContain('requires a client certificate');
    expect(logged(cluster.node(1), 'requires a client certificate')[0]).toMatchObject({
      address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    });
  });

  describe('and a node that wants to join', () => {
    let joining: NodeProcess | undefined;
    afterEach(async () => {
      await joining?.end('SIGKILL');
    });

    test('with its own certificate does', async () => {
      await certificates.run('node', 'n4');
      joining = await cluster.addJoining(certificates.flags('n4'));
      joining.start();
      await joining.untilReady();
    });

    test('with the certificate of another node is refused', async () => {
      joining = await cluster.addJoining(certificates.flags('n1'));
      joining.start();
      await eventually('it says why', () => logsOf(joining).includes('the certificate is for spiffe://remora/node/n1'));
    });

    test('with the certificate of another authority is refused, and both logs say why', async () => {
      const others = await newCertificates();
      await others.run('node', 'n6');
      joining = await cluster.addJoining(others.flags('n6'));
      joining.start();
      await eventually('it says why', () => logsOf(joining).includes('an authority that is not trusted here'));
      const said = (): boolean =>
        cluster.nodes.slice(0, 3).some((node) => logged(node, 'a TLS handshake failed').length > 0);
      await eventually('they say why', said);
    });

    test('without TLS is refused, and hears why', async () => {
      joining = await cluster.addJoining({ ...certificates.flags('n1'), 'tls-peer-mode': 'plain' });
      joining.start();
      await eventually('it says why', () => logsOf(joining).includes('this port requires TLS'));
    });
  });
});

describe('certificates are exchanged under load, and no request fails', () => {
  test('by certificates of the same authorities, then by other authorities', async () => {
    const [own, next] = [await newCertificates(), await newCertificates()];
    await withCluster(
      { flagsOf: (name) => ({ ...own.peerFlags(name), ...own.clientFlags(name) }) },
      async (cluster) => {
        const endpoints = cluster.endpoints.map((endpoint) => `https://${endpoint}`);
        const both = own.text('ca.crt') + next.text('ca.crt');
        const load = new Load(await connect({ endpoints, tls: { ca: both } }), 'load');
        const reloaded = async (step: number): Promise<void> => {
          for (const node of cluster.nodes) node.signal('SIGHUP');
          for (const node of cluster.nodes) {
            await eventually(
              `${node.name} uses step ${step}`,
              () => logged(node, 'uses new certificates').length >= step,
            );
          }
          await load.goesOn();
        };
        // The client's certificates change in step 2, those of peers in steps 1 to 3; each step is a new set of files.
        const oldCa = own.text('peer-ca.crt');
        own.write('peer-ca.crt', oldCa + next.text('peer-ca.crt'));
        own.write('peer-ca.crl', own.text('peer-ca.crl') + next.text('peer-ca.crl'));
        await reloaded(1);
        for (const name of ['n1', 'n2', 'n3']) for (const pair of [name, `${name}-peer`]) own.replace(pair, next);
        await reloaded(3);
        own.write('peer-ca.crl', next.text('peer-ca.crl'));
        own.write('peer-ca.crt', next.text('peer-ca.crt'));
        await reloaded(4);
        await load.stop();
        expect(load.failures).toEqual([]);
        // All nodes serve a client that trusts only the new authority.
        for (const endpoint of endpoints) {
          const client = await connect({ endpoints: endpoint, discover: false, tls: { ca: next.text('ca.crt') } });
          await client.kv.get('load/1');
          await client.close();
        }
      },
    );
  });

  test('and a node whose certificate is revoked loses its connections within 10 seconds, the others go on', async () => {
    const own = await newCertificates();
    await withCluster({ flagsOf: (name) => own.peerFlags(name) }, async (cluster) => {
      const load = new Load(await connect({ endpoints: cluster.endpoints.slice(0, 2), discover: false }), 'load');
      await load.goesOn();
      const begun = performance.now();
      await own.run('revoke', own.path('n3-peer.crt'));
      const said = (n: number): boolean => logged(cluster.node(n), 'the certificate is revoked').length > 0;
      await eventually('both close its connections', () => said(1) && said(2), { timeoutMs: 30_000 });
      expect(performance.now() - begun).toBeLessThan(10_000 + SLOW_MACHINE_MS);
      await load.goesOn();
      await load.stop();
      expect(load.failures).toEqual([]);
      for (const n of [1, 2]) expect(logged(cluster.node(n), 'the certificate is revoked')[0]?.address).toMatch(/^127/);
    });
  });
});

test('an administrator who shows a certificate goes on after its authority was replaced, in the same process', async () => {
  const [own, next] = [await newCertificates(), await newCertificates()];
  await withCluster({ nodes: 1, flagsOf: (name) => own.flags(name) }, async (cluster) => {
    const [certFile, keyFile] = [own.path('client-root.crt'), own.path('client-root.key')];
    const admin = new AdminClient({
      ...{ endpoints: cluster.endpoints.map((endpoint) => `https://${endpoint}`), timeoutMs: 20_000 },
      ...{ connectTimeoutMs: 20_000, tls: { ca: own.text('ca.crt'), certFile, keyFile } },
    });
    await admin.nodes();
    own.replace('client-root', next);
    own.write('ca.crl', next.text('ca.crl'));
    own.write('ca.crt', next.text('ca.crt'));
    const node = cluster.node(1);
    node.signal('SIGHUP');
    await eventually('the node trusts the new authority', () => logged(node, 'uses new certificates').length > 0);
    expect((await admin.nodes()).nodes).toHaveLength(1);
    admin.close();
  });
});

/** Files are looked at every 2 seconds, and used after the second look. */
const SLOW_MACHINE_MS = 15_000;

test('a running cluster changes from plain text to TLS, step by step, under load', async () => {
  const own = await newCertificates();
  const all = (name: string) => ({ ...own.peerFlags(name), ...own.clientFlags(name) });
  await withCluster({}, async (cluster) => {
    const plain = new Load(await connect({ endpoints: cluster.endpoints }), 'plain');
    const restartAll = async (mode: string, load: Load): Promise<void> => {
      for (const node of cluster.nodes) {
        await node.end('SIGTERM');
        node.start({ ...all(node.name), 'tls-mode': mode, 'tls-peer-mode': mode });
        await node.untilReady();
        await load.goesOn();
      }
    };
    await restartAll('both', plain);
    const endpoints = cluster.endpoints.map((endpoint) => `https://${endpoint}`);
    const secure = new Load(await connect({ endpoints, tls: { ca: own.text('ca.crt') } }), 'secure');
    await secure.goesOn();
    await plain.stop();
    await restartAll('tls', secure);
    await secure.stop();
    expect([...plain.failures, ...secure.failures]).toEqual([]);
    await expect(connect({ endpoints: cluster.endpoints, connectTimeout: '1s' })).rejects.toThrow('requires TLS');
  });
});
