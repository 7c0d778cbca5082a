import { expect, test } from 'vitest';
import { readPage } from '../../../packages/cli/test/docs/pages.ts';

interface Page {
  readonly path: string;
}

test('the pages of the methods are what the docstrings say (npm run docs writes them)', async () => {
  const program = new URL('../../../scripts/docs/sdk-page.mjs', import.meta.url).href;
  const { SDK_PAGES, sdkPage } = (await import(program)) as {
    readonly SDK_PAGES: readonly Page[];
    sdkPage(page: Page): Promise<string>;
  };
  expect(SDK_PAGES).toHaveLength(4);
  for (const page of SDK_PAGES) expect(await sdkPage(page), page.path).toBe(readPage(page.path));
});
