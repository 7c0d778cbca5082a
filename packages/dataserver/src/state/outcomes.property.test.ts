import type { PartResult } from '@remora/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Outcome } from './outcome-codec.ts';
import { Outcomes } from './outcomes.ts';

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
  | { readonly do: 'checkpoint' | 'restart'; readonly range: Side; readonly node: 0 | 1 };
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
    fc.record({ do: fc.constantFrom('checkpoint' as const, 'restart' as const), range: side, node }),
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
  readonly #rows = new Map<number, Uint8Array>();

  /** That of a child that this range has from now on. */
  fork(): Memory {
    const child = new Memory();
    child.outcomes = this.outcomes.fork(1);
    return child;
  }

  checkpoint(): void {
    this.outcomes.flush({
      put: (page, bytes) => this.#rows.set(page, bytes),
      copy: () => false,
      delete: (page) => this.#rows.delete(page),
    });
  }

  restart(): void {
    this.checkpoint();
    this.outcomes = new Outcomes();
    this.outcomes.load([...this.#rows].sort(([a], [b]) => a - b).map(([number, bytes]) => ({ number, bytes })));
  }
}

interface World {
  readonly memories: readonly [Record<Side, Memory>, Record<Side, Memory>];
  readonly times: Record<Side, number>;
}

function take({ memories, times }: World, step: Step): void {
  switch (step.do) {
    case 'remember':
      for (const memory of memories) {
        const deadlineMs = times[step.range] + step.aheadMs;
        memory[step.range].outcomes.remember({ requestId: step.id, deadlineMs, outcome: outcomeOf(step.part) }, 10);
      }
      break;
    case 'pass':
      times[step.range] += step.ms;
      for (const memory of memories) memory[step.range].outcomes.expire(times[step.range]);
      break;
    case 'split':
      times.other = times.own;
      for (const memory of memories) memory.other = memory.own.fork();
      break;
    default:
      memories[step.node][step.range][step.do]();
  }
}

function seen({ outcomes }: Memory, timeMs: number): unknown {
  return [IDS.map((id) => outcomes.find(id, timeMs)), [...outcomes.askable(timeMs)]];
}

function world(): World {
  const memory = () => ({ own: new Memory(), other: new Memory() });
  return { memories: [memory(), memory()], times: { own: 1, other: 1 } };
}

test('whatever nodes have forgotten, and when they wrote it down, apply sees the same on all, behind splits and merges too', () => {
  fc.assert(
    fc.property(steps, (given) => {
      const all = world();
      for (const step of given) {
        take(all, step);
        const [one, other] = all.memories;
        expect(seen(one.own, all.times.own)).toEqual(seen(other.own, all.times.own));
      }
      const { own, other } = all.times;
      for (const memory of all.memories)
        memory.own.outcomes.unite(memory.other.outcomes, { ownMs: own, otherMs: other });
      const [first, second] = all.memories.map((memory) => seen(memory.own, Math.max(own, other)));
      expect(first).toEqual(second);
    }),
    { numRuns: 600, seed: 1 },
  );
});
