import { type ChannelCredentials, Metadata } from '@grpc/grpc-js';
import { AuthClient } from '@remora/protocol/grpc-clients';
import type { Access } from '../users/access.ts';

const TIMEOUT_MS = 5_000;
/** Between two log-ins that failed. */
const PAUSE_MS = 1_000;

/** Logs in as clients of etcd do: one token for all requests, and another one when it is refused. */
export class EtcdLogIn {
  readonly #client: AuthClient;
  readonly #access: Access;
  #token: Promise<string | undefined> | undefined;

  constructor(endpoint: string, channel: ChannelCredentials, access: Access) {
    this.#client = new AuthClient(endpoint, channel);
    this.#access = access;
  }

  /** Undefined: the log-in failed. */
  token(): Promise<string | undefined> {
    this.#token ??= this.#logIn();
    return this.#token;
  }

  forget(): void {
    this.#token = undefined;
  }

  close(): void {
    this.#client.close();
  }

  #logIn(): Promise<string | undefined> {
    const { user: name = '', password = '' } = this.#access;
    const limits = { deadline: Date.now() + TIMEOUT_MS };
    return new Promise((resolve) => {
      this.#client.authenticate({ name, password }, new Metadata(), limits, (error, answer) => {
        if (error === null) return resolve(answer.token);
        setTimeout(() => {
          this.forget();
          resolve(undefined);
        }, PAUSE_MS);
      });
    });
  }
}
