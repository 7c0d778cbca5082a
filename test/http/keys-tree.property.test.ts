/** Trees and lists of random keys, against a model; and what they cost. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encoded, KeysBed } from './keys-bed.ts';

/** Few names, so that folders have several keys; with separators at odd places, and bytes that are no text. */
const key = fc
  .array(fc.constantFrom('a', 'b', '/', '//', '\xff', '\0', 'a/', '__proto__', '::'), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));
const prefix = fc.constantFrom('', 'a', 'a/', '/', 'b/', 'a/a/', '\xff', '__proto__/');
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
/** As answers show bytes. */
const shown = (text: string): unknown => {
  const [read, raw] = [bytes(text).toString(), bytes(text)];
  return Buffer.from(read).equals(raw) ? read : { base64: raw.toString('base64') };
};

/** What one level of a tree has, in the order of keys: `folder name`, `key name`. */
function modelTree(keys: readonly string[], inside: string, separator: string): unknown[] {
  const entries = new Map<string, unknown>();
  for (const one of keys.filter((each) => each.startsWith(inside))) {
    const rest = one.slice(inside.length);
    const at = rest.indexOf(separator);
    if (at < 0) entries.set(`key ${rest}`, { kind: 'key', name: shown(rest), key: shown(one) });
    else {
      const name = rest.slice(0, at + separator.length);
      entries.set(`folder ${name}`, { kind: 'folder', name: shown(name), key: shown(inside + name) });
    }
  }
  return [...entries.values()];
}

test('a level of the tree, and a list, are what a model makes of the keys, whatever the size of a page', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key, isDeleted: fc.boolean() }), { maxLength: 20 }),
      prefix,
      fc.constantFrom('/', '::', '\xff'),
      fc.integer({ min: 1, max: 6 }),
      async (changes, inside, separator, limit) => {
        const bed = new KeysBed();
        const there = new Set<string>();
        for (const { key: changed, isDeleted } of changes) {
          if (isDeleted) await bed.delete(`/v1/kv/${encoded(bytes(changed))}`);
          else await bed.put(bytes(changed));
          if (isDeleted) there.delete(changed);
          else there.add(changed);
        }
        const keys = [...there].sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
        const query = `prefix=${encoded(bytes(inside))}&limit=${limit}`;
        const tree = await bed.pages(`/v1/kv-tree?${query}&separator=${encoded(bytes(separator))}`, 'entries');
        expect(tree.entries).toMatchObject(modelTree(keys, inside, separator));
        expect(tree.entries.length).toBe(modelTree(keys, inside, separator).length);
        expect(tree.pages).toBe(Math.max(1, Math.ceil(tree.entries.length / limit)));
        const list = await bed.pages(`/v1/kv?${query}`, 'kvs');
        const listed = keys.filter((each) => each.startsWith(inside)).map(shown);
        expect(list.entries.map((entry) => (entry as { readonly key: unknown }).key)).toEqual(listed);
      },
    ),
    { numRuns: 40 },
  );
}, 120_000);

test('a level of the tree costs scans by its entries, not by the keys in its folders', async () => {
  const bed = new KeysBed();
  for (const folder of ['a', 'b', 'c']) for (let i = 0; i < 300; i++) await bed.put(`${folder}/${i}`);
  for (let i = 0; i < 40; i++) await bed.put(`leaf${String(i).padStart(2, '0')}`);
  const { keys } = bed.world.backend;
  let [scans, read] = [0, 0];
  const query = keys.query.bind(keys);
  keys.query = (asked, options, done) => {
    if (asked.type !== 'scan') throw new Error('only scans');
    expect(asked.keysOnly).toBe(true);
    scans++;
    return query(asked, options, (error, reply) => {
      read += reply?.result.type === 'scan' ? reply.result.kvs.length : 0;
      done(error, reply);
    });
  };
  const { entries } = await bed.get<{ entries: unknown[] }>('/v1/kv-tree');
  expect(entries).toHaveLength(43);
  expect(scans).toBeLessThan(12);
  expect(read).toBeLessThan(100);
});
