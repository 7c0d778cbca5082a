// Two instances of one application sell the same lamps.
import 'reflect-metadata';
import { EventEmitter, once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { RemoraClient, type RemoraError } from 'remora';
import { AppModule } from './app.module.ts';
import { SoldOutError, StockService } from './stock.service.ts';

const LAMPS = 5;
const CUSTOMERS = 8;
const LAMP = { item: 'lamp' };

const [first, second] = await Promise.all([startInstance(), startInstance()]);
const stocks = [first.get(StockService), second.get(StockService)] as const;
await sellAtOnce();
await loseTheLock();
await shutDown();
await second.close();

async function startInstance() {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  return app.enableShutdownHooks(); // SIGTERM closes the application, which closes the client.
}

/** Each sale reads how many are left, works, and writes one less. Without the lock, two sales would read the same. */
async function sellAtOnce(): Promise<void> {
  await stocks[0].fill(LAMP.item, LAMPS);
  const sales = Array.from({ length: CUSTOMERS }, (_, at) => stocks[at % 2 === 0 ? 0 : 1].sell(LAMP));
  const results = await Promise.allSettled(sales);
  const sold = results.filter(({ status }) => status === 'fulfilled').length;
  const late = results.filter((result) => result.status === 'rejected' && result.reason instanceof SoldOutError).length;
  console.log(`${LAMPS} lamps, ${CUSTOMERS} customers: ${sold} bought one, ${late} came too late`);
}

/** A sale stops when its lock is lost, and writes nothing. */
async function loseTheLock(): Promise<void> {
  await stocks[0].fill(LAMP.item, LAMPS);
  const sale = await beginSale();
  await second.get(RemoraClient).locks.forceRelease('stock/lamp');
  const outcome = await sale.result.catch((error: Error) => error.name);
  console.log(`lock taken by force: ${outcome}, ${await stocks[1].left(LAMP.item)} lamps left`);
}

/** A sale that holds the lock ends. One that waits for the lock does not begin. Then the lock is free. */
async function shutDown(): Promise<void> {
  const sale = await beginSale();
  const waiting = stocks[0].sell(LAMP).catch((error: RemoraError) => error.code);
  const closed = first.close();
  console.log(`shutdown of the first instance: the waiting sale ends with ${await waiting}`);
  sale.packed();
  console.log(`the running one is completed, ${await sale.result} lamps left`);
  await closed;
  console.log(`the second instance sells on, ${await stocks[1].sell(LAMP)} lamps left`);
}

/** Returns once the first instance sells a lamp. The sale takes until `packed` is called. */
async function beginSale(): Promise<{ readonly result: Promise<number>; readonly packed: () => void }> {
  const steps = new EventEmitter();
  const begun = once(steps, 'begun');
  const result = stocks[0].sell(LAMP, (signal) => {
    steps.emit('begun');
    return once(steps, 'packed', { signal });
  });
  await begun;
  return { result, packed: () => steps.emit('packed') };
}
