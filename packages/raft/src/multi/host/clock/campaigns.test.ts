import { describe, expect, test } from 'vitest';
import { ELECTION_TICKS, HEARTBEAT_TICKS, makeCore } from '../../../core/test-kit.ts';
import type { Role } from '../../../core/types.ts';
import { Campaigns } from './campaigns.ts';

const group = (role: Role = 'preCandidate'): { role: Role } => ({ role });

describe('campaigns', () => {
  test('no more than the limit are under way', () => {
    const campaigns = new Campaigns({ most: 2, lastsTicks: 10 });
    const groups = [group(), group(), group()];
    expect(groups.map((each) => campaigns.admit(each, 1))).toEqual([true, true, false]);
    expect(groups.map((each) => campaigns.admit(each, 2))).toEqual([true, true, false]);
  });

  test.each<Role>(['leader', 'follower'])('one that ended as %s makes room', (role) => {
    const campaigns = new Campaigns({ most: 1, lastsTicks: 10 });
    const [first, second] = [group(), group()];
    campaigns.admit(first, 1);
    first.role = 'candidate';
    expect(campaigns.admit(second, 2)).toBe(false);
    first.role = role;
    expect(campaigns.admit(second, 3)).toBe(true);
  });

  test('one that cannot be settled gives its place up: others are not kept from theirs for ever', () => {
    const campaigns = new Campaigns({ most: 1, lastsTicks: 10 });
    const [stuck, second] = [group(), group()];
    campaigns.admit(stuck, 1);
    expect(campaigns.admit(second, 10)).toBe(false);
    expect(campaigns.admit(second, 11)).toBe(true);
    expect(campaigns.admit(stuck, 12)).toBe(false);
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
