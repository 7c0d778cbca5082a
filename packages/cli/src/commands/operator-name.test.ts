import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { operatorName } from './operator-name.ts';

test('who forces a release has a name also where the system does not know the user', () => {
  expect(operatorName(() => 'ann')).toBe(`ann@${hostname()}`);
  const unknown = () => {
    throw new Error('uv_os_get_passwd returned ENOENT');
  };
  expect(operatorName(unknown)).toBe(`${process.getuid?.() ?? 'unknown'}@${hostname()}`);
});
