import { describe, expect, it } from 'vitest';
import type { HistoryRecord } from './history.ts';
import { type AnyRecord, fromJsonLines, partitionByKey, readJsonLines, TxnRecorder, toJsonLines } from './index.ts';

const history: readonly HistoryRecord[] = [
  { c: 1, k: 'a', op: 'cas', v: 'x', x: null, ok: false, t0: 1, t1: 2 },
  { c: 'two', k: 'b', op: 'acquire', out: 7, ok: true, t0: 1, t1: null },
  { c: 1, k: 'a', op: 'get', out: ['x', 'y'], ok: true, t0: 3, t1: 4 },
];

function transactions(): readonly AnyRecord[] {
  let now = 0;
  const recorder = new TxnRecorder(() => ++now);
  const ops = [
    { k: 'x', op: 'append', v: '1' },
    { k: 'y', op: 'get' },
    { k: 'x', op: 'get' },
  ] as const;
  recorder.begin({ c: 1, ops }).committed([[], ['1']]);
  recorder.begin({ c: 2, ops: [{ k: 'x', op: 'append', v: '2' }] }).aborted();
  const late = recorder.begin({ c: 3, ops: [{ k: 'x', op: 'append', v: '3' }] });
  late.unknown();
  late.committed();
  recorder.begin({ c: 4, ops });
  return recorder.records();
}

async function* inPieces(text: string, size: number): AsyncGenerator<string> {
  for (let i = 0; i < text.length; i += size) yield text.slice(i, i + size);
}

async function readAll(pieces: AsyncIterable<string>, options?: { readonly lineCharsMax: number }) {
  const records: AnyRecord[] = [];
  for await (const record of readJsonLines(pieces, options)) records.push(record);
  return records;
}

describe('histories as JSON lines', () => {
  it('a line has the fields in their order, and leaves out what means nothing', () => {
    const shuffled = history.map((record) => Object.fromEntries(Object.entries(record).reverse()));
    expect(toJsonLines(shuffled as unknown as HistoryRecord[])).toBe(
      '{"c":1,"k":"a","op":"cas","v":"x","x":null,"ok":false,"t0":1,"t1":2}\n' +
        '{"c":"two","k":"b","op":"acquire","out":7,"ok":true,"t0":1,"t1":null}\n' +
        '{"c":1,"k":"a","op":"get","out":["x","y"],"ok":true,"t0":3,"t1":4}\n',
    );
  });

  it('a line of a transaction says what it asked, what it read, and how it ended', () => {
    expect(toJsonLines(transactions())).toBe(
      '{"c":1,"op":"txn","ops":[{"k":"x","op":"append","v":"1"},{"k":"y","op":"get","out":[]},{"k":"x","op":"get","out":["1"]}],"ok":true,"t0":1,"t1":2}\n' +
        '{"c":2,"op":"txn","ops":[{"k":"x","op":"append","v":"2"}],"ok":false,"t0":3,"t1":4}\n' +
        '{"c":3,"op":"txn","ops":[{"k":"x","op":"append","v":"3"}],"ok":false,"t0":5,"t1":null}\n' +
        '{"c":4,"op":"txn","ops":[{"k":"x","op":"append","v":"1"},{"k":"y","op":"get"},{"k":"x","op":"get"}],"ok":false,"t0":7,"t1":null}\n',
    );
  });

  it('a history survives its text form, at once and in pieces of any size', async () => {
    const all = [...history, ...transactions()];
    const text = toJsonLines(all);
    expect(fromJsonLines(`\n${text}\n`)).toEqual(all);
    for (const size of [1, 7, 100, 10_000]) {
      expect(await readAll(inPieces(text, size))).toEqual(all);
      expect(await readAll(inPieces(text.trimEnd(), size))).toEqual(all);
    }
    expect([...partitionByKey(history)].map(([key, ops]) => [key, ops.length])).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
  });

  it.each([
    ['{', 'line 2 is not JSON'],
    ['[]', 'line 2 is not a history record: c is not'],
    ['{"c":1,"k":"a","op":"got","ok":true,"t0":1,"t1":2}', 'line 2 is not a history record: op is not one of get'],
    ['{"c":1,"op":"get","ok":true,"t0":1,"t1":2}', 'k is not a text'],
    ['{"c":1,"k":"a","op":"get","ok":1,"t0":1,"t1":2}', 'ok is not a boolean'],
    ['{"c":1,"k":"a","op":"get","ok":true,"t1":2}', 't0 is not a number'],
    ['{"c":1,"k":"a","op":"get","ok":true,"t0":3,"t1":2}', 't1 is neither null'],
    ['{"c":1,"k":"a","op":"get","ok":true,"out":{},"t0":1,"t1":2}', 'out is not a value'],
    ['{"c":1,"op":"txn","ok":true,"t0":1,"t1":2}', 'ops is not an array'],
    ['{"c":1,"op":"txn","ops":[{"k":"x","op":"put","v":"1"}],"ok":true,"t0":1,"t1":2}', 'ops[0].op is neither'],
    ['{"c":1,"op":"txn","ops":[{"k":"x","op":"append","v":1}],"ok":true,"t0":1,"t1":2}', 'ops[0].v is not a text'],
    ['{"c":1,"op":"txn","ops":[{"k":"x","op":"get"}],"ok":true,"t0":1,"t1":2}', 'ops[0].out is not an array'],
  ])('%s is refused with its line', async (line, message) => {
    const good = '{"c":1,"k":"a","op":"get","ok":true,"t0":1,"t1":2}';
    expect(() => fromJsonLines(`${good}\n${line}\n`)).toThrow(message);
    await expect(readAll(inPieces(`${good}\n${line}\n`, 9))).rejects.toThrow(message);
  });

  it('a file that is no history does not fill the memory', async () => {
    await expect(readAll(inPieces('x'.repeat(1_000), 10), { lineCharsMax: 100 })).rejects.toThrow('more than 100');
    const lines = toJsonLines(history);
    expect(await readAll(inPieces(lines, 10), { lineCharsMax: 100 })).toEqual(history); // The limit is for a line.
  });
});
