/** The calls of a client of etcd that the locks need, as `etcd3` has them. A namespace of a client has them, too. */
export interface EtcdClient {
  lease(ttlSeconds: number, options: { readonly autoKeepAlive: boolean }): EtcdLease;
  get(key: string): EtcdGet;
  getAll(): EtcdGetAll;
  if(key: string, column: 'Create', is: '==', revision: number): EtcdIf;
}

export interface EtcdLease {
  /** Its id, in decimal. */
  grant(): Promise<string>;
  put(key: string): EtcdPut;
  keepaliveOnce(): Promise<unknown>;
  /** Whether the client knows that the lease has ended. */
  revoked(): boolean;
  revoke(): Promise<void>;
}

export interface EtcdPut {
  value(value: string): EtcdPut;
  op(): Promise<object>;
  exec(): Promise<unknown>;
}

export interface EtcdGet {
  exec(): Promise<EtcdFound>;
}

export interface EtcdGetAll extends EtcdGet {
  prefix(prefix: string): EtcdGetAll;
  sort(by: 'Create', order: 'Ascend'): EtcdGetAll;
  limit(count: number): EtcdGetAll;
}

export interface EtcdIf {
  then(put: EtcdPut): EtcdIf;
  commit(): Promise<{ readonly succeeded: boolean; readonly header: { readonly revision: string } }>;
}

export interface EtcdFound {
  readonly kvs: readonly { readonly key: Uint8Array; readonly create_revision: string }[];
}
