import { describe, expect, test } from 'vitest';
import { PeerAddresses } from './peer-addresses.ts';

type Known = Readonly<Record<number, string>>;

function addresses(known: { proxies?: Known; registered?: Known; hinted?: Known } = {}) {
  const { proxies = {}, registered = {}, hinted = {} } = known;
  return new PeerAddresses({
    proxy: (nodeId) => proxies[nodeId],
    registered: (nodeId) => registered[nodeId],
    hinted: (nodeId) => hinted[nodeId],
  });
}

describe('the address of a node', () => {
  test('is what the masters report, before what the options say', () => {
    expect(addresses({ registered: { 2: 'a:1' }, hinted: { 2: 'b:1' } }).next(2)).toBe('a:1');
    expect(addresses({ hinted: { 2: 'b:1' } }).next(2)).toBe('b:1');
    expect(addresses().next(2)).toBeUndefined();
  });

  test('changes with each failed attempt, and all of them have their turn (PA2)', () => {
    const book = addresses({ registered: { 2: 'old:1' }, hinted: { 2: 'new:1' } });
    book.told(2, 'said:1');
    const dialled = [0, 1, 2, 3].map(() => {
      const address = book.next(2) ?? '';
      book.failed(2, address);
      return address;
    });
    expect(dialled).toEqual(['said:1', 'old:1', 'new:1', 'said:1']);
  });

  test('stays while it works, and a late failure of another one changes nothing', () => {
    const book = addresses({ registered: { 2: 'old:1' }, hinted: { 2: 'new:1' } });
    book.failed(2, 'old:1');
    book.told(2, 'new:1');
    book.failed(2, 'old:1');
    expect(book.next(2)).toBe('new:1');
  });

  test('is what the node itself said last, until that fails (PA2)', () => {
    const book = addresses({ registered: { 2: 'old:1' } });
    book.told(2, 'said:1');
    book.told(2, '[::1]:7481');
    expect(book.next(2)).toBe('[::1]:7481');
    book.failed(2, '[::1]:7481');
    expect(book.next(2)).toBe('old:1');
  });

  test('is what another node says, if that is new, until it fails', () => {
    const book = addresses({ registered: { 2: 'old:1' } });
    book.passedOn(2, 'new:1');
    expect(book.next(2)).toBe('new:1');
    book.failed(2, 'new:1');
    expect(book.next(2)).toBe('old:1');
    book.passedOn(2, 'new:1');
    expect(book.next(2)).toBe('old:1');
  });

  test('of a node that the masters have not named is not what another node says (PA3)', () => {
    const book = addresses({ hinted: { 2: 'mine:1' } });
    book.passedOn(2, 'false:1');
    book.passedOn(3, 'false:1');
    expect([book.next(2), book.next(3)]).toEqual(['mine:1', undefined]);
  });

  test('is not one that cannot be dialled', () => {
    const book = addresses({ registered: { 2: 'old:1' } });
    book.told(2, '');
    book.told(2, 'nonsense');
    book.passedOn(2, 'nonsense');
    book.told(2, 'a:99999');
    expect(book.next(2)).toBe('old:1');
  });

  test('with one source stays the same after failures', () => {
    const book = addresses({ registered: { 2: 'old:1' } });
    book.failed(2, 'old:1');
    expect(book.next(2)).toBe('old:1');
  });

  test('is dropped once its only source names another one', () => {
    const registered: Record<number, string> = { 2: 'old:1' };
    const book = addresses({ registered });
    book.failed(2, 'old:1');
    registered[2] = 'new:1';
    expect(book.next(2)).toBe('new:1');
  });

  test('is the proxy of the node, whatever others say (PA4)', () => {
    const book = addresses({ proxies: { 2: 'proxy:1' }, registered: { 2: 'old:1' }, hinted: { 2: 'new:1' } });
    book.told(2, 'said:1');
    book.failed(2, 'proxy:1');
    expect(book.next(2)).toBe('proxy:1');
  });
});
