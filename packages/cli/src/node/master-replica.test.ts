import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, silentLogger } from '@remora/base';
import { openLevelEngine, RESIDENT_SPANS } from '@remora/dataserver';
import type { Master } from '@remora/master';
import { confOf } from '@remora/raft';
import { expect, onTestFinished, test } from 'vitest';
import { MasterReplica, type MasterReplicaDeps } from './master-replica.ts';

/** A node that may become a master; its group ends when `remove` is called. */
async function newMasterReplica() {
  const dir = mkdtempSync(join(tmpdir(), 'remora-masterReplica-'));
  const [clock, logger] = [nodeClock(), silentLogger];
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const engine = await openLevelEngine({ dir, clock, logger, onFailure, options: { resident: RESIDENT_SPANS } });
  onTestFinished(async () => {
    await engine.close();
    rmSync(dir, { recursive: true });
  });
  let [begun, left, remove] = [0, () => {}, () => {}];
  const master = {
    ...{ stage() {}, stop() {}, attach() {}, register() {} },
    state: { applied: { index: 0, term: 0 }, conf: confOf([]) },
  };
  const deps = {
    ...{
      nodeId: 1,
      mayServe: true,
      founders: undefined,
      engine,
      recovered: new Map(),
      registry: {},
      logger,
      onFailure,
    },
    checkpointer: { run: async () => {}, addGroup: () => () => {} },
    host: {
      createGroup: () => ({}),
      removeGroup: (_: unknown, recorded: () => Promise<void>) =>
        new Promise<void>((resolve) => {
          remove = () => void recorded().then(resolve);
        }),
    },
    createMaster: (_: unknown, onLeft: () => void) => {
      begun += 1;
      left = onLeft;
      return master as unknown as Master;
    },
  };
  const masterReplica = new MasterReplica(deps as unknown as MasterReplicaDeps);
  return { masterReplica, failures, leave: () => left(), remove: () => remove(), begun: () => begun };
}

async function seated() {
  const made = await newMasterReplica();
  made.masterReplica.become();
  await expect.poll(() => made.masterReplica.master).toBeDefined();
  return made;
}

test('a masterReplica that ends does not begin again, neither while it is being recorded nor afterwards (SE2)', async () => {
  const { masterReplica, failures, leave, remove, begun } = await seated();
  leave();
  await expect.poll(() => masterReplica.master).toBeUndefined();
  masterReplica.become(); // asked for by a leader that does not know yet
  remove();
  await new Promise((resolve) => setImmediate(resolve));
  masterReplica.become();
  await new Promise((resolve) => setImmediate(resolve));
  expect([begun(), masterReplica.master, failures]).toEqual([1, undefined, []]);
});

test('a node that stops before its masterReplica is recorded begins no master', async () => {
  const { masterReplica, failures } = await newMasterReplica();
  masterReplica.become();
  masterReplica.stop();
  await new Promise((resolve) => setImmediate(resolve));
  expect([masterReplica.master, failures]).toEqual([undefined, []]);
});
