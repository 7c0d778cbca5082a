/**
 * The parts of a page of Markdown that tests check: code blocks, links and anchors.
 *
 * MD1. A block's info string is its language, then its attributes: `no-run` (the block needs another machine, a
 *      terminal or the reader's decision), `background` (the block starts a process that goes on), `fails` (the block
 *      shows a command that has to fail), `file=NAME` (the reader saves the block under this name), `on=1,2` (the
 *      reader runs the block on the first and the second machine).
 * MD2. Anchors are GitHub's: the heading in lower case, without punctuation, spaces as dashes; a repeated one gets a
 *      number.
 */
export interface CodeBlock {
  readonly language: string;
  readonly attributes: ReadonlySet<string>;
  /** The value of `file=`. */
  readonly file: string | undefined;
  /** The values of `on=`. */
  readonly machines: readonly string[];
  readonly code: string;
  /** Of the opening fence, from 1. */
  readonly line: number;
}

export interface Link {
  /** Empty for a link within the page. */
  readonly path: string;
  readonly anchor: string | undefined;
  readonly line: number;
}

const FENCE = /^( *)```(.*)$/;

/** MD1. */
export function codeBlocks(page: string): readonly CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open:
    | { readonly info: string; readonly indent: number; readonly line: number; readonly lines: string[] }
    | undefined;
  for (const [i, line] of page.split('\n').entries()) {
    const [, indent = '', info = ''] = FENCE.exec(line) ?? [];
    const isFence = FENCE.test(line);
    if (open === undefined) {
      if (isFence) open = { info: info.trim(), indent: indent.length, line: i + 1, lines: [] };
      continue;
    }
    if (!isFence) {
      open.lines.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)));
      continue;
    }
    const [language = '', ...attributes] = open.info.split(/\s+/);
    const attribute = (key: string) => attributes.find((each) => each.startsWith(`${key}=`))?.slice(key.length + 1);
    blocks.push({
      language,
      attributes: new Set(attributes),
      file: attribute('file'),
      machines: attribute('on')?.split(',') ?? [],
      code: `${open.lines.join('\n')}\n`,
      line: open.line,
    });
    open = undefined;
  }
  if (open !== undefined) throw new Error(`line ${open.line}: the code block is not closed`);
  return blocks;
}

/** Links to files and anchors; addresses of other sites are left out. */
export function links(page: string): readonly Link[] {
  return proseLines(page).flatMap(({ text, line }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
      if (/^[a-z]+:/.test(target)) return [];
      const [path = '', anchor] = target.split('#');
      return [{ path, anchor, line }];
    }),
  );
}

/** MD2. */
export function anchors(page: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { text } of proseLines(page)) {
    const [, heading] = /^#{1,6} (.*)$/.exec(text) ?? [];
    for (const [, id = ''] of text.matchAll(/<a id="([^"]+)">/g)) found.add(id);
    if (heading === undefined) continue;
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const slug = plain
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-');
    let unique = slug;
    for (let n = 1; found.has(unique); n++) unique = `${slug}-${n}`;
    found.add(unique);
  }
  return found;
}

/** Lines outside of code blocks, without inline code, which may look like a link; links keep their texts' code. */
function proseLines(page: string): readonly { readonly text: string; readonly line: number }[] {
  let isCode = false;
  return page.split('\n').flatMap((text, i) => {
    if (FENCE.test(text)) isCode = !isCode;
    else if (!isCode) return [{ text, line: i + 1 }];
    return [];
  });
}
