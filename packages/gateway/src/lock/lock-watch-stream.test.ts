import { utf8 } from '@remora/base';
import type { LockNews } from '@remora/lock';
import { expect, test } from 'vitest';
import type { Backend, LockWatchListener } from '../backend.ts';
import { lockEvents } from '../http/lock-events.ts';
import { BACKLOG_BYTES_MAX, sharedBacklog } from './lock-event-backpressure.ts';
import { LockWatchStream } from './lock-watch-stream.ts';

const OPTIONS = { namespace: 'n', name: utf8('p/'), single: false };

/** A backend with states of locks, each of which has so many bytes; begins on the stack when it is resumed. */
class Locks {
  begun = 0;
  paused = 0;
  #listener: LockWatchListener = () => {};
  readonly #states: readonly LockNews[];

  constructor(count: number, bytes: number) {
    this.#states = Array.from({ length: count }, (_, i) => ({
      type: 'state',
      lock: { namespace: 'n', name: utf8(`p/${i}`.padEnd(bytes, '.')) },
      revision: i,
      state: undefined,
    }));
  }

  readonly backend = {
    watchLocks: (_options: unknown, listener: LockWatchListener) => {
      this.#listener = listener;
      return { cancel() {}, pause: () => this.paused++, resume: () => this.begin() };
    },
  } as unknown as Backend;

  begin(): void {
    this.begun++;
    this.#listener([{ type: 'begin', from: utf8('p/'), to: utf8('p0') }, ...this.#states, { type: 'live' }]);
  }

  happen(): void {
    const lock = { namespace: 'n', name: utf8('p/0') };
    this.#listener([{ type: 'events', lock, revision: 9, events: [{ type: 'passing', count: 1 }] }]);
  }
}

/** What was written to a client, which takes it when the test says so; it is behind from `full` messages on. */
class Client {
  readonly told: string[] = [];
  readonly #unread: number[] = [];
  readonly #full: number;

  constructor(full: number) {
    this.#full = full;
  }

  write(type: string, bytes: number): boolean {
    this.told.push(type);
    this.#unread.push(bytes);
    return this.#unread.length < this.#full;
  }

  get messages(): number {
    return this.#unread.length;
  }

  get bytes(): number {
    return this.#unread.reduce((sum, one) => sum + one, 0);
  }

  takeAll(): void {
    this.#unread.length = 0;
  }

  count(type: string): number {
    return this.told.filter((one) => one === type).length;
  }
}

interface Watching {
  onDrain(): void;
}

const WAYS: readonly { name: string; watch: (locks: Locks, client: Client) => Watching }[] = [
  {
    name: 'gRPC',
    watch: ({ backend }, client) => {
      const stream = new LockWatchStream(
        backend,
        sharedBacklog(),
        {
          write: ({ news }) => client.write(news?.$case ?? '', 1_000),
          unread: () => client.messages,
          end() {},
        },
        { seen: { newest: 0 }, principal: undefined },
      );
      stream.onRequest({ namespace: 'n', target: { $case: 'prefix', value: Buffer.from('p/') } });
      return stream;
    },
  },
  {
    name: 'HTTP',
    watch: ({ backend }, client) =>
      lockEvents(backend, sharedBacklog(), { ...OPTIONS, principal: undefined })({
        write: (type, data) => (client.write(type, JSON.stringify(data).length) ? 0 : client.bytes),
        end() {},
      }),
  },
];

test.each(WAYS)('$name: more locks than a stream takes at once are told, and live once', ({ watch }) => {
  const [locks, client] = [new Locks(300, 20), new Client(16)];
  const watching = watch(locks, client);
  locks.begin();
  for (let i = 0; i < 10; i++) {
    client.takeAll();
    watching.onDrain();
  }
  expect([client.count('state'), client.count('live')]).toEqual([300, 1]);
  expect([locks.begun, locks.paused]).toEqual([1, 0]);
});

test.each(WAYS)('$name: a client that leaves too much unread is paused, and starts again afterwards', ({ watch }) => {
  const [locks, client] = [new Locks(900, 1_000), new Client(16)];
  const watching = watch(locks, client);
  locks.begin();
  expect([client.count('live'), locks.paused]).toEqual([1, 0]);
  // Not read either: what is told at a time is told whole.
  locks.begin();
  expect([client.count('live'), locks.paused]).toEqual([2, 0]);
  const { length } = client.told;
  expect(length).toBeGreaterThan(BACKLOG_BYTES_MAX / 1_100);
  for (let i = 0; i < 10; i++) locks.begin();
  expect([client.told.length, locks.paused]).toEqual([length, 1]);
  client.takeAll();
  watching.onDrain();
  expect(client.told.slice(length).filter((type) => type !== 'state')).toEqual(['begin', 'live']);
  expect([client.count('live'), locks.paused]).toEqual([3, 1]);
});

test.each(WAYS)(
  '$name: states that are larger than that in one are told once, and what happens behind them',
  ({ watch }) => {
    const [locks, client] = [new Locks(3_000, 1_000), new Client(16)];
    const watching = watch(locks, client);
    locks.begin();
    expect([client.count('state'), client.count('live'), locks.paused]).toEqual([3_000, 1, 0]);
    client.takeAll();
    watching.onDrain();
    const { length } = client.told;
    locks.happen();
    expect([client.told.length - length, locks.begun, locks.paused]).toEqual([1, 1, 0]);
  },
);
