/**
 * Majorities are lost for good, and the operator recovers what is left (`unsafe-recover`). All of it comes from one
 * seed: three or five nodes have four ranges of three or five replicas each. Two or three nodes die with their disks,
 * together or one after the other, during writes, transactions over ranges, locks and splits, while another node lags.
 * One of the lost nodes comes back too late.
 *
 * LM1. A replica continues alone only if no quorum is left, only if it holds everything that any other remaining
 *      replica knows to be committed, and only once the entry that says so is on its disk (common/raft/observer.ts O4).
 * LM2. Answers that clients received hold as far as anything can be promised (written.ts W1–W5, locks.ts LV1, LV2).
 * LM3. Of two ranges that share keys, one is older by its version, whatever was split when majorities were lost
 *      (cluster/checks/range-changes.ts D1, D2).
 * LM4. Everything that was left works: in the end every key accepts a write, and every lock can be granted (locks.ts
 *      LV3). Exception: ranges that the recovery reports as unrecoverable.
 * LM5. Every range has three equal replicas on nodes that exist, nothing is left of transactions and leases, and there
 *      are three masters.
 * LM6. A node that comes back is refused with its old disk, and joins as a new node.
 * LM7. The operator may repeat the order at any time, through any gateway, and nodes may restart meanwhile.
 */
import { assert, SeededRandom, ServiceError, spanContains } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { differences } from '../cluster/checks/replicas.ts';
import { sumsOf } from '../cluster/checks/state-watch.ts';
import { ScheduledCluster } from '../cluster/scheduled-cluster.ts';
import { lifeOf } from '../cluster/sdk-client.ts';
import type { SimResult } from '../common/cli/simulation.ts';
import { failureOf } from '../common/failure.ts';
import { Violation } from '../common/violation.ts';
import { BORDERS, KEYS, startLoad } from './load.ts';
import { LOCK_BORDER, Locks } from './locks.ts';
import { Loss } from './loss.ts';
import { Written } from './written.ts';

const DOWN_AFTER_MS = 8_000;
const BEGIN_MS = 60_000;
const ORDER_MS = 60_000;
const REFUSED_MS = 20_000;
const REST_MS = 180_000;
const AGAIN_MS = 500;
const AUDIT_MS = 2_000;
/** Answers after which the operator tries again. */
const MISFORTUNES: readonly string[] = ['UNAVAILABLE', 'DEADLINE_EXCEEDED'];
/** The order is refused so if a membership change had saved the range from losing its majority. */
const NOTHING_LOST = 'nothing has lost its majority';

export async function runSeed(seed: number): Promise<SimResult> {
  const random = new SeededRandom(seed);
  const nodes = random.int(3) === 0 ? 3 : 5;
  // Only every fourth seed of whole clusters has several ranges, with revisions that all ranges share.
  const cluster = new ScheduledCluster(4 * seed, {
    nodes,
    later: 5 - nodes,
    mayBecomeMasters: true,
    clients: 2,
    leaseAuditMs: AUDIT_MS,
  });
  const { world } = cluster;
  const written = new Written();
  const locks = new Locks(cluster, () => written.recovered);
  const course: Course = { written, locks, loss: new Loss(cluster, random), random };
  try {
    await live(cluster, course);
  } catch (error) {
    world.fail(error);
  }
  const { acknowledged, notRequired } = written;
  return {
    ...{ seed, schedule: [], hash: world.trace.hash, counts: { ...world.counts }, fired: course.loss.fired },
    ...{ simulatedMs: world.loop.monotonicMs(), steps: world.loop.steps },
    figures: {
      'writes acknowledged': acknowledged,
      'of these lost or not known to be there': notRequired,
      'locks granted': locks.granted,
    },
    ...(world.failure !== undefined && { failure: failureOf(world.trace, world.failure) }),
  };
}

interface Course {
  readonly written: Written;
  readonly locks: Locks;
  readonly loss: Loss;
  readonly random: SeededRandom;
}

async function live(cluster: ScheduledCluster, { written, locks, loss, random }: Course): Promise<void> {
  await found(cluster, loss.copies);
  startLoad(cluster, written, locks);
  await cluster.run(1_000 + random.int(3_000));
  await loss.befall();
  await cluster.run(3_000 + random.int(5_000));
  await loss.misfortune();
  const beyondHelp = await order(cluster, loss);
  if (beyondHelp === undefined) return;
  written.recovered = true;
  await loss.aftermath();
  await cluster.until(REFUSED_MS, 'who comes back is refused', () => loss.notRefused());
  const lost = KEYS.filter((key) => beyondHelp.some((range) => spanContains(range, kvRoutingKey(Buffer.from(key)))));
  await writable(
    cluster,
    KEYS.filter((key) => !lost.includes(key)),
    written,
  );
  await locks.usable(REST_MS, (key) => beyondHelp.some((range) => spanContains(range, key)));
  locks.check((key) => loss.isLost(key));
  cluster.world.resting = true;
  await cluster.until(REST_MS, 'rest', () => {
    return lost.length > 0 ? mastersMissing(cluster) : unrested(cluster);
  });
  await checkKeys(
    cluster,
    KEYS.filter((key) => !lost.includes(key)),
    { written, loss },
  );
  if (lost.length === 0) await agree(cluster);
}

/** Creates four ranges, with their replicas and leaders on all nodes. */
async function found(cluster: ScheduledCluster, copies: number): Promise<void> {
  await cluster.start();
  await cluster.set('down-after', `${DOWN_AFTER_MS}ms`);
  await cluster.set('node-settle', '2s');
  await cluster.set('move-cooldown', '2s');
  await cluster.splitAt([LOCK_BORDER, ...BORDERS.map((border) => kvRoutingKey(Buffer.from(border)))]);
  await cluster.set('replicas', String(copies));
  await cluster.until(BEGIN_MS, 'a cluster', () => cluster.unrepaired(copies));
  cluster.world.changes.run();
}

/** LM7. Returns the unrecoverable ranges. Undefined if no majority was lost after all. */
async function order(cluster: ScheduledCluster, loss: Loss): Promise<readonly admin.UnrecoverableRange[] | undefined> {
  const { world } = cluster;
  const dead = loss.deadIds.map(String);
  let begun = false;
  let needless = false;
  let answer: admin.RecoverMajorityResponse | undefined;
  let last = 'nobody could be asked';
  let nextMs = 0;
  const told = (error: ServiceError | undefined): void => {
    if (error !== undefined) last = error.message;
    if (!begun && last.startsWith(NOTHING_LOST)) needless = true;
  };
  await cluster.until(ORDER_MS, 'an order that is carried out', () => {
    if (answer?.done === true || needless) return '';
    if (cluster.nowMs < nextMs) return last;
    nextMs = cluster.nowMs + AGAIN_MS;
    world.admin.ask(
      'recover',
      async (api, call) => {
        const step = await api.recovery.recoverMajority({ dead, dryRun: false, begun }, call);
        begun = true;
        loss.told(step);
        answer = step;
      },
      told,
    );
    return last;
  });
  return answer?.unrecoverable;
}

/** LM4. */
async function writable(cluster: ScheduledCluster, keys: readonly string[], written: Written): Promise<void> {
  const missing = new Set(keys);
  const write = (key: string): void => {
    const value = written.newValue();
    const acknowledged = written.begin([key], value);
    lifeOf(cluster.world.clientAt(0))
      .remora.kv.put(key, value)
      .then(
        ({ revision }) => {
          acknowledged(revision);
          missing.delete(key);
        },
        () => write(key),
      );
  };
  for (const key of keys) write(key);
  await cluster.until(REST_MS, 'every key takes a write', () => [...missing].join(', '));
}

/** LM5. */
function unrested(cluster: ScheduledCluster): string {
  const busy = cluster.world.clients.find(({ working }) => working);
  if (busy !== undefined) return `client ${busy.id} does not come to an end`;
  return mastersMissing(cluster) || cluster.unrepaired() || cluster.misplaced() || leftOver(cluster);
}

function mastersMissing({ masterIds }: ScheduledCluster): string {
  return masterIds.length === 3 ? '' : `the masters are ${masterIds.join(', ')}`;
}

function leftOver({ world }: ScheduledCluster): string {
  for (const { id, roles } of world.nodes) {
    for (const { rangeId, state } of roles?.store?.replicas() ?? []) {
      if ([...state.transactions.parts].length > 0) return `node ${id} has parts of transactions in range ${rangeId}`;
      if (state.leases.size + state.references.size > 0)
        return `node ${id} has something of leases in range ${rangeId}`;
    }
  }
  return '';
}

/** LM2. */
async function checkKeys(
  cluster: ScheduledCluster,
  keys: readonly string[],
  { written, loss }: Pick<Course, 'written' | 'loss'>,
) {
  const { remora } = lifeOf(cluster.world.clientAt(0));
  for (const key of keys) {
    const found = await settled(
      cluster,
      `an answer for ${key}`,
      answered(() => remora.kv.get(key)),
    );
    const left = found && { value: found.value.toString(), modRevision: found.modRevision };
    written.check(key, left, loss.heldOf(key));
  }
}

async function agree(cluster: ScheduledCluster): Promise<void> {
  let found = 'nothing was compared';
  for (let tries = 0; tries < 100 && found !== ''; tries++) {
    await cluster.run(100);
    found = differences(await settled(cluster, 'sums', sumsOf(cluster.world.nodes)));
  }
  if (found !== '') throw new Violation('replicas agree', found);
}

/** Tries again until there is an answer: routes to leaders may be stale. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ServiceError && MISFORTUNES.includes(error.code))) throw error;
    }
  }
}

/** Lets time pass until a promise has settled. */
async function settled<T>(cluster: ScheduledCluster, what: string, promise: Promise<T>): Promise<T> {
  const settlement: { given?: { readonly value: T } } = {};
  promise.then(
    (value) => {
      settlement.given = { value };
    },
    (error: unknown) => cluster.world.fail(error),
  );
  await cluster.until(REST_MS, what, () => (settlement.given ? '' : 'it does not come'));
  assert(settlement.given !== undefined, 'it has come');
  return settlement.given.value;
}
