/** The calls of a client of ZooKeeper that the locks need, as `node-zookeeper-client` has them. */
export interface ZooKeeperClient {
  getState(): { readonly name: string };
  /** In milliseconds, as the server granted it. */
  getSessionTimeout(): number;
  create(path: string, data: Buffer, mode: number, done: ZooKeeperDone<string>): void;
  setData(path: string, data: Buffer, done: ZooKeeperDone<unknown>): void;
  getChildren(path: string, done: ZooKeeperDone<string[]>): void;
  remove(path: string, done: (error: unknown) => void): void;
  on(event: 'connected' | 'disconnected' | 'expired', listener: () => void): unknown;
}

/** `error`: null or undefined if the call succeeded. */
export type ZooKeeperDone<Result> = (error: unknown, result: Result) => void;

/** Of ZooKeeper's protocol. */
export const CREATE = { persistent: 0, ephemeralSequential: 3 } as const;

const CODES = { noNode: -101, nodeExists: -110, sessionExpired: -112 } as const;

export const isNoNode = (error: unknown): boolean => codeOf(error) === CODES.noNode;
export const isNodeExists = (error: unknown): boolean => codeOf(error) === CODES.nodeExists;
export const isSessionExpired = (error: unknown): boolean => codeOf(error) === CODES.sessionExpired;

export function expired(): Error {
  return Object.assign(new Error('the session of the client of ZooKeeper has expired'), { code: CODES.sessionExpired });
}

function codeOf(error: unknown): number | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'number' ? code : undefined;
}
