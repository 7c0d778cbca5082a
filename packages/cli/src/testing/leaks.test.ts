/** What a cluster leaves in its process: nothing (MC2). */
import { isDeepStrictEqual } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { startTestCluster, type TestClusterOptions } from './index.ts';

setFlagsFromString('--expose-gc');
const TRIES = 1_000;
const collect: () => void = runInNewContext('gc');

/** Sockets, timers and the like, by kind. */
function resources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** What is there now and was not there before. The test library's own timers come and go. */
function added(before: ReadonlyMap<string, number>): readonly string[] {
  return [...resources()].filter(([kind, count]) => count > (before.get(kind) ?? 0)).map(([kind]) => kind);
}

function listeners(): readonly string[] {
  return process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`);
}

/** Sockets close a little later. `expect.poll` would count its own timers. Returns the last result. */
async function soon<T>(look: () => T, expected: T): Promise<T> {
  for (let tries = 0; tries < TRIES && !isDeepStrictEqual(look(), expected); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return look();
}

/** One life of a cluster, with whatever a test may leave in it. Returns what must not live on. */
async function live(round: number, options: TestClusterOptions): Promise<readonly WeakRef<object>[]> {
  const cluster = await startTestCluster(options);
  const [one, two] = [await cluster.connect(), await cluster.connect()];
  const held = await one.lock('l').acquire();
  const waiting = two.lock('l').acquire({ wait: '1h' });
  waiting.catch(() => {});
  const watch = two.kv.watch('k');
  if (round % 4 === 1) cluster.cutOff(one);
  if (round % 4 === 2) await cluster.expire(held);
  if (round % 4 === 3) await cluster.advance('3s');
  await cluster.stop();
  return [cluster, cluster.clock, one, two, held, waiting, watch].map((each) => new WeakRef(each));
}

test('100 clusters leave neither timers nor listeners nor memory', async () => {
  await live(0, {});
  const [before, heard] = [resources(), listeners()];
  const left: WeakRef<object>[] = [];
  for (let round = 0; round < 100; round++) {
    left.push(...(await live(round, { clock: round % 2 === 0 ? 'running' : 'manual' })));
  }
  expect(await soon(() => added(before), [])).toEqual([]);
  expect(listeners()).toEqual(heard);
  const living = (): number => {
    collect();
    return left.filter((each) => each.deref() !== undefined).length;
  };
  expect(await soon(living, 0)).toBe(0);
});

test('a cluster that listens leaves no sockets', async () => {
  const before = resources();
  for (let round = 0; round < 4; round++) await live(round, { listen: true });
  expect(await soon(() => added(before), [])).toEqual([]);
});
