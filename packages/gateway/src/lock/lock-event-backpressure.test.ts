import type { LockNews } from '@remora/lock';
import { expect, test } from 'vitest';
import {
  BACKLOG_BYTES_GROWN_MAX,
  BACKLOG_BYTES_MAX,
  LockEventBackpressure,
  sharedBacklog,
} from './lock-event-backpressure.ts';

const PAGE_BYTES = 400_000;
const PAGE: readonly LockNews[] = [{ type: 'live' }];

/**
 * Pages of states, told one after the other before the client can read any, and a client that reads when the test says
 * so.
 */
class Telling {
  begun = 0;
  /** Bytes of the last time that it began. */
  unread = 0;
  told = 0;
  #listening = false;
  readonly #pages: number;
  readonly #stream: LockEventBackpressure;

  constructor(bytes: number, room = sharedBacklog()) {
    this.#pages = bytes / PAGE_BYTES;
    const write = (): number => {
      this.told++;
      this.unread += PAGE_BYTES;
      return this.unread;
    };
    const pause = (): void => {
      this.#listening = false;
    };
    this.#stream = new LockEventBackpressure(write, () => ({ pause, resume: () => this.begin() }), room);
  }

  close(): void {
    this.#listening = false;
    this.#stream.close();
  }

  get complete(): boolean {
    return this.told >= this.#pages;
  }

  begin(): void {
    this.begun++;
    this.told = 0;
    this.#listening = true;
    for (let i = 0; i < this.#pages && this.#listening; i++) this.#stream.send(PAGE);
  }

  read(): void {
    this.unread = 0;
    this.#stream.onDrain();
  }
}

test('who reads all that it is told is told the states of all locks in the end, though they come faster', () => {
  const telling = new Telling(24 * BACKLOG_BYTES_MAX);
  telling.begin();
  for (let i = 0; i < 10 && !telling.complete; i++) telling.read();
  expect([telling.complete, telling.begun]).toEqual([true, 6]);
});

test('who reads nothing is left no more than at first, and a page', () => {
  const telling = new Telling(24 * BACKLOG_BYTES_MAX);
  telling.begin();
  expect(telling.unread).toBeLessThanOrEqual(BACKLOG_BYTES_MAX + PAGE_BYTES);
});

test('nobody is left more than there may be, whatever was read before', () => {
  const telling = new Telling(4 * BACKLOG_BYTES_GROWN_MAX);
  telling.begin();
  for (let i = 0; i < 20; i++) telling.read();
  expect([telling.complete, telling.begun]).toEqual([false, 21]);
  expect(telling.unread).toBeLessThanOrEqual(BACKLOG_BYTES_GROWN_MAX + PAGE_BYTES);
});

test('all of them together are left no more than there is room for, which those who end give back (UN3)', () => {
  const room = sharedBacklog(10 * BACKLOG_BYTES_MAX);
  const reader = new Telling(6 * BACKLOG_BYTES_MAX, room);
  const other = new Telling(6 * BACKLOG_BYTES_MAX, room);
  for (const telling of [reader, other]) telling.begin();
  for (let i = 0; i < 5; i++) for (const telling of [reader, other]) telling.read();
  expect([reader.complete, other.complete, room.bytes]).toEqual([true, false, 10 * BACKLOG_BYTES_MAX]);
  reader.close();
  for (let i = 0; i < 3; i++) other.read();
  expect(other.complete).toBe(true);
  for (const telling of [reader, other, other]) telling.close();
  other.read();
  expect(room.bytes).toBe(0);
});
