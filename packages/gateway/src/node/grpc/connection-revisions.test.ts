import { expect, test } from 'vitest';
import { ConnectionRevisions } from './connection-revisions.ts';

test('a connection that is used is remembered, however many others come and go', () => {
  const revisions = new ConnectionRevisions(2);
  revisions.of('a').newest = 7;
  for (let i = 0; i < 10; i++) {
    revisions.of(`other ${i}`);
    expect(revisions.of('a').newest).toBe(7);
  }
});

test('a connection that makes no calls is forgotten behind enough others', () => {
  const revisions = new ConnectionRevisions(2);
  revisions.of('a').newest = 7;
  for (let i = 0; i < 4; i++) revisions.of(`other ${i}`);
  expect(revisions.of('a').newest).toBe(0);
});
