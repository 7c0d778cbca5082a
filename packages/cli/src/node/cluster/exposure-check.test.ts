import { FIRST_AUTH, KnownAuth } from '@remora/auth';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { ExposureCheck, type ExposureCheckDeps } from './exposure-check.ts';

const JOINS = { join: [{ host: 'h', port: 1 }] };

function bed(options: Partial<ExposureCheckDeps['options']>, isNew = true) {
  const clock = new ManualClock();
  const known = new KnownAuth({ clock, hurry: () => {} });
  const refused: string[] = [];
  const warnings: string[] = [];
  const check = new ExposureCheck({
    options: { ...listening('10.0.0.1'), insecure: [], join: [], name: 'n1', ...options },
    ...{ known, isNew, isFounded: () => true },
    logger: { warn: (_fields, message) => void warnings.push(message) },
    onRefused: ({ message }) => void refused.push(message),
  });
  const learn = (revision: number, enabled: boolean) => known.learn({ ...FIRST_AUTH, revision, enabled }, 0);
  const conditions = () => [...check.conditions(1)].map(({ name }) => name);
  return { check, learn, refused, warnings, conditions };
}

test('a node does not join a cluster without authentication beyond loopback, unless it is allowed (EX1)', () => {
  const { learn, refused } = bed(JOINS);
  learn(1, false);
  expect(refused).toEqual([expect.stringContaining('--insecure anonymous')]);
  const others = [bed(JOINS, false), bed({}), bed({ ...JOINS, insecure: ['anonymous'] })];
  for (const other of others) {
    other.learn(1, false);
    expect(other.refused).toEqual([]);
  }
});

test('a node goes on when authentication is switched off, and says so until it is on again (EX2)', () => {
  const { learn, refused, warnings, conditions } = bed(JOINS);
  learn(2, true);
  expect([conditions(), warnings]).toEqual([[], []]);
  learn(3, false);
  learn(4, false);
  expect([conditions(), refused]).toEqual([['authenticationOff'], []]);
  expect(warnings).toEqual(['authentication is off: every client may do everything']);
  learn(5, true);
  expect(conditions()).toEqual([]);
});

test('what an operator allows is no warning, and loopback is open to this machine only', () => {
  const allowed = bed({ insecure: ['anonymous'] });
  allowed.learn(1, false);
  expect(allowed.conditions()).toEqual(['anonymousAllowed']);
  const local = bed(listening('127.0.0.1'));
  local.learn(1, false);
  expect([local.conditions(), local.warnings]).toEqual([[], []]);
});

function listening(host: string) {
  return { clientListen: { host, port: 7480 }, httpListen: { host, port: 7482 } };
}
