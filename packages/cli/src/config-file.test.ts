import { describe, expect, test } from 'vitest';
import { parseConfig } from './config-file.ts';

describe('a configuration file that no person wrote', () => {
  test.each([
    { name: 'brackets', text: `a: ${'['.repeat(8_000)}${']'.repeat(8_000)}` },
    { name: 'braces', text: `a: ${'{b: '.repeat(3_000)}` },
    { name: 'lists in one line', text: '- '.repeat(8_000) },
    {
      name: 'maps in lines',
      text: Array.from({ length: 150 }, (_, i) => `${' '.repeat(i)}a:`)
        .join('\n')
        .repeat(2),
    },
  ])('is refused before it is parsed when it nests deeply: $name', ({ text }) => {
    expect(() => parseConfig('n1.yaml', text.slice(0, 16_000))).toThrow('n1.yaml: is nested too deeply');
  });

  test('is refused when it is long', () => {
    expect(() => parseConfig('n1.yaml', `# ${'x'.repeat(20_000)}`)).toThrow(/has 20002 characters; .* at most 16384/);
  });

  test('is refused when it repeats a part of itself', () => {
    expect(() => parseConfig('n1.yaml', 'a: &a [x]\nb: [*a, *a]')).toThrow('n1.yaml: cannot be read');
  });
});

test('options have their values and lines', () => {
  const text = '# a node\nname: n1\n\nhttp-allowed-hosts: [a.example, b.example]\n';
  expect(parseConfig('n1.yaml', text)).toEqual({
    ...{ path: 'n1.yaml', values: { name: 'n1', 'http-allowed-hosts': ['a.example', 'b.example'] } },
    lines: { name: 2, 'http-allowed-hosts': 4 },
  });
});
