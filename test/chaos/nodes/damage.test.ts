import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { damageEngine, damageEngineLog, damageLog } from './damage.ts';

const FRAME = Buffer.from([0xf7, 0x52, 0x4d, 0xa1, ...Array.from({ length: 60 }, () => 1)]);

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-damage-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** A node that does not run, with these files in its data directory. */
function nodeWith(files: Readonly<Record<string, Buffer>>) {
  const dataDir = join(dir, 'n1');
  for (const folder of ['log', 'engine']) mkdirSync(join(dataDir, folder), { recursive: true });
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(dataDir, name), bytes);
  return { name: 'n1', dataDir, logPath: join(dir, 'n1.log') };
}

function filesOf({ dataDir }: { readonly dataDir: string }): ReadonlyMap<string, Buffer> {
  const names = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.'));
  return new Map(names.map((name) => [name, readFileSync(join(dataDir, name))]));
}

function bitsBetween(a: ReadonlyMap<string, Buffer>, b: ReadonlyMap<string, Buffer>): Record<string, number> {
  const bits: Record<string, number> = {};
  for (const [name, bytes] of a) {
    const other = b.get(name) ?? Buffer.alloc(0);
    const turned = bytes.map((byte, i) => (byte ^ (other[i] ?? ~byte)).toString(2).replaceAll('0', '').length);
    bits[name] = turned.reduce((sum, count) => sum + count, 0);
  }
  return bits;
}

const LEVEL_LOG = Buffer.alloc(10_000, 7);

describe('what is damaged is mended byte by byte:', () => {
  test.each([
    {
      name: 'the log, in its newest segment with writes behind the damage',
      files: { 'log/1.log': Buffer.concat([FRAME, FRAME, FRAME]), 'log/2.log': Buffer.concat([FRAME, FRAME]) },
      damage: damageLog,
      turned: { 'log/1.log': 1, 'log/2.log': 0 },
    },
    {
      name: 'the tables of the engine, each',
      files: { 'engine/1.ldb': LEVEL_LOG, 'engine/2.ldb': LEVEL_LOG, 'engine/3.log': LEVEL_LOG },
      damage: damageEngine,
      turned: { 'engine/1.ldb': 1, 'engine/2.ldb': 1, 'engine/3.log': 0 },
    },
    {
      name: 'the log of the engine, where it is longest',
      files: { 'engine/1.log': LEVEL_LOG, 'engine/2.log': LEVEL_LOG.subarray(1), 'engine/3.ldb': LEVEL_LOG },
      damage: damageEngineLog,
      turned: { 'engine/1.log': 1, 'engine/2.log': 0, 'engine/3.ldb': 0 },
    },
  ])('$name', ({ files, damage, turned }) => {
    const node = nodeWith(files);
    const before = filesOf(node);
    const mend = damage(node);
    expect(bitsBetween(before, filesOf(node))).toEqual(turned);
    mend?.();
    expect(filesOf(node)).toEqual(before);
  });

  test('the log of the engine, also when a start removed it', () => {
    const node = nodeWith({ 'engine/1.log': LEVEL_LOG });
    const before = filesOf(node);
    const mend = damageEngineLog(node);
    rmSync(join(node.dataDir, 'engine/1.log'));
    writeFileSync(join(node.dataDir, 'engine/2.ldb'), LEVEL_LOG);
    mend?.();
    expect(filesOf(node)).toEqual(before);
  });

  test('but for a table that a start removed', () => {
    const node = nodeWith({ 'engine/1.ldb': LEVEL_LOG, 'engine/2.ldb': LEVEL_LOG });
    const mend = damageEngine(node);
    rmSync(join(node.dataDir, 'engine/1.ldb'));
    mend?.();
    expect([...filesOf(node)]).toEqual([['engine/2.ldb', LEVEL_LOG]]);
  });
});

test.each([
  { name: 'two frames only', files: { 'log/1.log': Buffer.concat([FRAME, FRAME]) }, damage: damageLog },
  { name: 'no table', files: { 'engine/1.log': LEVEL_LOG }, damage: damageEngine },
  { name: 'hardly anything in the log of the engine', files: { 'engine/1.log': FRAME }, damage: damageEngineLog },
])('$name: it is left alone', ({ files, damage }) => {
  const node = nodeWith(files);
  const before = filesOf(node);
  expect(damage(node)).toBeUndefined();
  expect(filesOf(node)).toEqual(before);
});
