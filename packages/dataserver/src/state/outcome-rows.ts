/** The pages of what a range remembers of requests, as rows of the engine. */
import type { Engine } from '@remora/base';
import { outcomePageKey, outcomePagesSpan, readUint64 } from './keys.ts';
import type { Outcomes } from './outcomes.ts';

export function loadOutcomes(engine: Pick<Engine, 'scanResident'>, rangeId: number, outcomes: Outcomes): void {
  const pages = engine.scanResident(outcomePagesSpan(rangeId));
  outcomes.load(pages.map(({ key, value }) => ({ number: readUint64(Buffer.from(key), 10), bytes: value })));
}

export function stageOutcomes(
  engine: Pick<Engine, 'get' | 'put' | 'delete'>,
  rangeId: number,
  outcomes: Outcomes,
): void {
  outcomes.flush({
    put: (page, bytes) => engine.put(outcomePageKey(rangeId, page), bytes),
    copy: (page, of) => {
      const row = engine.get(outcomePageKey(of.rangeId, of.page));
      if (row !== undefined) engine.put(outcomePageKey(rangeId, page), row);
      return row !== undefined;
    },
    delete: (page) => engine.delete(outcomePageKey(rangeId, page)),
  });
}
