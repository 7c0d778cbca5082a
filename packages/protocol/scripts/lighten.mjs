// Makes generated code cheaper to run: messages are encoded by one shared writer, and empty bytes are one object
// (src/wire/shared-writer.ts). A node encodes an answer and decodes a request for each call.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ENCODES = /Buffer\.from\((\w+)\.encode\(value\)\.finish\(\)\)/g;
const EMPTY = /\bBuffer\.alloc\(0\)/g;
const FIRST_IMPORT = /^import /m;

/** Rewrites the generated files in `folder`, which is to become a folder of `src`. */
export function lighten(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    const path = join(folder, name);
    const text = readFileSync(path, 'utf8');
    const lighter = text.replace(ENCODES, 'written($1, value)').replace(EMPTY, 'EMPTY_BYTES');
    const names = ['EMPTY_BYTES', 'written'].filter((each) => lighter.includes(each));
    if (names.length === 0) continue;
    const module = `${relative(dirname(name), '..') || '.'}/wire/shared-writer.ts`;
    writeFileSync(path, lighter.replace(FIRST_IMPORT, `import { ${names.join(', ')} } from "${module}";\nimport `));
  }
}
