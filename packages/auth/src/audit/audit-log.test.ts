import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import type { AuditEvent } from './audit.ts';
import { AuditLog, QUEUE_BYTES_MAX } from './audit-log.ts';

const EVENT: AuditEvent = {
  ...{ action: 'put', decision: 'denied', targets: ['write the key "a"'], requestId: 'r1' },
  principal: { name: 'ann', method: 'token', door: 'pipe', address: '10.0.0.9' },
  reason: 'the user "ann" may not write the key "a"',
};

/** A disk whose writes end when a test says so. */
class Disk {
  text = '';
  isHanging = false;
  isFull = false;
  reopened = 0;
  #end: () => void = () => {};

  async append(text: string): Promise<void> {
    if (this.isHanging) await new Promise<void>((resolve) => (this.#end = resolve));
    if (this.isFull) throw new Error('ENOSPC');
    this.text += text;
  }

  goOn(): void {
    this.isHanging = false;
    this.#end();
  }

  reopen(): void {
    this.reopened++;
  }

  async close(): Promise<void> {}

  get lines(): readonly Record<string, unknown>[] {
    return this.text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }
}

function bed() {
  const clock = new ManualClock();
  const disk = new Disk();
  const said: string[] = [];
  const say = (_fields: object, message: string) => void said.push(message);
  const timeText = (wallMs: number) => new Date(wallMs).toISOString();
  const log = new AuditLog({ clock, timeText, sink: disk, writes: false, logger: { info: say, warn: say } });
  return { clock, disk, log, said };
}

const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

test('an event is one line of JSON, with who asked, from where, for what, and the decision', async () => {
  const { disk, log } = bed();
  log.record(EVENT);
  log.record({ action: 'logIn', decision: 'failed', principal: undefined });
  await turns();
  expect(disk.lines).toEqual([
    {
      ...{ time: expect.stringMatching(/^\d{4}-.*Z$/), principal: 'ann', method: 'token' },
      ...{ address: '10.0.0.9', door: 'pipe', action: 'put', decision: 'denied' },
      ...{ targets: ['write the key "a"'], reason: 'the user "ann" may not write the key "a"', requestId: 'r1' },
    },
    expect.objectContaining({ principal: null, method: 'none', address: null, action: 'logIn', decision: 'failed' }),
  ]);
});

test('names of others cannot forge a line, act on a terminal, or make a line long (AL5)', async () => {
  const { disk, log } = bed();
  const name = '\n{"decision":"allowed"}\u202e\u001b[2J';
  log.record({ ...EVENT, principal: { name, method: 'password' }, reason: 'x'.repeat(9_000) });
  log.record({ ...EVENT, principal: { name: 'n'.repeat(9_000), method: 'password' }, requestId: 'r'.repeat(9_000) });
  log.record({ ...EVENT, targets: Array.from({ length: 100 }, (_, i) => `${i}`.repeat(1_000)) });
  await turns();
  expect(disk.text.split('\n')).toHaveLength(4);
  for (const hidden of ['\u001b', '\u202e']) expect(disk.text).not.toContain(hidden);
  expect(disk.lines[0]?.principal).toBe(name);
  expect(String(disk.lines[0]?.reason).length).toBeLessThan(600);
  expect(JSON.stringify(disk.lines[1]).length).toBeLessThan(2_000);
  expect(disk.lines[2]?.targets).toHaveLength(17);
});

test('a disk that does not respond holds up nobody; what finds no room is counted, and said in its place (AL1, AL2)', async () => {
  const { disk, log } = bed();
  disk.isHanging = true;
  const big = { ...EVENT, targets: Array.from({ length: 16 }, () => 'k'.repeat(512)) };
  const all = Math.ceil(QUEUE_BYTES_MAX / 8_192) + 100;
  for (let i = 0; i < all; i++) log.record(big);
  const { dropped, queueBytes } = log.stats;
  expect(dropped).toBeGreaterThan(100);
  expect(queueBytes).toBeLessThanOrEqual(QUEUE_BYTES_MAX);
  disk.goOn();
  await turns();
  log.record(EVENT);
  await turns();
  const lines = disk.lines;
  expect(lines.length).toBe(all - dropped + 2);
  expect(lines.at(-2)).toMatchObject({ action: 'auditLinesDropped', lines: dropped });
  expect(lines.at(-1)).toMatchObject({ action: 'put' });
  expect(log.stats).toMatchObject({ lines: all - dropped + 1, queueBytes: 0 });
});

test('a write that failed is repeated, in order, and the failure is said once (AL4)', async () => {
  const { clock, disk, log, said } = bed();
  disk.isFull = true;
  log.record({ ...EVENT, action: 'first' });
  await turns();
  log.record({ ...EVENT, action: 'second' });
  clock.advance(3_000);
  await turns();
  expect([disk.text, said]).toEqual(['', ['the audit log cannot be written']]);
  disk.isFull = false;
  clock.advance(1_000);
  await turns();
  expect(disk.lines.map(({ action }) => action)).toEqual(['first', 'second']);
  expect(said).toEqual(['the audit log cannot be written', 'the audit log is written again']);
});

test('what waits is written before the log is closed, and nothing is recorded afterwards', async () => {
  const { disk, log } = bed();
  for (const action of ['a', 'b', 'c']) log.record({ ...EVENT, action });
  await log.close();
  log.record(EVENT);
  expect(disk.lines.map(({ action }) => action)).toEqual(['a', 'b', 'c']);
});
