/**
 * Divides the ranges of a cluster whose replicas are spread. A split leaves its halves where the range was, so hundreds
 * of nodes get thousands of ranges without moving thousands of replicas.
 */
import { type Clock, compareBytes, sleep } from '@remora/base';
import { readRoutingKey, routingKeyText } from '@remora/protocol';
import type { ApiClient } from './api-client.ts';

interface RangeSeen {
  readonly id: number;
  readonly start: string;
  readonly end: string;
  readonly epoch: { readonly confVersion: number; readonly version: number };
}

const FIRST = '-';
const PAGE = 500;
const ROUNDS_MAX = 100;
const REST_MS = 1_000;

/** In the order of the keys, and as the cluster writes them. */
export function inOrder(borders: readonly string[]): readonly string[] {
  const keys = borders.map((text) => {
    const read = readRoutingKey(text);
    if (read?.ok !== true) throw new Error(`no range can begin at ${text}`);
    return read.key;
  });
  return keys.sort(compareBytes).map((key) => routingKeyText(key));
}

/** Splits until a range begins at each of the borders, which are in order. */
export async function divide(clock: Clock, client: ApiClient, borders: readonly string[]): Promise<void> {
  const places = new Map(borders.map((border, place) => [border, place]));
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const splits = (await allRanges(client)).flatMap(({ id, start, end, epoch }) => {
      const first = start === FIRST ? 0 : (places.get(start) ?? 0) + 1;
      const last = end === FIRST ? borders.length : (places.get(end) ?? 0);
      const at = borders[Math.floor((first + last - 1) / 2)];
      return first < last && at !== undefined ? [{ id, at, epoch }] : [];
    });
    if (splits.length === 0) return;
    const asked = splits.map(({ id, at, epoch }) =>
      client.call('POST', `/v1/cluster/ranges/${id}/split`, { at, ...epoch }),
    );
    // What is refused now, the next round asks for again.
    await Promise.allSettled(asked);
    await sleep(clock, REST_MS);
  }
  throw new Error(`the ranges are not divided after ${ROUNDS_MAX} rounds`);
}

async function allRanges(client: ApiClient): Promise<readonly RangeSeen[]> {
  const found: RangeSeen[] = [];
  for (let from: string | undefined = ''; from !== undefined; ) {
    const query: string = from === '' ? '' : `&from=${encodeURIComponent(from)}`;
    const page: Page = await client.call<Page>('GET', `/v1/cluster/ranges?limit=${PAGE}${query}`);
    found.push(...page.ranges);
    from = page.next;
  }
  return found;
}

interface Page {
  readonly ranges: readonly RangeSeen[];
  readonly next?: string;
}
