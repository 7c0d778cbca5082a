// The rules of design §4 and the traps that show in one core: each test is named after its rule, and has a mutation
// (../mutations) that it must notice.
import { describe, expect, test } from 'vitest';
import { makeCore, ofType, run, take, tickUntilCampaign } from '../../src/core/test-kit.ts';

describe('persistence', () => {
  test('design §4 ▸: no vote request leaves before the term and the own vote are on disk', () => {
    const core = makeCore();
    tickUntilCampaign(core);
    core.step({ type: 'preVoteResponse', from: 2, to: 1, term: 1, reject: false });
    const asked = take(core);
    expect(asked.readies[0]?.persist?.hardState).toMatchObject({ term: 1, vote: 1 });
    expect(ofType(asked.messages, 'vote')).toEqual([]);
    for (const mark of asked.marks) core.persisted(mark);
    expect(ofType(run(core), 'vote').map((m) => m.to)).toEqual([2, 3]);
  });

  test('design §4 ▸: no vote leaves before the term and the vote are on disk', () => {
    const core = makeCore();
    core.step({ type: 'vote', from: 2, to: 1, term: 1, lastIndex: 0, lastTerm: 0, force: false });
    const voted = take(core);
    expect(voted.readies[0]?.persist?.hardState).toMatchObject({ term: 1, vote: 2 });
    expect(voted.messages).toEqual([]);
    for (const mark of voted.marks) core.persisted(mark);
    expect(run(core)).toEqual([{ type: 'voteResponse', from: 1, to: 2, term: 1, reject: false }]);
  });
});
