import {
  checkAppliedOnce,
  checkLinearizable,
  createAppendModel,
  type Finding,
  type HistoryRecord,
} from '../../checkers/index.ts';
import type { AuditedEvent, Round } from './evidence.ts';
import { type Asked, askedOf, inOrder, recordOf } from './records.ts';
import { findingOf, violations } from './verdicts.ts';

/**
 * Appends took effect once, in an order that explains what their clients observed. The list is the history of its key.
 */
export function judgeLists(round: Round): readonly Finding[] {
  const asked = askedOf(round, 'lists');
  const records = inOrder(asked.flatMap((each) => withList(each, round.events) ?? []));
  return [
    ...violations('lists: applied once', checkAppliedOnce(records)),
    ...findingOf('lists', checkLinearizable(createAppendModel(), records)),
  ];
}

/** A read of the key returned its history up to the revision of the read. */
function withList(asked: Asked, events: readonly AuditedEvent[]): HistoryRecord | undefined {
  const record = recordOf(asked);
  if (record === undefined || record.op !== 'get') return record;
  const upTo = asked.a?.modRevision ?? 0;
  const out = events.flatMap(({ key, revision, value }) =>
    key === record.k && revision <= upTo && value !== null ? [value] : [],
  );
  return { ...record, out };
}
