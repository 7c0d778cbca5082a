import { expect, it } from 'vitest';
import { SimLoop } from './loop.ts';
import { ProcessClock } from './process-clock.ts';

/** Drives the loop for `ms`. */
async function pass(loop: SimLoop, ms: number): Promise<void> {
  const untilMs = loop.monotonicMs() + ms;
  loop.setTimer(ms, () => {});
  await loop.drive(() => loop.monotonicMs() < untilMs);
}

function newClock() {
  const loop = new SimLoop();
  return { loop, clock: new ProcessClock(loop, 0, () => {}) };
}

it('runs nothing that a killed process had set, in its successor neither', async () => {
  const { loop, clock } = newClock();
  const ran: string[] = [];
  clock.begin();
  clock.setTimer(10, () => ran.push('timer'));
  clock.setImmediate(() => ran.push('immediate'));
  clock.kill();
  clock.begin();
  clock.setTimer(20, () => ran.push('of the successor'));
  await pass(loop, 30);
  expect(ran).toEqual(['of the successor']);
});

it('runs nothing that a process sets as it dies, amid whatever it was about', async () => {
  const { loop, clock } = newClock();
  const ran: string[] = [];
  clock.begin();
  const enter = clock.door();
  enter(() => {
    clock.kill();
    clock.setTimer(10, () => ran.push('timer'));
    clock.setImmediate(() => ran.push('immediate'));
  });
  expect(clock.pendingTimers).toBe(0);
  clock.begin();
  await pass(loop, 30);
  expect(ran).toEqual([]);
});
