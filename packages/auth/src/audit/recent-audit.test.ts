import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { type Audit, type AuditEvent, NO_AUDIT } from './audit.ts';
import { BYTES_MAX, PAGE_BYTES_MAX, RECORDS_MAX, RecentAudit } from './recent-audit.ts';

const EVENT: AuditEvent = {
  ...{ action: 'put', decision: 'denied', targets: ['write the key "a"'], reason: 'may not' },
  principal: { name: 'ann', method: 'token', door: 'pipe', address: '10.0.0.9' },
};
/** As long as an event can be. */
const LONG: AuditEvent = { ...EVENT, targets: Array.from({ length: 16 }, () => 'ä'.repeat(512)) };

function bed({ isOn = true, log = NO_AUDIT }: { readonly isOn?: boolean; readonly log?: Audit } = {}) {
  const clock = new ManualClock();
  const present = { isOn };
  const audit = new RecentAudit({ log, clock, isAuthenticating: () => present.isOn });
  const numbers = (before = 0, limit = 10) => audit.page(before, limit).records.map(({ number }) => number);
  return { audit, clock, present, numbers };
}

/** Of all pages. */
function numbersOf(audit: RecentAudit): readonly number[] {
  const numbers: number[] = [];
  for (let more = true; more; ) {
    const page = audit.page(numbers.at(-1) ?? 0, RECORDS_MAX);
    numbers.push(...page.records.map(({ number }) => number));
    more = page.more;
  }
  return numbers;
}

describe('records are kept', () => {
  test('with who asked, from where, for what, and the decision', () => {
    const { audit, clock } = bed();
    clock.advance(1_500);
    audit.record(EVENT);
    audit.record({ action: 'logIn', decision: 'failed', principal: undefined });
    const from = { principal: 'ann', method: 'token', address: '10.0.0.9', door: 'pipe' };
    const what = { action: 'put', decision: 'denied', targets: ['write the key "a"'], reason: 'may not' };
    expect(audit.page(0, 10)).toEqual({
      records: [
        { number: 2, timeMs: clock.wallMs(), method: 'none', action: 'logIn', decision: 'failed', targets: [] },
        { number: 1, timeMs: clock.wallMs(), ...from, ...what },
      ],
      more: false,
    });
  });

  test('while authentication is on, or with an audit log, which gets each event (RA1, RA4)', () => {
    const { audit, present } = bed({ isOn: false });
    audit.record(EVENT);
    expect([audit.isOn, audit.page(0, 10).records]).toEqual([false, []]);
    present.isOn = true;
    audit.record(EVENT);
    expect([audit.isOn, audit.page(0, 10).records.length]).toEqual([true, 1]);

    const seen: AuditEvent[] = [];
    const log: Audit = { isOn: true, writes: true, record: (event) => void seen.push(event) };
    const { audit: both } = bed({ isOn: false, log });
    both.record(EVENT);
    expect([both.isOn, both.writes, seen, both.page(0, 10).records.length]).toEqual([true, true, [EVENT], 1]);
  });

  test('in bounded number, the newest of them (RA2)', () => {
    const { audit } = bed();
    for (let i = 0; i < RECORDS_MAX + 5; i++) audit.record(EVENT);
    const all = numbersOf(audit);
    expect([all.length, all[0], all.at(-1)]).toEqual([RECORDS_MAX, RECORDS_MAX + 5, 6]);
  });

  test('in bounded memory, the newest of them (RA2)', () => {
    const { audit } = bed();
    for (let i = 0; i < RECORDS_MAX; i++) audit.record(LONG);
    const each = 16 * 1_024;
    const count = numbersOf(audit).length;
    expect(count).toBeLessThanOrEqual(BYTES_MAX / each);
    expect(count).toBeGreaterThan(BYTES_MAX / each / 2);
    expect(audit.page(0, 1).records[0]?.number).toBe(RECORDS_MAX);
  });
});

describe('a page', () => {
  test('continues below a number, also when records were added meanwhile (RA3)', () => {
    const { audit, numbers } = bed();
    for (let i = 0; i < 5; i++) audit.record(EVENT);
    expect(numbers(0, 2)).toEqual([5, 4]);
    audit.record(EVENT);
    expect(numbers(4, 2)).toEqual([3, 2]);
    expect(audit.page(2, 2)).toMatchObject({ records: [{ number: 1 }], more: false });
    expect(audit.page(4, 2).more).toBe(true);
  });

  test('is short if its records are long, and never empty while there are some', () => {
    const { audit } = bed();
    for (let i = 0; i < 100; i++) audit.record(LONG);
    const { records, more } = audit.page(0, 100);
    expect(more).toBe(true);
    expect(records.length).toBeLessThanOrEqual(PAGE_BYTES_MAX / (16 * 1_024));
    expect(records.length).toBeGreaterThan(0);
  });
});
