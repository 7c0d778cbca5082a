/**
 * What unary calls of etcd's API cost, by h2load: ranges of one key and puts of 64 bytes. They are sent one at a time,
 * 64 at a time on one connection, and 64 on each of four. `--peer etcd`, `--peer secure` (TLS and authentication) and
 * `--baseline` are measured by turns. Of h2load's times the mean and the maximum of a run are shown.
 *
 * Before and after each run of puts, the revision is asked for: it has to have grown by as many puts as were answered.
 *
 * Settings: do=range,put  load=1x1,1x64,4x64 (connections × streams)  entry=leader,follower
 */

import { readFileSync } from 'node:fs';
import { credentials } from '@grpc/grpc-js';
import { PutRequest, RangeRequest } from '@remora/protocol/etcd';
import type { KVClient } from '@remora/protocol/grpc-clients';
import { kvClient } from '../../../test/support/etcd-clients.ts';
import type { ProcessCluster } from '../../process-cluster.ts';
import { type CaseBar, type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { byTurns, cells, HEAD, type LoadFigures, type Measured, rateBar, withClusters } from '../bed.ts';
import { h2load, needH2load } from '../h2load.ts';

const KEY = Buffer.from('bench/front');
const VALUE = Buffer.alloc(64, 'x');
/** Of etcd's rate. */
const LEAST = { range: 2, put: 1.5, single: 0.9, follower: 1, secure: 0.6 } as const;

export const SETTINGS = ['do', 'load', 'entry'];

type Done = 'range' | 'put';

export async function run(context: CaseContext): Promise<CaseResult> {
  needH2load();
  const measured: Measured[] = [];
  for (const entry of wordsOf(context, 'entry', ['leader', 'follower'])) {
    await withClusters(
      context,
      entry,
      async (clusters) => {
        for (const cluster of clusters) await put(await kvClientOf(cluster));
        for (const what of wordsOf<Done>(context, 'do', ['range', 'put'])) {
          for (const level of wordsOf(context, 'load', ['1x1', '1x64', '4x64'])) {
            const name = `${what} ${level}, ${entry}`;
            measured.push(
              ...(await byTurns(context, clusters, name, (cluster) => load(context, cluster, what, level))),
            );
          }
        }
      },
      ['etcd', 'secure'],
    );
  }
  const bars = [...new Set(measured.map(({ load: name }) => name))].flatMap((name) =>
    rateBar(measured, name, leastOf(name)).concat(secureBar(measured, name)),
  );
  return { data: measured, text: table(HEAD, measured.map(cells)), bars };
}

function leastOf(name: string): number {
  if (name.includes('follower')) return LEAST.follower;
  if (name.includes('1x1')) return LEAST.single;
  return name.startsWith('put') ? LEAST.put : LEAST.range;
}

/** A cluster with TLS and authentication, in proportion to one without. */
function secureBar(measured: readonly Measured[], name: string): readonly CaseBar[] {
  return name.includes('4x64') ? rateBar(measured, name, LEAST.secure, { subject: 'secure', other: 'remora' }) : [];
}

async function load(context: CaseContext, cluster: ProcessCluster, what: Done, level: string): Promise<LoadFigures> {
  const [connections = 1, streams = 1] = level.split('x').map(Number);
  const client = await kvClientOf(cluster);
  const before = what === 'put' ? await versionOf(client) : 0;
  const message = what === 'put' ? concat(field(1, KEY), field(2, VALUE)) : field(1, KEY);
  const path = what === 'put' ? '/etcdserverpb.KV/Put' : '/etcdserverpb.KV/Range';
  const figures = await h2load(cluster, { path, message, connections, streams }, context.dir, context.seconds);
  const added = what === 'put' ? (await versionOf(client)) - before : 0;
  client.close();
  if (what === 'put' && added < figures.ops) throw new Error(`${figures.ops} puts were answered, and ${added} applied`);
  return figures;
}

async function kvClientOf(cluster: ProcessCluster): Promise<KVClient> {
  const { access } = cluster;
  const address = await cluster.entryAddress();
  if (access === undefined) return kvClient(address);
  const [ca, key, cert] = [access.ca, access.key, access.cert].map((path) => readFileSync(path));
  return kvClient(address, credentials.createSsl(ca, key, cert));
}

/** How often the key was put. */
function versionOf(client: KVClient): Promise<number> {
  return new Promise((resolve, reject) => {
    client.range(RangeRequest.fromPartial({ key: KEY }), (error, response) => {
      if (error !== null) return reject(error);
      resolve(response.kvs[0]?.version ?? 0);
    });
  });
}

function put(client: KVClient): Promise<void> {
  return new Promise((resolve, reject) => {
    client.put(PutRequest.fromPartial({ key: KEY, value: VALUE }), (error) => {
      client.close();
      if (error === null) resolve();
      else reject(error);
    });
  });
}

/** A field of bytes, shorter than 128. */
function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

function concat(...parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts);
}
