import { describe } from 'vitest';
import { replayPlanted } from '../../common/planted/replay.ts';
import { LOST_MAJORITY_PLANTING } from './planting.ts';

describe('the simulation of lost majorities, without a bug, keeps every promise, and finds', () => {
  replayPlanted({ planting: LOST_MAJORITY_PLANTING, seedsInTest: 0, spareSeeds: 20 });
});
