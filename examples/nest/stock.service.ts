import { setTimeout } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { RemoraClient } from 'remora';
import { heldLock, WithLock } from './with-lock.ts';

type Work = (signal: AbortSignal) => Promise<unknown>;

/** Stands for work that takes time, and that stops when `signal` aborts. */
const pack: Work = (signal) => setTimeout(20, undefined, { signal });

/** Sells what is in stock. How much is left is a key in Remora here; it may be in any database that compares fences. */
@Injectable()
export class StockService {
  readonly #remora: RemoraClient;

  constructor(@Inject(RemoraClient) remora: RemoraClient) {
    this.#remora = remora;
  }

  /** Returns how many are left. @throws SoldOutError if there are none. */
  @WithLock('stock/:item', { wait: '30s' })
  async sell({ item }: { readonly item: string }, work = pack): Promise<number> {
    const lock = heldLock();
    const left = (await this.left(item)) - 1;
    if (left < 0) throw new SoldOutError(item);
    await work(lock.signal); // The signal aborts if the lock is lost.
    await this.#remora.kv.put(`stock/${item}`, String(left), { fence: lock });
    return left;
  }

  async left(item: string): Promise<number> {
    return Number((await this.#remora.kv.get(`stock/${item}`))?.text() ?? 0);
  }

  async fill(item: string, left: number): Promise<void> {
    await this.#remora.kv.put(`stock/${item}`, String(left));
  }
}

export class SoldOutError extends Error {
  constructor(item: string) {
    super(`${item} is sold out`);
  }
}
