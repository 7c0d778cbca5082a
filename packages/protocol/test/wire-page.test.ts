import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CLOSED_MESSAGES } from './support/messages.ts';
import { wirePage } from './support/wire-page.ts';

const PAGE = join(dirname(fileURLToPath(import.meta.url)), '../../../docs/reference/node-messages.md');

test('docs/reference/node-messages.md says what the declarations say; REWRITE=1 makes it again', () => {
  const page = wirePage(CLOSED_MESSAGES);
  if (process.env.REWRITE === '1') {
    mkdirSync(dirname(PAGE), { recursive: true });
    writeFileSync(PAGE, page);
  }
  expect(existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '').toBe(page);
});
