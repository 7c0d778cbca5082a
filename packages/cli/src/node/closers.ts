import type { Logger } from '@remora/base';

/** Stops the parts of a node that were started: the last one first. */
export class Closers {
  readonly #closers: { readonly name: string; readonly close: () => unknown }[] = [];

  add(name: string, close: () => unknown): void {
    this.#closers.push({ name, close });
  }

  /** One after the other; a failure to stop one part does not prevent the others from stopping. */
  async close(logger: Logger): Promise<void> {
    for (const { name, close } of this.#closers.reverse()) {
      try {
        await close();
      } catch (error) {
        logger.warn({ part: name, error: String(error) }, 'could not stop a part');
      }
    }
  }
}
