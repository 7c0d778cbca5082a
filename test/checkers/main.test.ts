import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { type AnyRecord, type HistoryRecord, toJsonLines } from './index.ts';
import { main } from './main.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-histories-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function op(k: string, name: HistoryRecord['op'], t0: number, extra: Partial<HistoryRecord> = {}): HistoryRecord {
  return { c: 1, k, op: name, ok: true, t0, t1: t0 + 1, ...extra };
}

const good: readonly AnyRecord[] = [
  op('r', 'put', 0, { v: 'a' }),
  op('r', 'get', 2, { out: 'a' }),
  op('l', 'append', 0, { v: 'a' }),
  op('l', 'get', 2, { out: ['a'] }),
  op('empty', 'get', 2, { out: [] }),
  op('k', 'acquire', 0, { out: 1 }),
  op('k', 'release', 2, { v: 1 }),
  { c: 1, op: 'txn', ops: [{ k: 'x', op: 'get', out: [] }], ok: true, t0: 0, t1: 1 },
];

let files = 0;
async function check(history: readonly AnyRecord[] | string, ...options: readonly string[]) {
  const file = join(dir, `${files++}.jsonl`);
  writeFileSync(file, typeof history === 'string' ? history : toJsonLines(history));
  const lines: string[] = [];
  const code = await main([...options, file], (line) => lines.push(line.replace(`${file}: `, '')));
  return { code, lines };
}

describe('the command that checks histories', () => {
  it('judges each kind of object by its own model', async () => {
    expect(await check(good)).toEqual({
      code: 0,
      lines: [
        '2 operations on 1 of kind register: ok',
        '3 operations on 2 of kind list: ok',
        '2 operations on 1 of kind lock: ok',
        '1 transactions: ok',
      ],
    });
  });

  it.each<readonly [string, AnyRecord, string]>([
    ['register', op('r', 'get', 4, { out: null }), 'the register cannot have answered so'],
    ['list', op('l', 'get', 4, { out: ['a', 'a'] }), 'a was applied twice'],
    ['lock', op('k', 'check', 4, { v: 1, out: true }), 'the lock cannot have answered so'],
    [
      'transactions',
      { c: 1, op: 'txn', ops: [{ k: 'x', op: 'get', out: ['?'] }], ok: true, t0: 4, t1: 5 },
      'nobody appended it',
    ],
  ])('a violation of a %s ends with 1 and its explanation', async (_, record, explanation) => {
    const { code, lines } = await check([...good, record]);
    expect(code).toBe(1);
    expect(lines.filter((line) => line.endsWith(': ok'))).toHaveLength(3);
    expect(lines.join('\n')).toContain(explanation);
  });

  it('what cannot be decided ends with 2', async () => {
    const puts = Array.from({ length: 14 }, (_, i) => op('r', 'put', 0, { v: `${i}`, t1: 100 }));
    const reads = [op('r', 'get', 101, { out: '0' }), op('r', 'get', 103, { out: '1' })];
    const { code, lines } = await check([...puts, ...reads], '--states', '100');
    expect(code).toBe(2);
    expect(lines[0]).toBe('16 operations on 1 of kind register: undecided');
  });

  it.each([
    ['{}', 'line 1 is not a history record'],
    [toJsonLines([op('r', 'put', 0), op('r', 'append', 2)]), 'key "r" is used as a register and as a list'],
  ])('what is no history ends with 3: %s', async (text, message) => {
    const { code, lines } = await check(text);
    expect(code).toBe(3);
    expect(lines[0]).toContain(message);
  });

  it('runs from its source, in any folder', () => {
    const file = join(dir, 'run.jsonl');
    writeFileSync(file, toJsonLines(good));
    const program = fileURLToPath(new URL('main.mjs', import.meta.url));
    const { status, stdout } = spawnSync(process.execPath, [program, file], { cwd: dir, encoding: 'utf8' });
    expect(stdout).toContain('1 transactions: ok');
    expect(status).toBe(0);
  });

  it('a wrong command line ends with 3 and says how it is used', async () => {
    for (const argv of [[], ['--states', 'many', 'file'], ['--what']]) {
      const lines: string[] = [];
      expect(await main(argv, (line) => lines.push(line))).toBe(3);
      expect(lines.join('\n')).toContain('--states N');
    }
    const lines: string[] = [];
    expect(await main([join(dir, 'none')], (line) => lines.push(line))).toBe(3);
    expect(lines[0]).toContain('ENOENT');
  });
});
