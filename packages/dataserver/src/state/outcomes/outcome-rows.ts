/** The pages of a range's remembered outcomes, as rows of the engine. */
import { assert, type Engine } from '@remora/base';
import { type Row, schema, storedRow } from '@remora/protocol';
import { outcomePageKey, outcomePagesSpan, readUint64 } from '../keys.ts';
import type { LoadedPage, Loan, Outcomes } from './outcomes.ts';

/** The page number of a loan's row; pages are numbered from 1. */
const LOAN = 0;
const { field, list, struct, uint } = schema;

const LOAN_ROW: Row<Loan> = storedRow(
  'a loan of outcomes',
  struct('loan of outcomes', {
    rangeId: field(uint, 'The range that lends.'),
    pages: field(
      list(
        struct('lent page', {
          number: field(uint, 'The number of the page here.'),
          of: field(uint, 'Its number at the lender.'),
        }),
      ),
      'The lent pages.',
    ),
  }),
  { 1: 2 },
);

export function loadOutcomes(engine: Pick<Engine, 'scanResident' | 'get'>, rangeId: number, outcomes: Outcomes): void {
  const rows = engine.scanResident(outcomePagesSpan(rangeId));
  const numbered = rows.map(({ key, value }) => ({ number: readUint64(Buffer.from(key), 10), bytes: value }));
  const pages = numbered.filter(({ number }) => number !== LOAN);
  const loan = numbered.find(({ number }) => number === LOAN);
  const borrowed = loan === undefined ? [] : borrowedPages(engine, LOAN_ROW.decode(loan.bytes));
  outcomes.load([...pages, ...borrowed].sort((a, b) => a.number - b.number));
}

/** Reads pages that the lending range stores; they must be there (O6 of the outcomes). */
function borrowedPages(engine: Pick<Engine, 'get'>, { rangeId, pages }: Loan): readonly LoadedPage[] {
  return pages.map(({ number, of }) => {
    const bytes = engine.get(outcomePageKey(rangeId, of));
    assert(bytes !== undefined, `O6: range ${rangeId} keeps page ${of} of its outcomes as long as it is lent`);
    return { number, bytes, copyOf: { rangeId, page: of } };
  });
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
    borrow: (loan) => {
      if (loan === undefined) engine.delete(outcomePageKey(rangeId, LOAN));
      else engine.put(outcomePageKey(rangeId, LOAN), LOAN_ROW.encode(loan));
    },
  });
}
