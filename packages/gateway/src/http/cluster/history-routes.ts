import { compareBytes } from '@remora/base';
import { HEAT_COLUMNS_MAX, HISTORY_MINUTES, type RangeDescriptor } from '@remora/protocol';
import { invalid } from '../fields.ts';
import type { HeatMeasure } from '../json/history.ts';
import { type Target, text, wholeNumberIn } from '../targets.ts';
import { type ClusterRoute, looks, routingKey } from './cluster-routes.ts';
import { activityJson, heatJson } from './history-json.ts';

const HOUR = 60;
const MEASURES = new Set<HeatMeasure>(['reads', 'writes', 'readBytes', 'writeBytes']);

/** What happened in the last hours. */
export const HISTORY_ROUTES: readonly ClusterRoute[] = [
  looks('/v1/cluster/activity', 'activity', ['minutes'], async ({ api, info, query }) =>
    activityJson(await api.history.activity(minutesOf(query), info)),
  ),
  looks(
    '/v1/cluster/heat',
    'heat',
    ['minutes', 'columns', 'what', 'start', 'end'],
    async ({ api, backend, info, query }) => {
      const [what, minutes] = [measureOf(query), minutesOf(query)];
      const columns = wholeNumberIn(query, 'columns', { otherwise: HEAT_COLUMNS_MAX, min: 1, max: HEAT_COLUMNS_MAX });
      const [start, end] = [routingKey(query.get('start'), 'start'), routingKey(query.get('end'), 'end')];
      if (end.length > 0 && compareBytes(start, end) >= 0) throw invalid('end must lie behind start');
      const reply = await api.history.heat({ minutes, columns, measure: what, start, end }, info);
      return heatJson(reply, { what, end, ranges: rangesWithin(backend.view().ranges, start, end) });
    },
  ),
];

function minutesOf(query: Target['query']): number {
  return wholeNumberIn(query, 'minutes', { otherwise: HOUR, min: 1, max: HISTORY_MINUTES });
}

function measureOf(query: Target['query']): HeatMeasure {
  const asked = query.get('what');
  const what = asked === undefined ? 'reads' : text(asked, 'what');
  if (MEASURES.has(what as HeatMeasure)) return what as HeatMeasure;
  throw invalid(`what: expected one of ${[...MEASURES].join(', ')}`);
}

/** In the order of their keys. */
function rangesWithin(all: readonly RangeDescriptor[], start: Uint8Array, end: Uint8Array): readonly RangeDescriptor[] {
  return all
    .filter((range) => range.end.length === 0 || compareBytes(range.end, start) > 0)
    .filter((range) => end.length === 0 || compareBytes(range.start, end) < 0)
    .sort((a, b) => compareBytes(a.start, b.start));
}
