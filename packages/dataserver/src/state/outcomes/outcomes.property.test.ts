import type { PartResult } from '@remora/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Outcome } from './outcome-codec.ts';
import { type LoadedPage, type Loan, Outcomes } from './outcomes.ts';

/** Two ranges, each on two nodes: what the log says is done on both, checkpoints and restarts on one. */
type Step =
  | {
      readonly do: 'remember';
      readonly range: Side;
      readonly id: string;
      readonly aheadMs: number;
      readonly part: number;
    }
  | { readonly do: 'pass'; readonly range: Side; readonly ms: number }
  | { readonly do: 'split' }
  /** `first`: which of the two is staged first. */
  | { readonly do: 'checkpoint' | 'restart'; readonly node: 0 | 1; readonly first: Side };
type Side = 'own' | 'other';

const IDS = ['p', 'q', 'r'];
const side = fc.constantFrom<Side>('own', 'other');
const node = fc.constantFrom<0 | 1>(0, 1);
const steps = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant('remember' as const),
      range: side,
      id: fc.constantFrom(...IDS),
      aheadMs: fc.integer({ min: 0, max: 40 }),
      part: fc.integer({ min: 0, max: 3 }),
    }),
    fc.record({ do: fc.constant('pass' as const), range: side, ms: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ do: fc.constant('split' as const) }),
    fc.record({ do: fc.constantFrom('checkpoint' as const, 'restart' as const), node, first: side }),
  ),
  { minLength: 8, maxLength: 30, size: 'max' },
);

/** What a range had of a transaction; part 0: of another command. */
function outcomeOf(part: number): Outcome {
  if (part === 0) return { ok: true, revision: 7, result: { type: 'noop' } };
  const commit = { type: 'commit', revision: 7, branches: [0] } as const;
  const results: readonly PartResult[] = [
    { number: part, key: Buffer.from([part]), result: { type: 'put', prev: undefined } },
  ];
  return { ok: true, revision: 7, result: { type: 'txnPart', txnId: 't', commit, results } };
}

/** What a range remembers on one node. */
class Memory {
  outcomes = new Outcomes();
  rows = new Map<number, Uint8Array>();
  #loan: Loan | undefined;

  flush(lender: Memory): void {
    this.outcomes.flush({
      put: (page, bytes) => this.rows.set(page, bytes),
      copy: (page, of) => {
        const row = lender.rows.get(of.page);
        if (row !== undefined) this.rows.set(page, row);
        return row !== undefined;
      },
      delete: (page) => this.rows.delete(page),
      borrow: (loan) => {
        this.#loan = loan;
      },
    });
  }

  load(lender: Memory): void {
    const pages: LoadedPage[] = [...this.rows].map(([number, bytes]) => ({ number, bytes }));
    for (const { number, of } of this.#loan?.pages ?? []) {
      const bytes = lender.rows.get(of);
      if (bytes === undefined) throw new Error(`page ${of} is lent, and gone`);
      pages.push({ number, bytes, copyOf: { rangeId: 1, page: of } });
    }
    this.outcomes = new Outcomes();
    this.outcomes.load(pages.sort((a, b) => a.number - b.number));
  }
}

class Node implements Record<Side, Memory> {
  own = new Memory();
  other = new Memory();
  /** Whether the other range takes part in checkpoints: a child does behind the one that has its split. */
  #takesPart = true;

  split(): void {
    this.#settle();
    this.other = new Memory();
    this.other.outcomes = this.own.outcomes.fork(1);
    this.other.flush(this.own);
    this.#takesPart = false;
  }

  checkpoint(first: Side): void {
    const order = first === 'own' ? [this.own, this.other] : [this.other, this.own];
    for (const memory of order) if (memory === this.own || this.#takesPart) memory.flush(this.own);
    this.#settle();
  }

  /** The log of a child goes on behind the checkpoint that has the split. */
  act(range: Side): Outcomes {
    if (range === 'other' && !this.#takesPart) this.checkpoint('own');
    return this[range].outcomes;
  }

  #settle(): void {
    if (!this.#takesPart) this.own.outcomes.settled();
    this.#takesPart = true;
  }

  /** Right behind a checkpoint. */
  restart(first: Side): void {
    this.checkpoint(first);
    this.own.load(this.own);
    this.other.load(this.own);
  }
}

interface World {
  readonly nodes: readonly [Node, Node];
  readonly times: Record<Side, number>;
}

function take({ nodes, times }: World, step: Step): void {
  switch (step.do) {
    case 'remember':
      for (const on of nodes) {
        const deadlineMs = times[step.range] + step.aheadMs;
        on.act(step.range).remember({ requestId: step.id, deadlineMs, outcome: outcomeOf(step.part) }, 10);
      }
      break;
    case 'pass':
      times[step.range] += step.ms;
      for (const on of nodes) on.act(step.range).expire(times[step.range]);
      break;
    case 'split':
      times.other = times.own;
      for (const on of nodes) on.split();
      break;
    default:
      nodes[step.node][step.do](step.first);
  }
}

function seen({ outcomes }: Memory, timeMs: number): unknown {
  return [IDS.map((id) => outcomes.find(id, timeMs)), [...outcomes.askable(timeMs)]];
}

function world(): World {
  return { nodes: [new Node(), new Node()], times: { own: 1, other: 1 } };
}

test('whatever nodes have forgotten, and when they wrote it down, apply sees the same on all, behind splits and merges too', () => {
  fc.assert(
    fc.property(steps, (given) => {
      const all = world();
      for (const step of given) {
        take(all, step);
        const [one, other] = all.nodes;
        expect(seen(one.own, all.times.own)).toEqual(seen(other.own, all.times.own));
      }
      const { own, other } = all.times;
      for (const memory of all.nodes) memory.own.outcomes.unite(memory.other.outcomes, { ownMs: own, otherMs: other });
      const [first, second] = all.nodes.map((memory) => seen(memory.own, Math.max(own, other)));
      expect(first).toEqual(second);
    }),
    { numRuns: 600, seed: 1 },
  );
});
