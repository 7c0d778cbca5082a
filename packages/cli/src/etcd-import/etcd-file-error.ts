/** The file is not a snapshot of etcd, or is damaged or incomplete. The message follows the name of the file. */
export class EtcdFileError extends Error {
  override readonly name = 'EtcdFileError';
}

export function damaged(what: string, cause?: unknown): EtcdFileError {
  return new EtcdFileError(`is damaged: ${what}`, cause === undefined ? {} : { cause });
}
