/** Rules of keys and of lists over HTTP: for each rule, a mutation that breaks the code behind it. */
import type { RuleMutation } from './mutation.ts';

/** [name, the resulting fault, file, find, replace, file of the test, test] */
type Row = readonly [string, string, string, string, string, string, string];

const ROWS: readonly Row[] = [
  [
    'http-pages-of-several-revisions',
    'each page of a list is read at the newest revision (KS1)',
    'kv/key-scan.ts',
    'if (isFirst) this.#revision = revision;',
    'void revision;',
    'keys',
    'has the keys of a prefix in order, with or without values, page by page at one revision',
  ],
  [
    'http-tree-reads-folders',
    'a tree reads all keys of its folders',
    'kv/kv-tree.ts',
    'isBefore(place.from, folderEnd)) this.#skipTo(folderEnd);',
    'isBefore(place.from, folderEnd)) void folderEnd;',
    'keys-tree.property',
    'a level of the tree costs scans by its entries, not by the keys in its folders',
  ],
  [
    'http-request-id-of-keys-alone',
    'a requestId stands for whatever is sent with it (KW1)',
    'kv/kv-writes.ts',
    "['kv', chosen, ...request]",
    "['kv', chosen, ...request.slice(0, 0)]",
    'keys',
    'is carried out once, by whichever node, if it has a requestId',
  ],
  [
    'http-prefix-deleted-unseen',
    'a prefix is deleted although a key was created since (decision 111)',
    'kv/kv-writes.ts',
    'const txn = { compare: [compare], success: [op], failure: [] };',
    'const txn = { compare: [compare].slice(1), success: [op], failure: [] };',
    'keys',
    'are deleted in one step if nobody has changed one since they were looked at',
  ],
  [
    'http-resumes-at-the-last-event',
    'a client that reconnects gets its last event twice (KE1)',
    'kv/kv-events.ts',
    'startRevision: since === undefined ? 0 : since + 1,',
    'startRevision: since === undefined ? 0 : since,',
    'keys-events',
    'gets what it has missed and nothing twice, by the id of the last event or by `since`',
  ],
  [
    'http-one-event-for-each-change',
    'the changes of one revision are several events, so that an id stands for a part of them (KE1)',
    'kv/kv-events.ts',
    'const group = events.slice(at, rest < 0 ? events.length : rest);',
    'const group = events.slice(at, rest < 0 ? at + 1 : Math.min(at + 1, rest));',
    'keys-events',
    'all changes of one revision are one event',
  ],
  [
    'http-compacted-stream-is-begun',
    'a stream that cannot begin is answered with 200, and EventSource repeats it for ever (KE2)',
    'kv/kv-events.ts',
    "if (this.#state === 'beginning') return this.#refuse(told);",
    "if (this.#state === 'beginning') this.onCreated(0);",
    'keys-events',
    'after a compaction is refused with the oldest revision that can be read, as an EventSource must not retry',
  ],
  [
    'http-watch-goes-on-unread',
    'a client that does not read fills the memory (KE3)',
    'kv/kv-events.ts',
    '    this.#isBehind = true;\n    this.#control?.pause();',
    '    this.#isBehind = true;',
    'keys-events',
    'a client that does not read holds the watch up, and gets every change once it does',
  ],
  [
    'http-import-half-checked',
    'a line that is wrong is found after others were written (KI1)',
    'kv/kv-import.ts',
    "const value = fields.required('value', fields.bytes('value'));",
    "const value = fields.bytes('value') ?? Buffer.alloc(0);",
    'keys-transfer',
    "with 'a line without a value' writes nothing",
  ],
  [
    'http-import-claims-nothing-changed',
    'an import that has written a part answers that nothing was changed (KI2)',
    'kv/kv-import.ts',
    'throw counts.written === 0 && !this.#failure.mayBeApplied ? this.#failure : partly(counts, this.#failure);',
    'throw this.#failure;',
    'keys-transfer',
    'waits while the node is over its limit, and says what it has done if a key cannot be written',
  ],
  [
    'http-search-without-bound',
    'one request searches all locks (LL1)',
    'lock-lists.ts',
    'i < SEARCHES_MAX && next !== undefined',
    'i < 100 * SEARCHES_MAX && next !== undefined',
    'lock-lists',
    'a search that finds nothing among very many locks does a bounded part of the work in each request',
  ],
];

export const HTTP_KEYS_RULES: readonly RuleMutation[] = ROWS.map(
  ([name, rule, file, find, replace, tests, test]): RuleMutation => ({
    ...{ name, rule, find, replace, file: `packages/gateway/src/http/${file}` },
    killedBy: { file: `test/http/${tests}.test.ts`, test },
  }),
);
