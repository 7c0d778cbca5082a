import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { RULE_MUTATIONS } from './rule-mutations.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

describe('the test that is to notice', () => {
  test.each(RULE_MUTATIONS)('$name is there', ({ killedBy: { file, test: name } }) => {
    expect(existsSync(ROOT + file)).toBe(true);
    expect(readFileSync(ROOT + file, 'utf8')).toContain(name);
  });
});
