import { SeededRandom } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasExplanation } from './every-order.ts';
import {
  checkAppliedOnce,
  checkLinearizable,
  createAppendModel,
  type HistoryRecord,
  lockModel,
  type Model,
  registerModel,
  type Value,
} from './index.ts';
import { search } from './search.ts';
import { shrink } from './shrink.ts';

type Extra = Partial<Pick<HistoryRecord, 'v' | 'x' | 'out' | 'ok' | 'k'>>;

let clients = 0;
/** An operation between two moments; `t1` null: unknown. Its client is new, and so constrains nothing. */
function op(name: HistoryRecord['op'], [t0, t1]: readonly [number, number | null], extra: Extra = {}): HistoryRecord {
  return { c: extra.ok === undefined ? clients++ : 'c', k: 'k', op: name, ok: t1 !== null, t0, t1, ...extra };
}
const by = (c: string, record: HistoryRecord): HistoryRecord => ({ ...record, c });

interface Row {
  readonly name: string;
  readonly history: readonly HistoryRecord[];
  readonly expect: 'ok' | 'violation';
}

function table<S>(create: () => Model<S>, rows: readonly Row[]): void {
  it.each(rows)('$name: $expect', ({ history, expect: expected }) => {
    const verdict = checkLinearizable(create(), history);
    expect(verdict.result, verdict.explanation).toBe(expected);
    expect(verdict.explanation === '').toBe(expected === 'ok');
  });
}

describe('register', () => {
  table<Value>(
    () => registerModel,
    [
      { name: 'nothing', history: [], expect: 'ok' },
      {
        name: 'a delete that may have come before or after the write beside it',
        history: [op('del', [0, 1]), op('put', [0, 1], { v: 'a' }), op('get', [2, 3], { out: null })],
        expect: 'ok',
      },
      { name: 'a read of nothing', history: [op('get', [0, 1], { out: null })], expect: 'ok' },
      {
        name: 'a read beside a write sees either value',
        history: [
          op('put', [0, 1], { v: 'a' }),
          op('put', [2, 9], { v: 'b' }),
          op('get', [3, 4], { out: 'a' }),
          op('get', [5, 6], { out: 'b' }),
        ],
        expect: 'ok',
      },
      {
        name: 'a new value and then the old one again',
        history: [
          op('put', [0, 1], { v: 'a' }),
          op('put', [2, 9], { v: 'b' }),
          op('get', [3, 4], { out: 'b' }),
          op('get', [5, 6], { out: 'a' }),
        ],
        expect: 'violation',
      },
      {
        name: 'a stale read',
        history: [op('put', [0, 1], { v: 'a' }), op('put', [2, 3], { v: 'b' }), op('get', [4, 5], { out: 'a' })],
        expect: 'violation',
      },
      {
        name: 'a lost write',
        history: [op('put', [0, 1], { v: 'a' }), op('get', [2, 3], { out: null })],
        expect: 'violation',
      },
      {
        name: 'operations that touch are concurrent',
        history: [op('put', [0, 1], { v: 'a' }), op('get', [1, 2], { out: null })],
        expect: 'ok',
      },
      {
        name: 'a write of unknown outcome that took effect much later',
        history: [
          op('put', [0, null], { v: 'a' }),
          op('get', [1, 2], { out: null }),
          op('put', [3, 4], { v: 'b' }),
          op('get', [5, 6], { out: 'a' }),
        ],
        expect: 'ok',
      },
      {
        name: 'a write of unknown outcome that took effect twice',
        history: [
          op('put', [0, null], { v: 'a' }),
          op('get', [1, 2], { out: 'a' }),
          op('put', [3, 4], { v: 'b' }),
          op('get', [5, 6], { out: 'a' }),
        ],
        expect: 'violation',
      },
      {
        name: 'a write of unknown outcome seen before it began',
        history: [op('get', [0, 1], { out: 'a' }), op('put', [2, null], { v: 'a' })],
        expect: 'violation',
      },
      {
        name: 'two compares that both won',
        history: [op('cas', [0, 2], { x: null, v: 'a', ok: true }), op('cas', [1, 3], { x: null, v: 'b', ok: true })],
        expect: 'violation',
      },
      {
        name: 'a compare that failed because of a write that nobody saw',
        history: [
          op('put', [0, 1], { v: 'a' }),
          op('put', [2, null], { v: 'unseen' }),
          op('cas', [3, 4], { x: 'a', v: 'b', ok: false }),
        ],
        expect: 'ok',
      },
      {
        name: 'a compare that failed for no reason',
        history: [op('put', [0, 1], { v: 'a' }), op('cas', [3, 4], { x: 'a', v: 'b', ok: false })],
        expect: 'violation',
      },
      {
        name: 'a delete that came back',
        history: [op('put', [0, 1], { v: 'a' }), op('del', [2, 3]), op('get', [4, 5], { out: 'a' })],
        expect: 'violation',
      },
    ],
  );
});

describe('lock', () => {
  table(
    () => lockModel,
    [
      {
        name: 'grants with growing versions',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('acquire', [0, 9], { out: 8 }),
          op('check', [2, 3], { v: 5, out: true }),
          op('release', [4, 5], { v: 5 }),
          op('check', [10, 11], { v: 5, out: false }),
        ],
        expect: 'ok',
      },
      {
        name: 'two holders',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('acquire', [2, 3], { out: 6 }),
          op('release', [4, 5], { v: 5 }),
        ],
        expect: 'violation',
      },
      {
        name: 'a version that does not grow',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('release', [2, 3], { v: 5 }),
          op('acquire', [4, 5], { out: 5 }),
        ],
        expect: 'violation',
      },
      {
        name: 'busy although it was free',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('release', [2, 3], { v: 5 }),
          op('acquire', [4, 5], { ok: false }),
        ],
        expect: 'violation',
      },
      {
        name: 'a release refused to the holder',
        history: [op('acquire', [0, 1], { out: 5 }), op('release', [2, 3], { v: 5, ok: false })],
        expect: 'violation',
      },
      {
        name: 'a grant whose answer was lost blocks others',
        history: [op('acquire', [0, null]), op('acquire', [2, 3], { ok: false })],
        expect: 'ok',
      },
      {
        name: 'a holder whose session may have ended makes room',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('release', [2, null], { v: 5 }),
          op('acquire', [3, 4], { out: 7 }),
        ],
        expect: 'ok',
      },
      {
        name: 'a grant before the session of the holder could have ended',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('acquire', [3, 4], { out: 7 }),
          op('release', [5, null], { v: 5 }),
        ],
        expect: 'violation',
      },
      {
        name: 'a lost grant that its client releases',
        history: [
          by('a', op('acquire', [0, null])),
          by('b', op('acquire', [1, 2], { ok: false })),
          by('a', op('release', [3, 4])),
          by('b', op('acquire', [5, 6], { out: 9 })),
        ],
        expect: 'ok',
      },
      {
        name: 'a holder from whom the lock is taken',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('force', [2, 3]),
          op('check', [4, 5], { v: 5, out: false }),
          op('force', [6, 7], { ok: false }),
          op('acquire', [8, 9], { out: 6 }),
        ],
        expect: 'ok',
      },
      {
        name: 'a lock that may have been taken from its holder, or not',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('force', [2, null]),
          op('check', [3, 4], { v: 5, out: true }),
          op('acquire', [5, 6], { out: 6 }),
        ],
        expect: 'ok',
      },
      {
        name: 'a lock that is taken from nobody',
        history: [op('acquire', [0, 1], { out: 5 }), op('release', [2, 3], { v: 5 }), op('force', [4, 5])],
        expect: 'violation',
      },
      {
        name: 'a holder of whom it is said that nobody holds',
        history: [op('acquire', [0, 1], { out: 5 }), op('force', [2, 3], { ok: false })],
        expect: 'violation',
      },
      {
        name: 'a holder after the lock was taken from it',
        history: [op('acquire', [0, 1], { out: 5 }), op('force', [2, 3]), op('check', [4, 5], { v: 5, out: true })],
        expect: 'violation',
      },
      {
        name: 'a version still current after the next grant',
        history: [
          op('acquire', [0, 1], { out: 5 }),
          op('release', [2, 3], { v: 5 }),
          op('acquire', [4, 5], { out: 6 }),
          op('check', [6, 7], { v: 5, out: true }),
        ],
        expect: 'violation',
      },
    ],
  );
});

const lists: readonly Row[] = [
  {
    name: 'appends in order',
    history: [
      op('append', [0, 1], { v: 'a' }),
      op('append', [2, 3], { v: 'b' }),
      op('get', [4, 5], { out: ['a', 'b'] }),
    ],
    expect: 'ok',
  },
  {
    name: 'an append applied twice',
    history: [
      op('append', [0, 1], { v: 'a' }),
      op('append', [2, 3], { v: 'b' }),
      op('get', [4, 5], { out: ['a', 'b', 'a'] }),
    ],
    expect: 'violation',
  },
  {
    name: 'an acknowledged append lost',
    history: [op('append', [0, 1], { v: 'a' }), op('append', [2, 3], { v: 'b' }), op('get', [4, 5], { out: ['b'] })],
    expect: 'violation',
  },
  {
    name: 'an append of unknown outcome that came late',
    history: [
      op('append', [0, null], { v: 'a' }),
      op('append', [2, 3], { v: 'b' }),
      op('get', [4, 5], { out: ['b'] }),
      op('get', [6, 7], { out: ['b', 'a'] }),
    ],
    expect: 'ok',
  },
  {
    name: 'two orders',
    history: [
      op('append', [0, 9], { v: 'a' }),
      op('append', [0, 9], { v: 'b' }),
      op('get', [10, 11], { out: ['a', 'b'] }),
      op('get', [12, 13], { out: ['b', 'a'] }),
    ],
    expect: 'violation',
  },
  {
    name: 'an element from nowhere',
    history: [op('get', [0, 1], { out: ['a'] }), op('append', [2, 3], { v: 'a' })],
    expect: 'violation',
  },
];

describe('list', () => {
  table(createAppendModel, lists);

  it.each(lists)('applied once, $name: $expect', ({ history, expect: expected }) => {
    expect(checkAppliedOnce(history).length === 0 ? 'ok' : 'violation').toBe(expected);
  });

  it('names what was applied twice', () => {
    expect(checkAppliedOnce(lists[1]?.history ?? [])).toContain('key "k": a was applied twice');
  });
});

describe('verdicts', () => {
  it('an explanation shows the shortest part that fails, and of that only what it needs', () => {
    const history = [
      by('w', op('put', [0, 1], { v: 'a' })),
      by('w', op('put', [2, 3], { v: 'b' })),
      by('v', op('put', [4, 8], { v: 'c' })),
      by('r', op('get', [5, 6], { out: 'a' })),
      by('r', op('get', [10, 11], { out: 'c' })),
      by('r', op('get', [12, 13], { out: 'a' })),
    ];
    const { explanation, keys } = checkLinearizable(registerModel, history);
    expect(keys).toEqual(['k']);
    expect(explanation.split('\n')).toEqual([
      'key "k": the register cannot have answered so. The first 3 of 6 answers suffice, and of what was asked by then this:',
      '    [0 – 1] client w: put("a") = ok',
      '    [2 – 3] client w: put("b") = ok',
      '    [5 – 6] client r: get() = ok "a"   ← has no place',
      '  the longest explanation of it:',
      '    [0 – 1] client w: put("a") = ok',
      '    [2 – 3] client w: put("b") = ok',
      '  and then the state is: value "b"',
    ]);
  });

  it('keys stand by themselves, and the one at fault is named', () => {
    const history = [op('put', [0, 1], { v: 'a', k: 'good' }), op('get', [2, 3], { out: 'x', k: 'bad' })];
    expect(checkLinearizable(registerModel, history)).toMatchObject({ result: 'violation', keys: ['bad'] });
  });

  it('a search over its budget of configurations, or of steps, is undecided, not passed', () => {
    const puts = Array.from({ length: 14 }, (_, i) => op('put', [0, 100], { v: `v${i}` }));
    const history = [...puts, op('get', [101, 102], { out: 'v0' }), op('get', [103, 104], { out: 'v1' })];
    const verdict = checkLinearizable(registerModel, history, { statesMax: 1_000 });
    expect(verdict).toMatchObject({ result: 'undecided', keys: ['k'] });
    const options = { statesMax: 1_000_000, stepsMax: 1_000 };
    expect(search(registerModel, history, options)).toMatchObject({ result: 'undecided' });
    expect(checkLinearizable(registerModel, history).result).toBe('violation');
  });

  it('what cannot be decided in time is not taken away from a violation', () => {
    const history = [op('put', [0, 1], { v: 'a' }), op('put', [2, 3], { v: 'b' }), op('get', [4, 5], { out: 'a' })];
    expect(shrink(registerModel, history, { statesMax: 0 })).toEqual(history);
  });

  it('a value that nothing can have led to needs no search', () => {
    const puts = Array.from({ length: 14 }, (_, i) => op('put', [0, 100], { v: `v${i}` }));
    const late = op('put', [103, 104], { v: 'late' });
    for (const out of ['nobody wrote it', 'late']) {
      const { result, states } = checkLinearizable(registerModel, [...puts, op('get', [101, 102], { out }), late]);
      expect([result, states]).toEqual(['violation', 0]);
    }
    const own = op('cas', [101, 102], { x: 'own', v: 'own', ok: true });
    expect(checkLinearizable(registerModel, [...puts, own])).toMatchObject({ result: 'violation', states: 0 });
  });
});

const SHRINK = { statesMax: 10_000 };

describe('against every order', () => {
  const times = fc.tuple(
    fc.integer({ min: 0, max: 12 }),
    fc.integer({ min: 0, max: 5 }),
    fc.integer({ min: 0, max: 4 }),
  );
  const value = fc.constantFrom('a', 'b', 'c');
  const seen = fc.option(value);
  const client = fc.constantFrom('p', 'q');

  function historyOf(
    request: fc.Arbitrary<Pick<HistoryRecord, 'op'> & Extra>,
    maxLength = 7,
  ): fc.Arbitrary<HistoryRecord[]> {
    const record = fc
      .tuple(request, times, client, fc.boolean())
      .map(([asked, [t0, length, luck], c, ok]): HistoryRecord => {
        const t1 = luck === 0 ? null : t0 + length;
        const answer = ['cas', 'acquire', 'release', 'force'].includes(asked.op) ? ok : true;
        return { c, k: 'k', ok: t1 !== null && answer, t0, t1, ...asked };
      });
    return fc.array(record, { maxLength });
  }

  function agree<S>(create: () => Model<S>, requests: fc.Arbitrary<Pick<HistoryRecord, 'op'> & Extra>): void {
    const verdicts = { ok: 0, violation: 0 };
    fc.assert(
      fc.property(historyOf(requests), (history) => {
        const expected = hasExplanation(create(), history) ? 'ok' : 'violation';
        verdicts[expected] += 1;
        expect(checkLinearizable(create(), history).result).toBe(expected);
        if (expected === 'violation') expect(hasExplanation(create(), shrink(create(), history, SHRINK))).toBe(false);
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(verdicts.ok, verdicts.violation)).toBeGreaterThan(100); // Both kinds were met.
  }

  it('registers: the search finds an explanation exactly where there is one, and what shrinks has none either', () => {
    agree(
      () => registerModel,
      fc.oneof(
        fc.record({ op: fc.constant('get' as const), out: seen }),
        fc.record({ op: fc.constant('put' as const), v: value }),
        fc.record({ op: fc.constant('del' as const) }),
        fc.record({ op: fc.constant('cas' as const), x: seen, v: value }),
      ),
    );
  });

  it('locks: the search finds an explanation exactly where there is one, and what shrinks has none either', () => {
    const version = fc.integer({ min: 1, max: 4 });
    agree(
      () => lockModel,
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ op: fc.constant('acquire' as const), out: version }) },
        { weight: 2, arbitrary: fc.record({ op: fc.constant('release' as const), v: version }) },
        { weight: 1, arbitrary: fc.record({ op: fc.constant('release' as const) }) },
        { weight: 1, arbitrary: fc.record({ op: fc.constant('check' as const), v: version, out: fc.boolean() }) },
        { weight: 1, arbitrary: fc.record({ op: fc.constant('force' as const) }) },
      ),
    );
  });

  it('locks that are taken by force, and hidden holders who are alike: as without that likeness', () => {
    const verdicts = { ok: 0, violation: 0 };
    const version = fc.integer({ min: 1, max: 3 });
    const told = historyOf(
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ op: fc.constant('acquire' as const), out: version }) },
        { weight: 1, arbitrary: fc.record({ op: fc.constant('check' as const), v: version, out: fc.boolean() }) },
        { weight: 2, arbitrary: fc.record({ op: fc.constant('force' as const) }) },
      ),
      5,
    );
    const hidden = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(told, hidden, (records, began) => {
        const pairs = began.flatMap((t0, i) =>
          (['release', 'acquire'] as const).map((name) => by(`hidden ${i}`, op(name, [t0, null], { ok: false }))),
        );
        const history = [...records, ...pairs];
        const expected = hasExplanation(lockModel, history) ? 'ok' : 'violation';
        verdicts[expected] += 1;
        expect(checkLinearizable(lockModel, history).result).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
    expect(Math.min(verdicts.ok, verdicts.violation)).toBeGreaterThan(100);
  });

  it('lists: the search finds an explanation exactly where there is one, and what shrinks has none either', () => {
    agree(
      createAppendModel,
      fc.oneof(
        { weight: 2, arbitrary: fc.record({ op: fc.constant('append' as const), v: value }) },
        {
          weight: 1,
          arbitrary: fc.record({ op: fc.constant('get' as const), out: fc.uniqueArray(value, { maxLength: 3 }) }),
        },
      ),
    );
  });
});

/** A real register, used by concurrent clients: an operation takes effect at a random moment between begin and end. */
function generate(options: {
  seed: number;
  ops: number;
  keys: number;
  clients: number;
  unknownPerMille: number;
}): HistoryRecord[] {
  const random = new SeededRandom(options.seed);
  const plan: { at: number; record: HistoryRecord }[] = [];
  const freeAt = new Array<number>(options.clients).fill(0);
  for (let i = 0; i < options.ops; i++) {
    const c = i % options.clients;
    const t0 = (freeAt[c] ?? 0) + random.int(50);
    const at = t0 + random.int(100);
    const t1 = at + random.int(100);
    const unknown = random.int(1_000) < options.unknownPerMille;
    freeAt[c] = t1 + 1;
    const name = (['get', 'put', 'cas', 'get'] as const)[random.int(4)] ?? 'get';
    const record = {
      c,
      k: `k${random.int(options.keys)}`,
      op: name,
      v: `v${i}`,
      ok: true,
      t0,
      t1: unknown ? null : t1,
    };
    // What has no answer may take effect much later, or never.
    plan.push({ at: unknown ? at + random.int(3_000) : at, record });
  }
  const values = new Map<string, Value>();
  const history = plan
    .sort((a, b) => a.at - b.at)
    .map(({ record }) => {
      const before = values.get(record.k) ?? null;
      if (record.op === 'get') return { ...record, out: before };
      const x = random.int(3) === 0 ? 'other' : before;
      const ok = record.op === 'put' || x === before;
      if (ok && (record.t1 !== null || random.int(2) === 0)) values.set(record.k, record.v ?? null);
      return { ...record, ...(record.op === 'cas' ? { x } : {}), ok: ok && record.t1 !== null };
    });
  return history.map(({ v, ...record }) => (record.op === 'get' ? record : { ...record, v }) as HistoryRecord);
}

describe('long histories', () => {
  it('10,000 operations over 20 keys are decided, and one stale read among them is found and explained in a few lines', () => {
    const history = generate({ seed: 7, ops: 10_000, keys: 20, clients: 10, unknownPerMille: 20 });
    const verdict = checkLinearizable(registerModel, history);
    expect(verdict.result, verdict.explanation).toBe('ok');

    const late = history.findLastIndex((record) => record.op === 'get' && record.t1 !== null);
    const stale = history.find((record) => record.op === 'put' && record.k === history[late]?.k);
    const broken = history.map((record, i) => (i === late ? { ...record, out: stale?.v ?? null } : record));
    const found = checkLinearizable(registerModel, broken);
    expect(found).toMatchObject({ result: 'violation', keys: [history[late]?.k] });
    expect(found.explanation.split('\n').length).toBeLessThan(15); // Of 500 operations on that key.
  });
});
