import { expect, test } from 'vitest';
import { optionsOf } from './options.ts';
import { FIRST_RANGE } from './topology.ts';
import { World } from './world.ts';

/** Seeds whose clusters have machines for masters and others for data. */
const SEEDS = [2001011];

const ELECTION_MS_MAX = 5_000;

async function within(world: World, ms: number, done: () => boolean): Promise<boolean> {
  const endMs = world.loop.monotonicMs() + ms;
  await world.loop.drive(() => world.failure === undefined && !done() && world.loop.monotonicMs() < endMs);
  if (world.failure !== undefined) throw world.failure;
  return done();
}

test.each(SEEDS)(
  'after a failure of power ranges elect leaders before any master is back (KN1, seed %i)',
  async (seed) => {
    const world = new World(seed, optionsOf(seed));
    const { nodes } = world;
    const data = nodes.filter(({ machine }) => machine.roles.includes('data'));
    expect(data.some(({ machine }) => machine.roles.includes('master'))).toBe(false);
    const served = (): boolean => world.leaderOf(FIRST_RANGE)?.group(FIRST_RANGE)?.ready === true;
    world.begin();
    expect(await within(world, 10_000, served)).toBe(true);
    await within(world, 3_000, () => false);
    for (const node of nodes) node.end(true);
    await within(world, 100, () => false);
    for (const node of data) node.start();
    expect(await within(world, ELECTION_MS_MAX, served)).toBe(true);
  },
);
