/**
 * A backup is restored into a new cluster while nodes lose their power, its range is split and led by others, and
 * whoever restores is killed, amid any message.
 *
 * RT1. Whatever breaks an attempt off, doing it again gets to the end: every key of the backup is there, once, and none
 *      besides (restore.ts RS2).
 * RT2. What was restored is above all revisions that the old cluster can have used (RS3), and nothing of leases is in
 *      it (RS4).
 */
import { SeededRandom, ServiceError, sleep } from '@remora/base';
import { KvPair } from 'remora';
import { expect, test } from 'vitest';
import type { BackupSource } from '../../../packages/cli/src/backup/backup-file.ts';
import { REVISIONS_AHEAD, type Restored, restoreBackup } from '../../../packages/cli/src/backup/restore.ts';
import { EVERYTHING } from '../../../packages/cli/src/backup/take.ts';
import type { Shell } from '../../../packages/cli/src/shell.ts';
import type { AdminCall } from './admin-user.ts';
import { ScheduledCluster } from './scheduled-cluster.ts';
import type { ClientLife, SimClient } from './sdk-client.ts';

const SEEDS = [1, 2, 3, 4];
const NODES = 4;
const PAIRS = 2_000;
/** As many as have a fourth of the time that a restore takes without them. */
const MISFORTUNES = 8;
const AGAIN_MS = 100;
const BOUND_MS = 120_000;
const REVISION = 5_000;

const shell: Shell = {
  env: {},
  out() {},
  raw() {},
  err() {},
  shown: false,
  terminal: false,
  ask: async () => undefined,
  askSecret: async () => undefined,
  input: async () => '',
};

/** Every tenth key belonged to a lease. */
const pairs: readonly KvPair[] = Array.from({ length: PAIRS }, (_, i) => {
  const [key, value] = [Buffer.from(`k${10_000 + i}`), Buffer.from(`v${i}`)];
  return new KvPair({ key, value, createRevision: 3, modRevision: 5, version: 2, lease: i % 10 === 9 ? 7n : 0n });
});
const expected = pairs.filter(({ lease }) => lease === 0n).map(({ key, value }) => `${key}=${value}`);

const backup: BackupSource = {
  name: 'the backup',
  async *parts() {
    const header = { clusterId: 'the old one', revision: REVISION, pairs: PAIRS, takenAtMs: 0, program: 'a test' };
    yield { type: 'header', header };
    for (let at = 0; at < PAIRS; at += 100) yield { type: 'pairs', pairs: pairs.slice(at, at + 100) };
  },
};

class Restore {
  attempts = 0;
  restored: Restored | undefined;
  /** All that is there in the end. */
  found: readonly KvPair[] | undefined;
  readonly #cluster: ScheduledCluster;
  readonly #client: SimClient;

  constructor(cluster: ScheduledCluster) {
    this.#cluster = cluster;
    this.#client = cluster.world.clientAt(0);
  }

  /** Does it until it is done, as an operator would. */
  begin(): void {
    this.#client.start(async (life) => {
      while (this.restored === undefined) {
        this.attempts++;
        await this.#attempt(life).catch(() => sleep(life.clock, AGAIN_MS));
      }
      while (this.found === undefined) {
        this.found = await everything(life).catch(() => undefined);
      }
    });
  }

  async #attempt(life: ClientLife): Promise<void> {
    const admin = {
      beginRestore: (above: number) => this.#beginRestore(life, above),
      endRestore: () => this.#ask(life, async (api, call) => void (await api.endRestore({}, call))),
    };
    this.restored = await restoreBackup({ client: life.remora, admin }, backup, shell);
  }

  #beginRestore(life: ClientLife, above: number): Promise<{ readonly revision: number }> {
    return this.#ask(life, async (api, call) => {
      const { revision } = await api.beginRestore({ revision: BigInt(above) }, call);
      return { revision: Number(revision) };
    });
  }

  /** The node that is asked may crash. */
  #ask<Answer>({ clock }: ClientLife, work: AdminCall<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const lost = new ServiceError('DEADLINE_EXCEEDED', 'no answer');
      clock.setTimer(5_000, () => reject(lost));
      const asked = this.#cluster.world.admin.ask(
        'restore',
        async (api, call) => resolve(await work(api, call)),
        (error) => error && reject(error),
      );
      if (!asked) reject(lost);
    });
  }

  /** The process that restores is killed, and started anew. */
  kill(power: boolean): void {
    this.#client.vanish(power);
    this.begin();
  }
}

async function everything({ remora }: ClientLife): Promise<readonly KvPair[]> {
  return remora.kv.list(EVERYTHING).toArray();
}

async function befall(cluster: ScheduledCluster, restore: Restore, random: SeededRandom): Promise<void> {
  await cluster.run(20 + random.int(150));
  const [kind, machine, afterMs] = [random.int(4), 1 + random.int(NODES), 50 + random.int(500)];
  if (kind === 0) return restore.kill(random.int(2) === 0);
  if (kind === 1) return cluster.restart(machine, afterMs);
  const range = cluster.ranges[random.int(cluster.ranges.length)];
  const at = pairs[random.int(PAIRS)]?.key;
  if (range === undefined || at === undefined) return;
  if (kind === 2) cluster.steer(range, { type: 'split', at });
  else cluster.world.leaderOf(range.rangeId)?.end(random.int(2) === 0);
  for (const node of cluster.world.nodes) if (node.down) node.start();
}

test('a restore comes to its end whatever breaks it off, and nothing is in the cluster but the backup', async () => {
  const done: Restore[] = [];
  for (const seed of SEEDS) {
    const cluster = new ScheduledCluster(seed, { nodes: NODES, later: 0 });
    const random = new SeededRandom(seed);
    const restore = new Restore(cluster);
    await cluster.start();
    restore.begin();
    for (let i = 0; i < MISFORTUNES; i++) await befall(cluster, restore, random);
    await cluster.until(BOUND_MS, 'the restore', () => (restore.found === undefined ? 'it is not done' : ''));
    expect(restore.found?.map(({ key, value }) => `${key}=${value}`)).toEqual(expected); // RT1
    for (const { createRevision, version, lease } of restore.found ?? []) {
      expect([createRevision > REVISION + REVISIONS_AHEAD, version, lease]).toEqual([true, 1, 0n]); // RT2
    }
    done.push(restore);
  }
  // What the runs are about has happened.
  expect(done.filter(({ attempts }) => attempts > 1).length).toBeGreaterThan(0);
  expect(done.filter(({ restored }) => (restored?.before ?? 0) > 0).length).toBeGreaterThan(0);
});
