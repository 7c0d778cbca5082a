import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';

/** The console has to be usable over a slow line. */
const GZIPPED_BYTES_MAX = 150_000;

/** As `npm run build` has made them, which `npm test` does first. */
const directory = fileURLToPath(new URL('../dist/static', import.meta.url));

describe('the files of the console', () => {
  const files = (): readonly string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  test('have at most 150 kB in all, compressed', () => {
    const bytes = files().reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThanOrEqual(GZIPPED_BYTES_MAX);
  });

  test('load nothing from elsewhere, and have no script or style in the page itself', () => {
    const page = readFileSync(join(directory, 'index.html'), 'utf8');
    expect(page).toMatch(/<script type="module"[^>]* src="\/console\/assets\//);
    expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
    for (const file of files()) {
      const urls = readFileSync(file, 'utf8').match(/\bhttps?:\/\/[a-z0-9.-]+/g) ?? [];
      expect(
        urls.filter((url) => !url.startsWith('http://www.w3.org')),
        file,
      ).toEqual([]);
    }
  });
});
