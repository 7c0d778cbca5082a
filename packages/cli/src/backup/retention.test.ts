import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BackupEncoder } from '@remora/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { backupName, deleteExpired, expiredBackups, type NamedBackup, type Retention } from './retention.ts';

const DAY = 24 * 3_600_000;
const NOW = Date.UTC(2026, 10, 30);

/** Taken so many days ago; revision 1,000 minus the days. */
function backup(daysAgo: number, since?: number): NamedBackup {
  const header = { clusterId: 'c', revision: 1_000 - daysAgo, pairs: 0, takenAtMs: NOW - daysAgo * DAY, program: '1' };
  return { name: `${daysAgo}`, header: since === undefined ? header : { ...header, since: 1_000 - since } };
}

const DAILY = [0, 1, 2, 3, 4].map((days) => backup(days));
const rows: readonly {
  readonly name: string;
  readonly given: readonly NamedBackup[];
  readonly retention: Retention;
  readonly expired: readonly string[];
}[] = [
  { name: 'without limits nothing', given: DAILY, retention: {}, expired: [] },
  { name: 'by count', given: DAILY, retention: { keep: 3 }, expired: ['3', '4'] },
  { name: 'by age', given: DAILY, retention: { keepForMs: 2 * DAY }, expired: ['3', '4'] },
  { name: 'what neither keeps (RE4)', given: DAILY, retention: { keep: 2, keepForMs: 3 * DAY }, expired: ['4'] },
  { name: 'not the newest (RE2)', given: [backup(9), backup(10)], retention: { keepForMs: DAY }, expired: ['10'] },
  {
    name: 'not what a kept one continues (RE3)',
    given: [backup(0, 1), backup(1, 3), backup(2), backup(3), backup(4)],
    retention: { keep: 1 },
    expired: ['2', '4'],
  },
  {
    name: 'one of two that have the revision that a kept one continues (RE3)',
    given: [backup(1, 1), backup(1), { ...backup(1), name: 'same' }],
    retention: { keep: 1 },
    expired: ['same'],
  },
];
test.each(rows)('deleted is $name', ({ given, retention, expired }) => {
  expect(expiredBackups(given, retention, NOW)).toEqual(expired);
});

describe('in a directory', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'remora-retention-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  function write(name: string, clusterId = 'c'): void {
    const encoder = new BackupEncoder();
    const header = { clusterId, revision: 5, pairs: 0, takenAtMs: NOW, program: '1' };
    writeFileSync(join(dir, name), Buffer.concat([encoder.begin(header), encoder.end()]));
  }

  test('only backups of this cluster with names of this program are deleted (RE1)', async () => {
    const [old, older, newest] = [2, 3, 1].map((days) => backupName(NOW - days * DAY, false));
    for (const name of [old, older, newest]) write(name ?? '');
    const others = ['nightly.remora', backupName(NOW - 9 * DAY, true), backupName(NOW - 8 * DAY, false)];
    write(others[0] ?? '');
    write(others[1] ?? '', 'another');
    writeFileSync(join(dir, others[2] ?? ''), 'damaged');
    const [left, running] = [
      'remora-20261101T000000000Z.remora.unfinished',
      'remora-20261130T000000000Z.remora.unfinished',
    ];
    for (const name of [left, running]) writeFileSync(join(dir, name), '');
    utimesSync(join(dir, left), NOW / 1_000 - 100_000, NOW / 1_000 - 100_000);
    utimesSync(join(dir, running), NOW / 1_000, NOW / 1_000);
    const deleted = await deleteExpired(dir, { clusterId: 'c', retention: { keep: 1 }, nowMs: NOW });
    expect(deleted).toEqual([old, older]);
    expect(readdirSync(dir).sort()).toEqual([newest, running, ...others].sort());
  });
});
