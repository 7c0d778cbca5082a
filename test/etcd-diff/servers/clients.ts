/**
 * The generated clients of the etcd API, for any server of it. etcd's member ids take 64 bits, while the generated
 * code, made for this project's server, reads them as numbers: a member is called 1 here, if the server names one.
 */

import { type Client, credentials, makeGenericClientConstructor, type ServiceDefinition } from '@grpc/grpc-js';
import { KVService, LeaseService, WatchService } from '@remora/protocol/etcd';
import type { KVClient, LeaseClient, WatchClient } from '@remora/protocol/grpc-clients';

export interface Clients {
  readonly kv: KVClient;
  readonly lease: LeaseClient;
  readonly watch: WatchClient;
}

export function clientsOf(endpoint: string): Clients {
  return {
    kv: clientOf(KVService, endpoint) as KVClient,
    lease: clientOf(LeaseService, endpoint) as LeaseClient,
    watch: clientOf(WatchService, endpoint) as WatchClient,
  };
}

function clientOf(service: ServiceDefinition, endpoint: string): Client {
  const methods = Object.entries(service).map(([name, method]) => {
    const responseDeserialize = (bytes: Buffer) => method.responseDeserialize(withSmallMemberId(bytes));
    return [name, { ...method, responseDeserialize }];
  });
  const Constructor = makeGenericClientConstructor(Object.fromEntries(methods), 'etcd');
  return new Constructor(endpoint, credentials.createInsecure());
}

/** The header is the first field of all answers; all of its fields are varints. */
const HEADER_TAG = 0x0a;
const MEMBER_ID_TAG = 0x10;
const MORE = 0x80;

export function withSmallMemberId(bytes: Buffer): Buffer {
  if (bytes[0] !== HEADER_TAG) return bytes;
  const start = endOfVarint(bytes, 1);
  const end = start + lengthAt(bytes, 1);
  const kept: number[] = [];
  for (let at = start; at < end; ) {
    const next = endOfVarint(bytes, at + 1);
    kept.push(...(bytes[at] === MEMBER_ID_TAG ? [MEMBER_ID_TAG, 1] : bytes.subarray(at, next)));
    at = next;
  }
  return Buffer.concat([Buffer.from([HEADER_TAG, kept.length, ...kept]), bytes.subarray(end)]);
}

function endOfVarint(bytes: Buffer, from: number): number {
  let at = from;
  while (((bytes[at] ?? 0) & MORE) !== 0) at++;
  return at + 1;
}

function lengthAt(bytes: Buffer, from: number): number {
  let length = 0;
  for (let at = from, shift = 0; at < endOfVarint(bytes, from); at++, shift += 7) {
    length |= ((bytes[at] ?? 0) & (MORE - 1)) << shift;
  }
  return length;
}
