import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODES } from './changes/scenario.ts';
import { type ChaosResult, runChaos } from './run.ts';

const SEED = Number(process.env.REMORA_CHAOS_SEED ?? Date.now() % 1_000_000);
const PROGRAMS = fileURLToPath(new URL('../dist/chaos', import.meta.url));
const MINUTES = 0.2;

describe(`ranges that change all the time (again: pnpm chaos ranges --minutes ${MINUTES} --seed ${SEED})`, () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-ranges-'));
  let result: ChaosResult;

  beforeAll(async () => {
    result = await runChaos({
      ...{ dir: join(dir, 'run'), programs: PROGRAMS, seed: SEED, minutes: MINUTES },
      ...{ course: 'changes', nodes: NODES, clients: 2, thinkMs: 40 },
      signal: new AbortController().signal,
      say: () => {},
    });
  }, 240_000);

  afterAll(() => {
    if (result.findings.length === 0) rmSync(dir, { recursive: true, force: true });
  });

  test('every promise held', () => {
    expect(result.findings, `data, logs and journals are kept in ${dir}`).toEqual([]);
    expect(result.judged?.figures.byOutcome.done).toBeGreaterThan(100);
  });

  test('ranges were split, merged, moved and handed over, and a coordinator was killed amid a transaction', () => {
    const { done, kills } = result.changed;
    expect(done).toEqual({ split: above0, merge: above0, move: above0, transfer: above0 });
    expect(Object.keys(kills).length).toBeGreaterThan(0);
  });

  test('transactions and watches were under way meanwhile', () => {
    for (const subject of ['transaction', 'watch']) {
      const met = result.judged?.overlaps.filter((each) => each.subject === subject && each.met > 0);
      expect(met?.map(({ change }) => change)).toContain('split');
    }
  });
});

const above0 = expect.toSatisfy((count: number) => count > 0, 'a number above 0');
