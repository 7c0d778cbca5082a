/** The definitions of etcd's API as data, made from its protobuf files (`scripts/etcd-schema.mjs`). */
export interface EtcdSchema {
  /** By full name; fields in the order of their numbers. */
  readonly messages: Readonly<Record<string, readonly EtcdField[]>>;
  /** Names and numbers, by the enum's full name. */
  readonly enums: Readonly<Record<string, readonly (readonly [string, number])[]>>;
  /** By the service's full name, then by method, as in the generated services. */
  readonly services: Readonly<Record<string, Readonly<Record<string, EtcdMethod>>>>;
}

export interface EtcdField {
  /** In the protobuf file: `range_end`. */
  readonly name: string;
  /** In generated messages, and the other form in JSON: `rangeEnd`. */
  readonly key: string;
  readonly kind: 'bytes' | 'string' | 'bool' | 'int64' | 'uint64' | 'int32' | 'uint32' | 'enum' | 'message';
  /** The full name of the message or enum. */
  readonly of?: string;
  readonly repeated?: true;
  /** In generated messages, the name of the union that the field is a case of. */
  readonly oneof?: string;
  /** A number of 64 bits that generated messages have as a number instead of a bigint. */
  readonly asNumber?: true;
}

export interface EtcdMethod {
  readonly request: string;
  readonly response: string;
  /** A stream of requests, or of responses. */
  readonly requests?: true;
  readonly responses?: true;
}
