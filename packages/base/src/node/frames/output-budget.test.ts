import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../testing/manual-clock.ts';
import { OutputBudget } from './output-budget.ts';

function setUp() {
  const clock = new ManualClock();
  const logged: unknown[] = [];
  const budget = new OutputBudget({ bytesMax: 100, bytesPerAddressMax: 60 }, clock, {
    warn: (fields) => logged.push(fields),
  });
  const closed: string[] = [];
  const open = (address: string, name: string) => {
    const state = { bytes: 0 };
    const account = budget.open(address, { pendingBytes: () => state.bytes, close: () => closed.push(name) });
    return {
      holds(bytes: number): void {
        state.bytes = bytes;
        account.holds(bytes);
      },
      /** The socket takes what waits, without a word. */
      leaves(bytes: number): void {
        state.bytes -= bytes;
      },
      end: () => account.end(),
    };
  };
  return { clock, logged, budget, closed, open };
}

describe('a budget for output that is not read', () => {
  test('closes, of an address for which too much waits, the connection with the most (OB2)', () => {
    const { budget, closed, open } = setUp();
    const [small, large, other] = [open('10.0.0.1', 'small'), open('10.0.0.1', 'large'), open('10.0.0.2', 'other')];
    other.holds(35);
    large.holds(40);
    small.holds(20);
    expect(closed).toEqual([]);
    small.holds(25);
    expect(closed).toEqual(['large']);
    expect(budget.stats).toEqual({ unreadBytes: 60, closed: { unread_bytes: 0, address_unread_bytes: 1 } });
  });

  test('closes, when too much waits in all, a connection of the address for which the most waits (OB2)', () => {
    const { budget, closed, open } = setUp();
    const [a, b, c] = [open('10.0.0.1', 'a'), open('10.0.0.2', 'b'), open('10.0.0.2', 'c')];
    a.holds(48);
    b.holds(20);
    c.holds(30);
    expect(closed).toEqual([]);
    a.holds(49);
    b.holds(22);
    expect(closed).toEqual(['c']);
    expect(budget.stats).toMatchObject({ unreadBytes: 71, closed: { unread_bytes: 1 } });
  });

  test('closes nothing for what has left without a word (OB2)', () => {
    const { budget, closed, open } = setUp();
    const [reading, other] = [open('10.0.0.1', 'reading'), open('10.0.0.1', 'other')];
    for (let i = 0; i < 10; i++) {
      reading.holds(50);
      reading.leaves(45);
      other.holds(20);
      other.holds(5);
    }
    expect(closed).toEqual([]);
    expect(budget.stats.unreadBytes).toBe(10);
  });

  test('counts nothing of connections that are over or trusted (OB4)', () => {
    const { budget, closed, open } = setUp();
    const one = open('10.0.0.1', 'one');
    one.holds(50);
    one.end();
    one.holds(1_000);
    expect(budget.stats.unreadBytes).toBe(0);
    expect(closed).toEqual([]);
  });

  test('says what it closes once a minute for each reason (OB3)', () => {
    const { clock, logged, open } = setUp();
    for (let i = 0; i < 50; i++) open('10.0.0.1', 'x').holds(61);
    expect(logged).toEqual([
      expect.objectContaining({ reason: 'address_unread_bytes', address: '10.0.0.1', bytes: 61 }),
    ]);
    clock.advance(60_000);
    open('10.0.0.1', 'x').holds(61);
    expect(logged[1]).toMatchObject({ unlogged: 49 });
  });
});
