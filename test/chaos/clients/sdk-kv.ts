import { ServiceError } from '@remora/base';
import type { RemoraClient } from 'remora';
import { done, type KvClient, type Outcome, UNKNOWN } from './kv-client.ts';

/**
 * The SDK as users have it: it retries under one request id, through any gateway, until its time-out. Its errors are
 * taken literally: a request that does not end with UNKNOWN_OUTCOME or CANCELED was not applied.
 */
export class SdkKv implements KvClient {
  readonly name: string;
  readonly #client: RemoraClient;

  constructor(name: string, client: RemoraClient) {
    this.name = name;
    this.#client = client;
  }

  get(key: string): Promise<Outcome> {
    return outcomeOf(async () => {
      const found = await this.#client.kv.get(key);
      return { type: 'done', ok: true, out: found?.value.toString() ?? null };
    });
  }

  put(key: string, value: string): Promise<Outcome> {
    return outcomeOf(async () => {
      const { revision } = await this.#client.kv.put(key, value);
      return done(revision);
    });
  }

  delete(key: string): Promise<Outcome> {
    return outcomeOf(async () => {
      const { revision, deleted } = await this.#client.kv.delete(key);
      return deleted === 0 ? done() : done(revision);
    });
  }

  compareAndSet(key: string, expected: string | null, value: string): Promise<Outcome> {
    return outcomeOf(async () => {
      const { succeeded, revision } = await this.#client.kv.txn({
        compare: [
          expected === null
            ? { key, target: 'createRevision', is: '=', than: 0 }
            : { key, target: 'value', is: '=', than: expected },
        ],
        success: [{ put: key, value }],
      });
      return { type: 'done', ok: succeeded, ...(succeeded && { revision }) };
    });
  }
}

/** What an error of the SDK says about the request. */
async function outcomeOf(run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.mayBeApplied || error.code === 'CANCELED') return UNKNOWN;
    return { type: 'failed', why: error.code, detail: error.message };
  }
}
