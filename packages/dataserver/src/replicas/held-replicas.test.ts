import { expect, test } from 'vitest';
import { CrashWorld } from '../../test/support/crash-world.ts';
import { allHeldSpan, stateKey } from '../state/keys.ts';
import { HeldReplicas } from './held-replicas.ts';

async function bed() {
  const { engine } = await new CrashWorld(1).boot();
  return { engine, held: new HeldReplicas(engine) };
}

test('a node takes no replica of a range that is not newer than the one that ended there (HR1)', async () => {
  const { held } = await bed();
  held.begins(2, 50);
  expect([49, 50, 51].map((id) => held.accepts(2, id))).toEqual([false, true, true]);
  held.ends(2, 50);
  expect([49, 50, 51].map((id) => held.accepts(2, id))).toEqual([false, false, true]);
});

test('of those that ended the last are remembered, and of the others that there were any (HR3)', async () => {
  const { engine, held } = await bed();
  held.begins(2, 10); // it runs, however old it is
  for (let i = 0; i < 6; i++) held.ends(20 + i, 100 + i);
  held.forget(2);
  expect([...engine.scanResident(allHeldSpan())]).toHaveLength(4); // the floor, the one that runs, and two
  expect([20, 23, 24, 25].map((rangeId) => held.of(rangeId)?.replicaId)).toEqual([undefined, undefined, 104, 105]);
  expect([held.accepts(20, 100), held.accepts(23, 103), held.accepts(24, 104), held.accepts(2, 10)]).toEqual([
    ...[false, false, false, true],
  ]);
  expect([held.accepts(30, 103), held.accepts(30, 104)]).toEqual([false, true]);
});

test('the floor never falls, and the place among the masters is never forgotten', async () => {
  const { held } = await bed();
  held.ends(1, 3);
  held.ends(20, 100);
  held.forget(0);
  held.ends(21, 50);
  held.forget(0);
  expect([held.accepts(1, 3), held.accepts(22, 100), held.accepts(22, 101)]).toEqual([false, false, true]);
});

test('of one whose rows are not all gone it is remembered that it has ended, however old it is (HR4)', async () => {
  const { engine, held } = await bed();
  held.ends(2, 10);
  held.ends(20, 100);
  engine.put(stateKey(2), Buffer.from('what is left'));
  held.forget(0);
  expect([held.of(2), held.of(20)]).toEqual([{ replicaId: 10, ended: true }, undefined]);
  engine.delete(stateKey(2));
  held.forget(0);
  expect([held.of(2), held.accepts(2, 10)]).toEqual([undefined, false]);
});
