import { type DynamicModule, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type AcquireOptions, type ConnectOptions, connect, type HeldLock, RemoraClient, type Work } from 'remora';

/** The client of Remora, for the whole application: connected before it starts, and closed when it shuts down. */
@Module({})
export class RemoraModule {
  static forRoot(options: ConnectOptions): DynamicModule {
    const client = { provide: RemoraClient, useFactory: () => connect(options) };
    return { module: RemoraModule, global: true, providers: [client, Locks], exports: [RemoraClient, Locks] };
  }
}

/** Runs work under locks. When the application shuts down, work that holds a lock ends before the client is closed. */
@Injectable()
export class Locks implements OnApplicationShutdown {
  readonly #client: RemoraClient;
  readonly #running = new Set<Promise<unknown>>();
  readonly #shutdown = new AbortController();

  constructor(@Inject(RemoraClient) client: RemoraClient) {
    this.#client = client;
  }

  /** @throws RemoraError LOCK_TIMEOUT after `wait`; CANCELED if the application shuts down before the lock is held. */
  async run<Result>(name: string, options: AcquireOptions, work: Work<HeldLock, Result>): Promise<Result> {
    const running = this.#client.lock(name).run({ signal: this.#shutdown.signal, ...options }, work);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    this.#shutdown.abort(); // Work that still waits for its lock does not begin.
    await Promise.allSettled(this.#running);
    await this.#client.close();
  }
}
