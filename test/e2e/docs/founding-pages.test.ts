/** The shell blocks of pages that found clusters. The other pages: docs.test.ts. */
import { test } from 'vitest';
import { FOUNDING_GROUPS, SECURE } from './founding-pages.ts';
import { PageRunner } from './page-run.ts';

test('a secure cluster is founded, used and changed, as the page says', async () => {
  const runner = new PageRunner();
  try {
    await runner.run(SECURE);
  } finally {
    runner.remove();
  }
});

test.each(FOUNDING_GROUPS)('a cluster on three machines is founded and changed, as %s and %s say', async (...pages) => {
  const runner = new PageRunner();
  try {
    await runner.run(...pages);
  } finally {
    runner.remove();
  }
});
