import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Operation, Round } from './judges/evidence.ts';
import { judgeRound } from './judges/judge-round.ts';
import { readRounds } from './judges/read-rounds.ts';
import { compactionOf } from './judges/watches.ts';
import { type ChaosResult, runChaos } from './run.ts';

const SEED = Number(process.env.REMORA_CHAOS_SEED ?? Date.now() % 1_000_000);
const PROGRAMS = fileURLToPath(new URL('../dist/chaos', import.meta.url));

describe(`chaos (again: pnpm chaos --minutes 0.75 --seed ${SEED})`, () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-chaos-'));
  let result: ChaosResult;
  let rounds: readonly Round[];

  beforeAll(async () => {
    result = await runChaos({
      ...{ dir: join(dir, 'run'), programs: PROGRAMS, seed: SEED, minutes: 0.75 },
      ...{ course: 'faults', nodes: 3, clients: 3, thinkMs: 25, auth: false },
      signal: new AbortController().signal,
      say: () => {},
    });
    rounds = readRounds(join(dir, 'run'));
  }, 300_000);

  afterAll(() => {
    if (result.findings.length === 0) rmSync(dir, { recursive: true, force: true });
  });

  test('every promise held', () => {
    expect(result.findings, `data, logs and journals are kept in ${dir}`).toEqual([]);
    expect(result.judged).toBeDefined();
  });

  test('faults of several kinds came, some outcomes were unknown, and most operations were answered', () => {
    expect(new Set(result.faults.map(({ kind }) => kind)).size).toBeGreaterThan(3);
    const { done, unknown } = result.judged?.figures.byOutcome ?? { done: 0, unknown: 0 };
    expect(unknown).toBeGreaterThan(0);
    expect(done).toBeGreaterThan(300);
  });

  test('each kind of load did something', () => {
    const done = new Set(rounds.flatMap(({ operations }) => operations.filter(isDone).map(({ w }) => w)));
    expect([...done]).toEqual(
      expect.arrayContaining([
        ...['bank', 'barriers', 'counters', 'elections', 'fences', 'kinds', 'leases', 'listeners', 'lists'],
        ...['locks', 'mirrors', 'registers', 'terms', 'txns', 'watches'],
      ]),
    );
  });

  test('a lost write put into what was recorded is found', () => {
    const found = rounds.flatMap((round) => {
      const lost = round.operations.find(
        ({ w, q, a }) => w === 'lists' && 'v' in q && a !== undefined && 'revision' in a,
      );
      if (lost === undefined || !('v' in lost.q)) return [];
      const { v } = lost.q;
      return [{ ...round, events: round.events.filter(({ value }) => value !== v) }];
    });
    const [first] = found;
    expect(first).toBeDefined();
    const compacted = Math.max(...rounds.map(compactionOf));
    const properties = found
      .slice(0, 1)
      .flatMap((round) => judgeRound(round, { compacted }).map((each) => each.property));
    expect(properties).toContain('writes: nothing is lost');
  });
});

function isDone({ how }: Operation): boolean {
  return how === 'done';
}
