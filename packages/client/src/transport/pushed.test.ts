import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { Pushed } from './pushed.ts';

const LIVENESS = { hold() {}, release() {} };

describe('values that are pushed', () => {
  it('come in order, those that waited first', async () => {
    let emptied = 0;
    const pushed = new Pushed<number>(LIVENESS, () => emptied++);
    for (const value of [1, 2]) pushed.push(value);
    const asked = [pushed.next(), pushed.next(), pushed.next()];
    pushed.push(3);
    expect(await Promise.all(asked)).toEqual([1, 2, 3].map((value) => ({ done: false, value })));
    expect([emptied, pushed.size]).toEqual([1, 0]);
  });

  it('come in order, and are not kept once they were taken, though some always wait', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const pushed = new Pushed<{ readonly number: number }>(LIVENESS, () => {});
    const taken: WeakRef<object>[] = [];
    let number = 0;
    const push = (): void => pushed.push({ number: number++ });
    for (let i = 0; i < 3; i++) push();
    for (let i = 0; i < 5_000; i++) {
      push();
      const { value } = await pushed.next();
      expect(value.number).toBe(i);
      taken.push(new WeakRef(value));
    }
    const kept = async (): Promise<number> => {
      // What a WeakRef was made for, or has returned, is kept until the present turn of the loop is over.
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      return taken.filter((ref) => ref.deref() !== undefined).length;
    };
    // One collection may spare a value that a compiled function still has in a register.
    await expect.poll(kept).toBe(0);
    expect(pushed.size).toBe(3);
  });
});
