import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { commandLine } from '../src/logic/shell.ts';

describe('command lines', () => {
  test('plain words are not quoted', () => {
    expect(commandLine(['remora', 'lock', 'show', 'orders/42', '--wait', '1m30s'])).toBe(
      'remora lock show orders/42 --wait 1m30s',
    );
  });

  const hostile = ['', "it's", '$(reboot)', '`id`', 'a b', '*', '\u001b[31m', 'a\u202eb', '-rf', '\n; id', '\\', '😀'];

  test.each(hostile)('bash reads the word %j back as it was', (word) => {
    const output = execFileSync('bash', ['-c', `printf %s ${commandLine([word])}`]);
    expect(output.toString('utf8')).toBe(word);
  });

  test('bytes that are not UTF-8 are given by their codes', () => {
    expect(commandLine([{ base64: 'AGH/' }])).toBe("$'\\x00a\\xff'");
  });
});
