/**
 * Appends to lists. Each append puts a unique value, so that the key's history in the store is the list. Some clients
 * send each request several times under one id: it must be applied once.
 */
import type { Request } from '../../checkers/index.ts';
import type { KvClient } from '../clients/kv-client.ts';
import { RepeatingWriter } from '../clients/repeating-writer.ts';
import { SdkKv } from '../clients/sdk-kv.ts';
import { asked } from './registers.ts';
import { type MakeWorkers, namesFor } from './workload.ts';

const KEYS = 2;

export function listKeys(r: number): readonly string[] {
  return Array.from({ length: KEYS }, (_, i) => keyOf(r, i));
}

function keyOf(r: number, i: number): string {
  return `list/${r}/${i}`;
}

export const lists: MakeWorkers = (client) => {
  const writers: readonly Pick<KvClient, 'name' | 'put'>[] = [
    new RepeatingWriter(`${client.name}.repeats1`, client.endpoints, client.access),
    new RepeatingWriter(`${client.name}.repeats2`, client.endpoints, client.access),
    new SdkKv(`${client.name}.appends`, client.hasty),
    client.raw,
  ];
  const value = namesFor(client, 'l');
  return writers.map((writer) => async () => {
    const r = client.journal.round;
    const k = keyOf(r, client.random.int(KEYS));
    const v = value();
    const request: Request = { c: writer.name, k, op: 'append', v };
    await asked(client, r, request, () => writer.put(k, v));
  });
};
