import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/**
 * The tables of docs/understand/write-path.md name the functions of a write, in order. Each row's last column is the
 * call of the next function as the source has it: plain, `link` (the next row serves that method), `port` (the next row
 * is what the port was given), or `end` (the last row of a table).
 */
const PAGE = fileURLToPath(new URL('../../../../docs/understand/write-path.md', import.meta.url));
/** In one process, outside Raft. */
const FUNCTIONS_MAX = 12;

interface Step {
  readonly name: string;
  readonly file: string;
  readonly kind: 'call' | 'link' | 'port' | 'end';
  readonly call: string;
}

const ROW = /^\| \d+ \| `([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \| (?:(link|port|end) )?`([^`]+)` \|$/;

/** The tables of the page: runs of rows. */
function tables(): readonly (readonly Step[])[] {
  const found: Step[][] = [];
  let rows: Step[] | undefined;
  for (const line of readFileSync(PAGE, 'utf8').split('\n')) {
    const [, name, path, kind, call] = ROW.exec(line) ?? [];
    if (name === undefined || path === undefined || call === undefined) {
      if (!line.startsWith('| #') && !line.startsWith('| --- ')) rows = undefined;
      continue;
    }
    if (rows === undefined) {
      rows = [];
      found.push(rows);
    }
    rows.push({ name, file: join(dirname(PAGE), path), kind: (kind ?? 'call') as Step['kind'], call });
  }
  return found;
}

/** The source of a function, or of a method as `Class.method`; undefined when it is not there. */
function bodyOf({ name, file }: Step): string | undefined {
  if (!existsSync(file)) return undefined;
  const source = readFileSync(file, 'utf8');
  const [owner, method] = name.split('.');
  if (method === undefined) return piece(source, new RegExp(`^(export )?(async )?function ${owner}\\b`, 'm'), '\n}\n');
  const text = piece(source, new RegExp(`^(export )?(abstract )?class ${owner}\\b`, 'm'), '\n}\n');
  return text && piece(text, new RegExp(`^  (async )?${method.replace('#', '\\#')}[<(]`, 'm'), '\n  }\n');
}

function piece(source: string, begins: RegExp, ends: string): string | undefined {
  const from = source.search(begins);
  return from === -1 ? undefined : source.slice(from, source.indexOf(ends, from) + ends.length);
}

/** What a call names at its end: `this.#parts.commands.execute(` is `execute`. */
function calledName(call: string): string {
  return /([#\w]+)\($/.exec(call)?.[1] ?? '';
}

describe('the way of a write, as its page names it', () => {
  const all = tables();

  test('has a table for each part', () => expect(all.length).toBeGreaterThanOrEqual(5));

  test.each(all.flatMap((rows) => rows.map((step, at) => ({ ...step, next: rows[at + 1] }))))(
    '$name calls $call',
    (step) => {
      const body = bodyOf(step);
      expect(body, `${step.name} is not in ${step.file}`).toBeDefined();
      if (step.kind !== 'link') expect(body).toContain(step.call);
      if (step.next === undefined) return expect(step.kind).toBe('end');
      if (step.kind === 'link') return expect(bodyOf(step.next)).toContain(step.call);
      expect(calledName(step.call).replace('#', '')).toBe(step.next.name.split('.').at(-1)?.replace('#', ''));
    },
  );

  test('takes at most twelve functions in a process', () => {
    for (const rows of all) {
      const packages = rows.map(({ file }) => /packages\/(\w+)\//.exec(file)?.[1]);
      for (const name of packages)
        expect(packages.filter((other) => other === name).length).toBeLessThanOrEqual(FUNCTIONS_MAX);
    }
  });
});
