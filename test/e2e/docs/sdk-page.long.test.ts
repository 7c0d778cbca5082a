import { expect, test } from 'vitest';
import { readPage } from '../../../packages/cli/test/docs/pages.ts';

test('the page of the methods is what the docstrings say (npm run docs writes it)', async () => {
  const program = new URL('../../../scripts/docs/sdk-page.mjs', import.meta.url).href;
  const { SDK_PAGE, sdkPage } = (await import(program)) as {
    readonly SDK_PAGE: string;
    sdkPage(): Promise<string>;
  };
  expect(await sdkPage()).toBe(readPage(SDK_PAGE));
});
