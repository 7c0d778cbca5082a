import { CHECKS } from '../../admin/admin-needs.ts';
import { invalid } from '../fields.ts';
import type { LiveTopic } from '../json/history.ts';
import { type Route, slotOf, untilClosed } from '../route.ts';
import { onlyThese, type Target, text } from '../targets.ts';
import { LIVE_TOPICS } from './live-hub.ts';

/** Live data: it also says that the masters have no leader, so root may look while they have none. */
export const LIVE_ROUTES: readonly Route[] = [
  {
    ...{ method: 'GET', path: '/v1/cluster/live' },
    async handle({ backend, live, waits }, { target, fields, principal }) {
      backend.check(principal, CHECKS, 'live');
      onlyThese(target.query, ['topics']);
      fields.end();
      const topics = topicsOf(target.query);
      const giveSlot = slotOf({ waits });
      const events = live.events(topics, () => backend.check(principal, CHECKS));
      return { status: 200, body: undefined, events: untilClosed(events, giveSlot), undelivered: giveSlot };
    },
  },
];

function topicsOf(query: Target['query']): readonly LiveTopic[] {
  const asked = query.get('topics');
  const names = asked === undefined ? [] : [...new Set(text(asked, 'topics').split(','))];
  const topics = names.flatMap((name) => LIVE_TOPICS.find((topic) => topic === name) ?? []);
  if (topics.length > 0 && topics.length === names.length) return topics;
  throw invalid(`topics: expected one or more of ${LIVE_TOPICS.join(',')}, with commas between them`);
}
