import type { Command } from '@remora/protocol';
import { HttpBed } from './http-bed.ts';

interface Page {
  readonly next?: string;
  readonly revision: number;
}

/** `HttpBed` with the calls about keys. */
export class KeysBed extends HttpBed {
  /** Returns the revision of the change. */
  async put(key: string | Buffer, value: unknown = '', more: object = {}): Promise<number> {
    const call = { method: 'PUT', target: `/v1/kv/${encoded(key)}`, body: { value, ...more } };
    return (await this.done<{ readonly modRevision: number }>(call)).modRevision;
  }

  get<Body = Record<string, unknown>>(target: string): Promise<Body> {
    return this.done<Body>({ method: 'GET', target });
  }

  delete<Body = { readonly deleted: number; readonly revision: number }>(target: string): Promise<Body> {
    return this.done<Body>({ method: 'DELETE', target });
  }

  /** A command to the cluster that HTTP does not have. */
  command(command: Command): Promise<void> {
    const { keys } = this.world.backend;
    const done = new Promise<void>((resolve, reject) => {
      keys.command(command, { timeoutMs: 1_000, principal: undefined }, (error) =>
        error === undefined ? resolve() : reject(error),
      );
    });
    return this.world.until(done);
  }

  /** All pages of a list; `field` has its entries. */
  async pages(target: string, field: string): Promise<{ readonly entries: unknown[]; readonly pages: number }> {
    const entries: unknown[] = [];
    let pages = 0;
    let revision: number | undefined;
    for (let after: string | undefined = ''; after !== undefined; pages++) {
      const page: Page = await this.get<Page>(after === '' ? target : `${target}&after=${after}`);
      revision ??= page.revision;
      if (page.revision !== revision) throw new Error('the pages of one list are read at one revision');
      entries.push(...((page as unknown as Record<string, unknown[]>)[field] ?? []));
      after = page.next;
      if (pages > 1_000) throw new Error('the list does not end');
    }
    return { entries, pages };
  }
}

export function encoded(key: string | Buffer): string {
  return [...Buffer.from(key)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
