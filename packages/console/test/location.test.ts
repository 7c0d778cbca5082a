import { describe, expect, test } from 'vitest';
import type { JsonBytes } from '../src/logic/bytes.ts';
import { addressOf, numberOf, placeOf, queryOf, textOf } from '../src/logic/location.ts';

function there(address: string) {
  const url = new URL(address, 'http://127.0.0.1:7482');
  return placeOf(url.pathname, url.search);
}

describe('addresses', () => {
  test.each<JsonBytes>(['orders/42', '..', '.', 'a&b=c', 'a+b c', '#', '%2F', '😀', { base64: '/wA=' }])(
    'the name %j comes back from the address of its page, as a browser reads it',
    (name) => {
      const { page, query } = there(addressOf('locks', { namespace: 'default', name }));
      expect(page).toBe('locks');
      expect(query.get('name')).toEqual(name);
    },
  );

  test('what is empty or undefined is left out', () => {
    expect(addressOf('keys', { prefix: '', key: undefined, revision: 0 })).toBe('/console/keys?revision=0');
    expect(addressOf('')).toBe('/console/');
  });

  test('the first page is at /, and below /console/', () => {
    expect(there('/').page).toBe('');
    expect(there('/console/').page).toBe('');
    expect(there('/console/locks/').page).toBe('locks');
  });

  test('a link that was cut or damaged still opens its page', () => {
    const query = queryOf('?namespace=default&name=a%2&=x&after');
    expect([...query]).toEqual([
      ['namespace', 'default'],
      ['after', ''],
    ]);
  });

  test('parameters that are not what a page expects count as absent', () => {
    const query = queryOf('?range=12a&node=3&session=%ff');
    expect(numberOf(query, 'range')).toBeUndefined();
    expect(numberOf(query, 'node')).toBe(3);
    expect(textOf(query, 'session')).toBe('');
  });
});
