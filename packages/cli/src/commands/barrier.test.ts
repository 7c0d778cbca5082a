import { ServiceError } from '@remora/base';
import type { RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { pass } from './barrier.ts';

type Barriers = Pick<RemoraClient, 'barrier' | 'doubleBarrier'>;

const flags = { namespace: 'default', parties: 2, wait: 5_000, endpoints: '', timeout: 1_000, discover: true };

function barriers(parts: { readonly enter?: ServiceError; readonly leave?: ServiceError }): Barriers {
  const settle = <T>(error: ServiceError | undefined, value: T): Promise<T> =>
    error === undefined ? Promise.resolve(value) : Promise.reject(error);
  const stay = { leave: () => settle(parts.leave, undefined) };
  return { doubleBarrier: () => ({ enter: () => settle(parts.enter, stay) }) } as unknown as Barriers;
}

async function passing(client: Barriers): Promise<string> {
  let told = '';
  await pass(client, { name: 'round', flags, shell: { err: (text) => (told += text) } });
  return told;
}

test('who waited until all were there has passed, also when another one stays there for longer', async () => {
  expect(await passing(barriers({}))).toBe('');
  const late = barriers({ leave: new ServiceError('LOCK_TIMEOUT', 'others are still there') });
  expect(await passing(late)).toContain('could not confirm that all parties left round');
});

test('who gave up before all were there has not passed', async () => {
  const alone = barriers({ enter: new ServiceError('LOCK_TIMEOUT', 'nobody else came') });
  await expect(passing(alone)).rejects.toThrow('nobody else came');
});
