import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runChaos } from './run.ts';
import { releasesIn } from './upgrade/releases.ts';

const SEED = Number(process.env.REMORA_CHAOS_SEED ?? Date.now() % 1_000_000);
const PROGRAMS = fileURLToPath(new URL('../dist/chaos', import.meta.url));
const LAY_OUT = fileURLToPath(new URL('upgrade/releases.mjs', import.meta.url));

test(`a cluster is upgraded, goes back, is upgraded again and finalized under load (again: npm run test:upgrade -- --minutes 0.2 --seed ${SEED})`, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-upgrade-'));
  const { directory, names } = JSON.parse(execFileSync(process.execPath, [LAY_OUT], { encoding: 'utf8' }));
  const result = await runChaos({
    ...{ dir: join(dir, 'run'), programs: PROGRAMS, seed: SEED, minutes: 0.2 },
    ...{ course: 'upgrade', nodes: 3, clients: 2, thinkMs: 40, auth: false },
    releases: releasesIn(directory, names),
    signal: new AbortController().signal,
    say: () => {},
  });
  expect(result.findings, `data, logs and journals are kept in ${dir}`).toEqual([]);
  const kinds = result.faults.map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'other release')).toHaveLength(9);
  expect(kinds).toContain('finalized');
  expect(result.judged?.figures.byOutcome.done).toBeGreaterThan(300);
  rmSync(dir, { recursive: true, force: true });
}, 300_000);
