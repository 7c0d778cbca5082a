import type { Logger } from '@remora/base';

/** How to stop the parts of a node that were started: the last one first. */
export class Closers {
  readonly #closers: { readonly name: string; readonly close: () => unknown }[] = [];

  add(name: string, close: () => unknown): void {
    this.#closers.push({ name, close });
  }

  /** One after the other; a part that cannot be stopped keeps no other from it. */
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
