import { describe, expect, test } from 'vitest';
import { ELECTION_TICKS, HEARTBEAT_TICKS, makeCore } from '../../../../test/support/core/core-kit.ts';
import type { Role } from '../../../core/types.ts';
import { Campaigns } from './campaigns.ts';

/** As it is when it asks for the first time. */
const group = (role: Role = 'follower'): { role: Role } => ({ role });
/** Has it ask, and campaign if it may. */
function admit(campaigns: Campaigns, each: { role: Role }, tick: number): boolean {
  const admitted = campaigns.admit(each, tick);
  if (admitted) each.role = 'preCandidate';
  return admitted;
}

describe('campaigns', () => {
  test('no more than the limit are under way', () => {
    const campaigns = new Campaigns({ most: 2, lastsTicks: 10 });
    const groups = [group(), group(), group()];
    expect(groups.map((each) => admit(campaigns, each, 1))).toEqual([true, true, false]);
    expect(groups.map((each) => admit(campaigns, each, 2))).toEqual([true, false, true]); // C4
  });

  test.each<Role>(['leader', 'follower'])('one that ended as %s makes room', (role) => {
    const campaigns = new Campaigns({ most: 1, lastsTicks: 10 });
    const [first, second] = [group(), group()];
    admit(campaigns, first, 1);
    first.role = 'candidate';
    expect(admit(campaigns, second, 2)).toBe(false);
    first.role = role;
    expect(admit(campaigns, second, 3)).toBe(true);
  });

  test('one that cannot be settled gives its place up: others are not kept from theirs for ever', () => {
    const campaigns = new Campaigns({ most: 1, lastsTicks: 10 });
    const [stuck, second] = [group(), group()];
    admit(campaigns, stuck, 1);
    expect(admit(campaigns, second, 10)).toBe(false);
    expect(admit(campaigns, second, 11)).toBe(true);
    expect(admit(campaigns, stuck, 12)).toBe(false);
  });

  test('groups that have lost their majority, however many, do not keep one from its place that has one', () => {
    const campaigns = new Campaigns({ most: 8, lastsTicks: 18 });
    const dead = Array.from({ length: 400 }, (_, i) => ({ each: group(), asksAt: i % 18 }));
    const askAll = (tick: number): void => {
      for (const one of dead) if (one.asksAt <= tick) one.asksAt = tick + (admit(campaigns, one.each, tick) ? 27 : 4);
    };
    for (let tick = 0; tick < 2_000; tick++) askAll(tick);
    const alive = group();
    let asked = 1;
    for (let tick = 2_000; tick < 4_000; tick += 4, asked++) {
      for (let each = tick - 3; each <= tick; each++) askAll(each); // it is the last to ask
      if (admit(campaigns, alive, tick)) break;
    }
    expect(asked).toBe(1);
    // And what is left over of the places is theirs.
    expect(dead.filter(({ each }) => admit(campaigns, each, 10_000)).length).toBe(4);
  });

  test('a replica that is turned away waits a heartbeat interval, then campaigns when it is let', () => {
    let asked = 0;
    const core = makeCore({ config: { admitsCampaign: () => ++asked > 2 } });
    for (let i = 0; i < 2 * ELECTION_TICKS && asked === 0; i++) core.tick();
    for (let i = 0; i < HEARTBEAT_TICKS - 1; i++) core.tick();
    expect([asked, core.role]).toEqual([1, 'follower']);
    core.tick();
    expect([asked, core.role]).toEqual([2, 'follower']);
    for (let i = 0; i < HEARTBEAT_TICKS; i++) core.tick();
    expect([asked, core.role]).toEqual([3, 'preCandidate']);
  });
});
