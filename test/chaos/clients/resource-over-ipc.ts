import type { Resource } from '../workloads/workload.ts';
import type { FromClient, ToClient } from './messages.ts';

/** Forwards to the main process of the run, which has the resource. */
export class ResourceOverIpc implements Resource {
  readonly #send: (message: FromClient) => void;
  readonly #waiting = new Map<number, (value: number | null) => void>();
  #nextId = 1;

  constructor(send: (message: FromClient) => void) {
    this.#send = send;
    process.on('message', (message: ToClient) => {
      if (message.type !== 'answer') return;
      this.#waiting.get(message.id)?.(message.value);
      this.#waiting.delete(message.id);
    });
  }

  async read(lock: string, version: number): Promise<number | undefined> {
    const answer = await this.#ask((id) => ({ type: 'read', id, lock, version }));
    return answer ?? undefined;
  }

  async write(lock: string, version: number, value: number): Promise<boolean> {
    return (await this.#ask((id) => ({ type: 'write', id, lock, version, value }))) !== null;
  }

  #ask(make: (id: number) => FromClient): Promise<number | null> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send(make(id));
    });
  }
}
