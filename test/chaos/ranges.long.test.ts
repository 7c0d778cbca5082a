import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODES } from './changes/scenario.ts';
import { type ChaosResult, runChaos } from './run.ts';

const SEED = Number(process.env.REMORA_CHAOS_SEED ?? Date.now() % 1_000_000);
const PROGRAMS = fileURLToPath(new URL('../dist/chaos', import.meta.url));
/** At most; it ends when all that is looked at below has happened a few times. */
const MINUTES = 1.5;
const TIMES = 3;
const KILLS = 2;

describe(`ranges that change all the time (again: pnpm chaos ranges --minutes ${MINUTES} --seed ${SEED})`, () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-ranges-'));
  let result: ChaosResult;

  beforeAll(async () => {
    result = await runChaos({
      ...{ dir: join(dir, 'run'), programs: PROGRAMS, seed: SEED, minutes: MINUTES },
      ...{ course: 'changes', nodes: NODES, clients: 2, thinkMs: 40, auth: false },
      signal: new AbortController().signal,
      isEnough: ({ done, kills }) =>
        Object.values(done).every((count) => count >= TIMES) && Object.keys(kills).length >= KILLS,
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

  test('ranges were split, merged, moved and handed over, and coordinators were killed amid transactions', () => {
    const { done, kills } = result.changed;
    expect(Math.min(...Object.values(done))).toBeGreaterThanOrEqual(TIMES);
    expect(Object.keys(kills).length).toBeGreaterThanOrEqual(KILLS);
  });

  test.each(['transaction', 'watch'])('a %s was under way meanwhile', (subject) => {
    const met = result.judged?.overlaps.filter((each) => each.subject === subject && each.met > 0);
    expect(met?.length).toBeGreaterThan(0);
  });
});
