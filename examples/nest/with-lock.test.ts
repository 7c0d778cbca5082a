/** `@WithLock` in an application of Nest, on a node of Remora in this process. */
import 'reflect-metadata';
import { type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RemoraClient } from 'remora';
import { startTestCluster, type TestCluster } from 'remora-server/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Locks } from './remora.module.ts';
import { heldLock, WithLock } from './with-lock.ts';

interface Order {
  readonly id: string;
}

@Injectable()
class Orders {
  @WithLock('orders/:id')
  async ship(_order: Order): Promise<string> {
    return heldLock().name;
  }

  @WithLock('orders/:id/:line')
  async pick(_line: { readonly id: string; readonly line: number }, count: number): Promise<string> {
    return `${count} of ${heldLock().name}`;
  }

  @WithLock('nightly')
  async report(): Promise<string> {
    return heldLock().name;
  }

  @WithLock('orders/:id')
  async shipTwice(order: Order): Promise<string> {
    return this.ship(order);
  }

  @WithLock('orders/:id')
  async untilLost(_order: Order, begun: () => void): Promise<string> {
    const { signal } = heldLock();
    begun();
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason.code)));
  }

  // @ts-expect-error: the first argument has no `id`.
  @WithLock('orders/:id')
  async shipAll(_orders: { readonly ids: readonly string[] }): Promise<string> {
    return heldLock().name;
  }
}

let cluster: TestCluster;
let client: RemoraClient;
let app: INestApplicationContext;
let orders: Orders;

async function startApp(remora: RemoraClient): Promise<INestApplicationContext> {
  @Module({ providers: [{ provide: RemoraClient, useValue: remora }, Locks, Orders] })
  class TestModule {}
  return NestFactory.createApplicationContext(TestModule, { logger: false });
}

beforeAll(async () => {
  cluster = await startTestCluster();
  client = await cluster.connect();
  app = await startApp(client);
  orders = app.get(Orders);
});
afterAll(async () => {
  await app?.close();
  await cluster?.stop();
});

test.each([
  { made: 'orders/42', call: () => orders.ship({ id: '42' }) },
  { made: '3 of orders/42/7', call: () => orders.pick({ id: '42', line: 7 }, 3) },
  { made: 'nightly', call: () => orders.report() },
])('a name is made of the properties of the first argument: $made', async ({ made, call }) => {
  expect(await call()).toBe(made);
});

test.each([
  { wrong: 'a missing property', call: () => orders.shipAll({ ids: ['42'] }) },
  { wrong: 'empty text', call: () => orders.ship({ id: '' }) },
  { wrong: 'no argument', call: () => (orders.ship as () => Promise<string>)() },
])('$wrong is rejected before anything is locked', async ({ call }) => {
  await expect(call()).rejects.toThrow("@WithLock('orders/:id'): :id has to be");
});

test('a method that would wait for itself is rejected, and enters again with `reentrant`', async () => {
  await expect(orders.shipTwice({ id: '1' })).rejects.toMatchObject({ code: 'LOCK_SELF_WAIT' });
  const reentrant = await startApp(await cluster.connect({ reentrant: true }));
  expect(await reentrant.get(Orders).shipTwice({ id: '1' })).toBe('orders/1');
  await reentrant.close();
});

test('a method learns that its lock is lost', async () => {
  let isOver: Promise<string> | undefined;
  await new Promise<void>((begun) => {
    isOver = orders.untilLost({ id: '2' }, begun);
  });
  await client.locks.forceRelease('orders/2');
  expect(await isOver).toBe('LOCK_NOT_HELD');
});

test('outside of such a method there is no lock', () => {
  expect(() => heldLock()).toThrow('outside of a method with @WithLock');
});
