import { expect, test } from 'vitest';
import { LeaseEndPace } from './lease-end-pace.ts';

class PaceBed {
  readonly pace = new LeaseEndPace();
  readonly log: string[] = [];
  readonly over: (() => void)[] = [];

  end(name: string, rows: number, go = (over: () => void): void => void this.over.push(over)): void {
    this.pace.add({
      rows: () => rows,
      go: (over) => {
        this.log.push(name);
        go(over);
      },
      refuse: ({ code }) => this.log.push(`${name} ${code}`),
    });
  }
}

test('ends of leases go in their order, so many keys and locks at a time, and each goes (EP1)', () => {
  const bed = new PaceBed();
  for (const name of ['a', 'b', 'c']) bed.end(name, 1_000);
  bed.end('d', 0);
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b'], 2]);
  bed.over.shift()?.();
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b', 'c'], 1]);
  for (const over of bed.over.splice(0)) over();
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b', 'c', 'd'], 0]);
});

test('ends of leases that are refused at once let the next ones go, however many there are', () => {
  const bed = new PaceBed();
  bed.end('a', 5_000);
  for (let i = 0; i < 20_001; i++) bed.end('b', 1_000, (over) => over());
  expect(bed.log).toEqual(['a', 'b RESOURCE_EXHAUSTED']);
  bed.over.shift()?.();
  expect([bed.log.length, bed.pace.waiting]).toEqual([20_002, 0]);
});
