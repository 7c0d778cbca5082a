import { nodeClock, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { memoryEngine } from '../test/support/state-bed.ts';
import { Checkpointer } from './checkpointer.ts';

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function bed() {
  const clock = new ManualClock();
  const engine = memoryEngine(nodeClock());
  const checkpointer = new Checkpointer(engine, {
    clock,
    logger: silentLogger,
    options: { intervalMs: 1_000, bytes: 1_000_000 },
  });
  const told: string[] = [];
  const participate = (name: string, moved?: () => boolean) =>
    checkpointer.add(
      () => {
        told.push(`${name} staged`);
        return () => told.push(`${name} durable`);
      },
      ...(moved === undefined ? [] : [moved]),
    );
  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 250) {
      clock.advance(250);
      for (let i = 0; i < 5; i++) await settle();
    }
  };
  return { clock, engine, checkpointer, told, participate, pass };
}

describe('a checkpointer', () => {
  test('does nothing while nothing happens', async () => {
    const { participate, pass, told } = bed();
    participate('a', () => false);
    await pass(10_000);
    expect(told).toEqual([]);
  });

  test('stages all participants together, and tells them when that is durable (CP1, CP2)', async () => {
    const { engine, participate, pass, told } = bed();
    participate('a');
    participate('b');
    engine.put(Buffer.from([3, 1]), Buffer.from('x'));
    await pass(1_500);
    expect(told).toEqual(['a staged', 'b staged', 'a durable', 'b durable']);
  });

  test('lets a log be cut that only commands without effect have lengthened', async () => {
    const { participate, pass, told } = bed();
    let moved = true;
    participate('a', () => moved);
    await pass(1_500);
    expect(told).toEqual(['a staged', 'a durable']);
    moved = false;
    await pass(5_000);
    expect(told.length).toBe(2);
  });

  test('a run that is asked for during another one covers what came before the call', async () => {
    const { checkpointer, engine, participate, told } = bed();
    participate('a');
    const first = checkpointer.run();
    engine.put(Buffer.from([3, 1]), Buffer.from('x'));
    const [second, third] = [checkpointer.run(), checkpointer.run()];
    expect(second).toBe(third);
    await Promise.all([first, second]);
    expect(told).toEqual(['a staged', 'a durable', 'a staged', 'a durable']);
    engine.crash();
    expect(engine.get(Buffer.from([3, 1]))).toBeDefined();
  });

  // What the second had only staged would have been taken for durable with the first, and its log cut.
  test('a run that is asked for as one ends does not begin beside the one that waited for that (CP5)', async () => {
    const { checkpointer, engine, participate, told } = bed();
    participate('a');
    engine.put(Buffer.from([3, 1]), Buffer.from('x'));
    const first = checkpointer.run();
    const asked = first.then(() => checkpointer.run());
    engine.put(Buffer.from([3, 2]), Buffer.from('x'));
    await Promise.all([checkpointer.run(), asked]);
    expect(told).toEqual(['a staged', 'a durable', 'a staged', 'a durable', 'a staged', 'a durable']);
  });

  test('a run that is asked for during the last one stages what it writes, as every other (CP4)', async () => {
    const { checkpointer, engine, participate, told } = bed();
    participate('a');
    const stopped = checkpointer.stop();
    engine.put(Buffer.from([3, 1]), Buffer.from('x'));
    const late = checkpointer.run();
    await Promise.all([stopped, late]);
    expect(told).toEqual(['a staged', 'a durable', 'a staged', 'a durable']);
  });

  test('so does one that waits when the engine is closed (CP4)', async () => {
    const { checkpointer, engine, told } = bed();
    const [rows, staged] = [Buffer.from([3, 1]), Buffer.from([3, 2])];
    checkpointer.add(() => {
      told.push('staged');
      engine.put(staged, Buffer.from('y'));
      return () => told.push('durable');
    });
    const running = checkpointer.run();
    engine.put(rows, Buffer.from('x'));
    const late = engine.checkpoint();
    await Promise.all([running, late, engine.close()]);
    expect(told).toEqual(['staged', 'staged', 'durable']);
  });
});
