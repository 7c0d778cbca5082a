import { expect, test } from 'vitest';
import { LeaseEndPace } from './lease-end-pace.ts';

interface End {
  readonly name: string;
  readonly rows: number;
  readonly isOverAtOnce: boolean;
}

class PaceBed {
  readonly log: string[] = [];
  readonly underWay: End[] = [];
  readonly pace: LeaseEndPace<End> = new LeaseEndPace<End>({
    rows: ({ rows }) => rows,
    go: (end) => {
      this.log.push(end.name);
      if (end.isOverAtOnce) this.pace.over(end);
      else this.underWay.push(end);
    },
    refuse: ({ name }, { code }) => void this.log.push(`${name} ${code}`),
  });

  end(name: string, rows: number, isOverAtOnce = false): void {
    this.pace.add({ name, rows, isOverAtOnce });
  }

  over(): void {
    const end = this.underWay.shift();
    if (end !== undefined) this.pace.over(end);
  }
}

test('ends of leases go in their order, so many keys and locks at a time, and each goes (EP1)', () => {
  const bed = new PaceBed();
  for (const name of ['a', 'b', 'c']) bed.end(name, 250);
  bed.end('d', 0);
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b'], 2]);
  bed.over();
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b', 'c'], 1]);
  for (let left = bed.underWay.length; left > 0; left--) bed.over();
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b', 'c', 'd'], 0]);
});

test('ends of leases that are refused at once let the next ones go, however many there are', () => {
  const bed = new PaceBed();
  bed.end('a', 5_000);
  for (let i = 0; i < 20_001; i++) bed.end('b', 250, true);
  expect(bed.log).toEqual(['a', 'b RESOURCE_EXHAUSTED']);
  bed.over();
  expect([bed.log.length, bed.pace.waiting]).toEqual([20_002, 0]);
});

test('an end that is over twice makes room once', () => {
  const bed = new PaceBed();
  for (const name of ['a', 'b', 'c', 'd']) bed.end(name, 375);
  const [first] = bed.underWay;
  bed.over();
  if (first !== undefined) bed.pace.over(first);
  expect([bed.log, bed.pace.waiting]).toEqual([['a', 'b', 'c'], 1]);
});
