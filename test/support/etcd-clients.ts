/**
 * The generated clients of the etcd API, for any server of it.
 *
 * The header of a response, its first field, is skipped: etcd's member and cluster ids take 64 bits, while the
 * generated code, made for this project's server, reads them as numbers.
 */

import {
  type ChannelCredentials,
  type Client,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { KVService, LeaseService, v3electionpb, v3lockpb } from '@remora/protocol/etcd';
import type { ElectionClient, EtcdLockClient, KVClient, LeaseClient } from '@remora/protocol/grpc-clients';

const HEADER_TAG = 0x0a;

/** `channel`: TLS, and who connects; undefined: plain text. */
export function kvClient(address: string, channel?: ChannelCredentials): KVClient {
  return clientOf(KVService, address, channel) as KVClient;
}

export function leaseClient(address: string): LeaseClient {
  return clientOf(LeaseService, address) as LeaseClient;
}

export function lockClient(address: string): EtcdLockClient {
  return clientOf(v3lockpb.LockService, address) as EtcdLockClient;
}

export function electionClient(address: string): ElectionClient {
  return clientOf(v3electionpb.ElectionService, address) as ElectionClient;
}

function clientOf(service: ServiceDefinition, address: string, channel = credentials.createInsecure()): Client {
  const methods = Object.entries(service).map(([name, method]) => {
    const responseDeserialize = (bytes: Buffer) => method.responseDeserialize(withoutHeader(bytes));
    return [name, { ...method, responseDeserialize }];
  });
  const Constructor = makeGenericClientConstructor(Object.fromEntries(methods), 'bench');
  return new Constructor(address, channel);
}

function withoutHeader(bytes: Buffer): Buffer {
  if (bytes[0] !== HEADER_TAG) return bytes;
  let at = 1;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return bytes.subarray(at + length);
}
