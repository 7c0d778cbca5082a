/** A client of one gateway: it calls the product's HTTP API as requests do, without a socket. */
import { AdminApi, AuthAdmin, ClusterCalls, HttpApi, WaitSlots } from '@remora/gateway';
import type { EntryDeps } from '../../../packages/cli/src/node/platform.ts';

const WAITS_MAX = 1_000;

export class ApiClient {
  readonly #api: HttpApi;

  constructor(entry: EntryDeps) {
    const { backend, clock, random, logger } = entry;
    const auth = new AuthAdmin({ ...entry, calls: new ClusterCalls(entry) });
    const admin = new AdminApi(entry);
    this.#api = new HttpApi({ backend, admin, auth, clock, random, logger, waits: new WaitSlots(WAITS_MAX, () => {}) });
  }

  /** @throws Error for any answer but success. */
  async call<Answer = unknown>(method: string, target: string, body?: unknown): Promise<Answer> {
    const request = { method, target, ...(body === undefined ? {} : { body }) };
    const { signal } = new AbortController();
    const answer = await this.#api.handle({ ...request, signal, principal: undefined });
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as Answer;
  }
}
