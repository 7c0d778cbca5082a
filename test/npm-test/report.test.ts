/** What `npm test` prints: scripts/test-reporter.mjs, run over a few tests that pass, fail and are skipped. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const MIXED = `
import { describe, expect, test } from 'vitest';
test('passes', () => { console.log('chatter'.repeat(2)); });
test('fails', () => { console.log('what led to it'); expect(1 + 1).toBe(3); });
test('says more', async ({ annotate }) => { await annotate('seed 7 found it'); });
describe.skip('needs etcd [skipped: etcd is not installed]', () => {
  test('one', () => {});
  test('two', () => {});
});
`;
const PASSING = Array.from({ length: 300 }, (_, i) => `test('claim ${i}', () => console.log('noise'));`);

const FILES = [...'xabcdefgh'];

interface Report {
  readonly out: string;
  readonly counts: unknown;
}

describe('the report of `npm test`', () => {
  let dir: string;
  beforeAll(() => {
    // In the repository, where vitest is found.
    const parent = join(ROOT, '.remora');
    mkdirSync(parent, { recursive: true });
    dir = mkdtempSync(join(parent, 'report-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  function report(name: string, ...sources: readonly string[]): Report {
    const root = join(dir, name);
    mkdirSync(root, { recursive: true });
    for (const [i, source] of sources.entries()) writeFileSync(join(root, `${FILES[i]}.test.mjs`), source);
    writeFileSync(join(root, 'vitest.config.mjs'), 'export default {};');
    const countsFile = join(dir, name, 'counts.json');
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [
        join(ROOT, 'node_modules/vitest/vitest.mjs'),
        ...['run', '--no-isolate', '--root', root, '--reporter', join(ROOT, 'scripts/test-reporter.mjs')],
      ],
      { cwd: ROOT, encoding: 'utf8', env: { ...process.env, REMORA_TEST_COUNTS: countsFile, NO_COLOR: '1' } },
    );
    return { out: stdout + stderr, counts: JSON.parse(readFileSync(countsFile, 'utf8')) };
  }

  test('fits on a screen when all is well, whatever the tests print', () => {
    const { out, counts } = report('passing', `import { test } from 'vitest';\n${PASSING.join('\n')}`);
    expect(counts).toEqual({ passed: 300, failed: 0, skipped: 0 });
    expect(out.split('\n').length, out).toBeLessThan(20);
    expect(out).not.toContain('noise');
    expect(out).not.toContain('Slowest files');
  });

  test('lists the slowest of many files, the slowest first', () => {
    const resting = (_: string, i: number): string =>
      `import { test } from 'vitest';\ntest('rests', () => new Promise((resolve) => setTimeout(resolve, ${i % 2} * 1_000)));`;
    const { out } = report('many', ...FILES.map(resting));
    const [, list = ''] = out.split('Slowest files:\n');
    const seconds = [...list.matchAll(/^ +(\d+) s {2}\w\.test\.mjs$/gm)].map(([, each]) => Number(each));
    expect(seconds).toHaveLength(8);
    expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
  });

  test('has failures in full with what they printed, notes, and what was skipped for which reason', () => {
    const { out, counts } = report('mixed', MIXED);
    expect(counts).toEqual({ passed: 2, failed: 1, skipped: 2 });
    expect(out).toContain('FAILED x.test.mjs > fails');
    expect(out).toContain('what led to it');
    expect(out).toContain('expected 2 to be 3');
    expect(out).toContain('x.test.mjs > says more: seed 7 found it');
    expect(out).toContain('x.test.mjs > needs etcd [skipped: etcd is not installed] (2 tests)');
    expect(out).not.toContain('chatterchatter');
  });

  test('counts a file that does not load as a failure', () => {
    const { out, counts } = report('broken', `throw new Error('cannot be loaded');`);
    expect(counts).toEqual({ passed: 0, failed: 1, skipped: 0 });
    expect(out).toContain('cannot be loaded');
  });
});
