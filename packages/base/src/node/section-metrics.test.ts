import { beforeEach, expect, test } from 'vitest';
import type { LoopSection } from '../loop-sections.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { createMetrics, type MetricsRegistry } from './metrics.ts';
import { SectionMeter } from './section-metrics.ts';

let clock: ManualClock;
let metrics: MetricsRegistry;
let meter: SectionMeter;

beforeEach(() => {
  clock = new ManualClock();
  metrics = createMetrics();
  meter = new SectionMeter(metrics, clock);
});

const section = (name: LoopSection, startMs: number, endMs: number, ownMs = endMs - startMs) =>
  meter.add({ name, startMs, endMs, ownMs });

async function shown(): Promise<readonly string[]> {
  clock.advance(1_000);
  const lines = (await metrics.render()).split('\n');
  return lines.filter((line) => /^remora_loop_section_(longest_seconds|seconds_count)\{/.test(line));
}

test('long sections are counted by name, with the longest', async () => {
  section('split', 0, 30);
  section('split', 40, 50);
  expect(await shown()).toEqual([
    'remora_loop_section_seconds_count{section="split"} 2',
    'remora_loop_section_longest_seconds{section="split"} 0.03',
  ]);
});

test('SM1: pauses are subtracted from the innermost section that ran during them, also when they are reported late', async () => {
  section('leaseEnd', 10, 40);
  section('raftTurn', 0, 60, 30);
  meter.paused(20, 10);
  meter.paused(45, 28);
  expect(await shown()).toEqual([
    'remora_loop_section_seconds_count{section="leaseEnd"} 1',
    'remora_loop_section_seconds_count{section="raftTurn"} 1',
    'remora_loop_section_longest_seconds{section="leaseEnd"} 0.02',
    'remora_loop_section_longest_seconds{section="raftTurn"} 0.015',
  ]);
});

test('a section that was long only by a pause is not counted', async () => {
  section('frame', 0, 22);
  meter.paused(1, 20);
  expect(await shown()).toEqual([]);
});

test('nothing is lost when it stops', async () => {
  section('http', 0, 12);
  meter.stop();
  expect(clock.pendingTimers).toBe(0);
  expect((await shown())[0]).toBe('remora_loop_section_seconds_count{section="http"} 1');
});
