// The pages of the SDK's methods: what TypeDoc makes of the docstrings in packages/client, a page for each entry.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const HERE = dirname(fileURLToPath(import.meta.url));
const TYPEDOC = join(dirname(createRequire(import.meta.url).resolve('typedoc/package.json')), 'bin/typedoc');

export const SDK_PAGES = [
  {
    path: 'docs/reference/sdk-methods.md',
    entry: '../../packages/client/src/index.ts',
    title: 'Methods of the SDK',
    intro:
      '[The SDK](sdk.md) explains how to connect, and what all methods share. The [how-to pages](../README.md#how-to) ' +
      'show them at work.',
  },
  {
    path: 'docs/reference/sdk-admin.md',
    entry: 'admin.ts',
    title: 'The administration client',
    intro: '`remora/admin` is the part of [the SDK](sdk.md#administration) that administers clusters.',
  },
  {
    path: 'docs/reference/sdk-redlock.md',
    entry: 'redlock.ts',
    title: 'The API of redlock',
    intro:
      '`remora/redlock` has the API of the library redlock, for programs that [move from ' +
      'it](../how-to/locks/move-from-redlock.md).',
  },
  {
    path: 'docs/reference/sdk-migrate.md',
    entry: '../../packages/client/src/migrate.ts',
    title: 'Locks in two systems',
    intro:
      '`remora/migrate` holds a lock in another system and in Remora, for services that [move one by ' +
      'one](../how-to/locks/move-while-running.md).',
  },
];

/**
 * Takes about ten seconds of a processor. Everything must have been generated: protobuf code is part of what is read.
 */
export async function sdkPage({ entry, title, intro }) {
  const out = mkdtempSync(join(tmpdir(), 'remora-typedoc-'));
  const options = ['--options', join(HERE, 'typedoc.json'), '--entryPoints', join(HERE, entry), '--out', out];
  try {
    await promisify(execFile)(process.execPath, [TYPEDOC, ...options], { cwd: HERE });
    return page(readFileSync(join(out, 'page.md'), 'utf8'), { title, intro });
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Programs make these themselves; objects of the other classes come from a client. */
const CONSTRUCTED = [
  ...['ServiceError', 'LockStates', 'AdminClient', 'Redlock', 'BothLocks', 'ExecutionError', 'ResourceLockedError'],
];

/** With a title, a note about where it comes from, and a list of the classes. */
function page(text, { title, intro }) {
  const [, all = ''] = /^# .*\n+([\s\S]*)$/.exec(text) ?? [];
  if (all === '') throw new Error('TypeDoc wrote a page of another form');
  const body = withAnchors(withoutConstructors(all));
  const [, classes = ''] = /^## Classes$([\s\S]*?)^## /m.exec(body) ?? [];
  const anchors = anchorsOf(body);
  const names = [...classes.matchAll(/^### (\w+)$/gm)].map(([, name]) => `[${name}](#${anchors.get(name)})`);
  const heading = `# ${title}

<!-- Generated from the code by \`npm run docs\`. Change the code, not this page. -->

${intro}

Classes: ${names.join(', ')}.`;
  return `${heading}\n\n${body.trimEnd()}\n`;
}

function withoutConstructors(body) {
  const sections = body.split(/^(?=### )/m);
  const kept = sections.map((section) => {
    const name = /^### (\w+)$/m.exec(section)?.[1];
    if (CONSTRUCTED.includes(name)) return section;
    return section.replace(/^#### Constructors$[\s\S]*?(?=^#### |^\*\*\*$|^## |(?![\s\S]))/m, '');
  });
  return kept.join('');
}

/** TypeDoc's own anchors count headings that are not on the page. */
function withAnchors(body) {
  const anchors = anchorsOf(body);
  return body.replaceAll(/\[`(\w+)`\]\(#[\w-]+\)/g, (link, name) => {
    const anchor = anchors.get(name);
    return anchor === undefined ? link : `[\`${name}\`](#${anchor})`;
  });
}

/**
 * Of what is exported, by name. Where a method is called like a class, the anchor has a number, as GitHub counts them.
 */
function anchorsOf(body) {
  const seen = new Map();
  const anchors = new Map();
  for (const [, marks, heading] of body.matchAll(/^(#{1,6}) (.*)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .trim()
      .replaceAll(/\s/g, '-');
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    if (marks === '###') anchors.set(heading.replace('()', ''), before === 0 ? slug : `${slug}-${before}`);
  }
  return anchors;
}
