/** Random transactions. */
import type { Draw } from './draw.ts';
import type { Comparison, Operation, PutStep, TxnStep } from './requests.ts';
import {
  drawDelete,
  drawKey,
  drawLease,
  drawPut,
  drawRange,
  drawRevision,
  drawSpan,
  drawValue,
  HUGE,
} from './steps.ts';

const DEPTH_MAX = 3;
const OPERATIONS_MAX = 4;
/** As etcd's default. */
const OPERATIONS_ALLOWED = 128;

const put = (key: string): PutStep => ({ do: 'put', key, value: 'x' });
const txn = (...success: readonly Operation[]): TxnStep => ({ do: 'txn', compare: [], success, failure: [] });
const many = (count: number, first = 0): readonly Operation[] =>
  Array.from({ length: count }, (_, i) => put(`k/${first + i}`));
const nested = (depth: number): TxnStep => (depth === 0 ? txn(put('m')) : txn(nested(depth - 1)));

export const WRONG_TXNS: readonly TxnStep[] = [
  txn(),
  txn({ do: 'nothing' }),
  txn(...many(OPERATIONS_ALLOWED + 1)),
  txn(...many(OPERATIONS_ALLOWED - 1), txn(put('a'))),
  txn(...many(OPERATIONS_ALLOWED), txn(put('a'))),
  txn(...many(64), txn(...many(63, 64))),
  txn(...many(64), txn(...many(65, 64))),
  txn(put(''), { do: 'nothing' }),
  { ...txn(put('a')), compare: [{ key: '', result: 0, target: 0 }] },
  { ...txn(put('a')), compare: [{ key: 'a', result: 9, target: 0 }] },
  { ...txn(put('a')), compare: [{ key: 'a', result: 0, target: 9 }] },
  nested(5),
  nested(12),
  nested(18),
];

/** Most have keys that are put and keys that are deleted apart, so that servers take them. */
export function drawTxn(draw: Draw): TxnStep {
  return new TxnDraw(draw).txn(1);
}

class TxnDraw {
  readonly #draw: Draw;
  /** Keys below are put, and those from it on deleted, or the other way round; absent: any. */
  readonly #border: { readonly key: string; readonly putsBelow: boolean } | undefined;
  readonly #used = new Set<string>();

  constructor(draw: Draw) {
    this.#draw = draw;
    this.#border = draw.percent(75) ? { key: drawKey(draw), putsBelow: draw.percent(50) } : undefined;
  }

  txn(depth: number): TxnStep {
    const draw = this.#draw;
    return {
      do: 'txn',
      compare: draw.times(draw.of([0, 1, 1, 1, 2, 3]), () => drawComparison(draw)),
      success: draw.times(1 + draw.int(OPERATIONS_MAX), () => this.#operation(depth)),
      failure: draw.times(draw.int(OPERATIONS_MAX), () => this.#operation(depth)),
    };
  }

  #operation(depth: number): Operation {
    const draw = this.#draw;
    return draw.weighted<() => Operation>([
      [35, () => this.#put()],
      [25, () => this.#delete()],
      [30, () => drawRange(draw)],
      [depth < DEPTH_MAX ? 20 : 0, () => this.txn(depth + 1)],
    ])();
  }

  #put(): Operation {
    const draw = this.#draw;
    const drawn = drawPut(draw);
    if (this.#border === undefined) return drawn;
    if (draw.percent(95) && (drawn.ignoreValue || drawn.ignoreLease)) return this.#put();
    for (let tries = 0; tries < 20; tries++) {
      const key = drawKey(draw);
      if (key < this.#border.key !== this.#border.putsBelow || this.#used.has(key)) continue;
      this.#used.add(key);
      return { ...drawn, key };
    }
    return drawRange(draw);
  }

  #delete(): Operation {
    const drawn = drawDelete(this.#draw);
    if (this.#border === undefined) return drawn;
    for (let tries = 0; tries < 20; tries++) {
      const span = drawSpan(this.#draw);
      if (this.#isApart(span.key, span.end)) return { ...drawn, ...span };
    }
    return drawRange(this.#draw);
  }

  /** Whether no key is covered that may be put. */
  #isApart(key: string, end: string | undefined): boolean {
    if (this.#border === undefined || key === '') return false;
    const { key: border, putsBelow } = this.#border;
    if (putsBelow) return key >= border;
    return end === undefined ? key < border : end !== '\0' && end <= border;
  }
}

const COMPARE_RESULTS = 4;
const BY = ['version', 'create', 'mod', 'value', 'lease'] as const;

function drawComparison(draw: Draw): Comparison {
  const target = draw.int(BY.length);
  const by = draw.percent(97) ? target : draw.int(BY.length);
  return {
    ...(draw.percent(60) ? { key: drawKey(draw) } : drawSpan(draw)),
    result: draw.int(COMPARE_RESULTS),
    target,
    ...(draw.percent(96) && { with: drawOperand(draw, BY[by] ?? 'version') }),
  };
}

function drawOperand(draw: Draw, by: (typeof BY)[number]): NonNullable<Comparison['with']> {
  switch (by) {
    case 'version':
      return { version: draw.of([0n, 0n, 1n, 2n, 3n, -1n, HUGE]) };
    case 'create':
      return { create: draw.percent(40) ? { raw: 0n } : drawRevision(draw) };
    case 'mod':
      return { mod: draw.percent(30) ? { raw: 0n } : drawRevision(draw) };
    case 'value':
      return { value: drawValue(draw) };
    case 'lease':
      return { lease: draw.percent(50) ? { raw: 0n } : drawLease(draw) };
  }
}
