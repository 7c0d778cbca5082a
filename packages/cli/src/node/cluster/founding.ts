/**
 * How this node founds its cluster, if it is a founder (master/ranges/founding.ts).
 *
 * FN1. Beyond loopback, a cluster is founded with authentication, unless `--insecure anonymous` says otherwise. On
 *      loopback, it is if `--initial-root-password-file` is given.
 * FN2. The password is read once, at the start of a founder that has not heard of users yet, and only its hash goes on.
 *      Neither is logged.
 * FN3. A file that cannot be read, or holds no password, stops a node that has never been in a cluster. For others the
 *      file is most likely not needed any more.
 */
import { checkPassword, type PasswordHasher } from '@remora/auth';
import { type Random, ServiceError } from '@remora/base';
import type { FoundingPlan } from '@remora/master';
import { CommandError } from '../../exit-codes.ts';
import { exposedAddress } from '../../exposure.ts';
import type { NodeOptions } from '../../node-options.ts';
import type { NodeRecords } from '../node-records.ts';
import type { NodePlatform } from '../platform.ts';

export interface FoundingPlanDeps {
  readonly options: Pick<NodeOptions, 'initialRootPasswordFile' | 'clientListen' | 'httpListen' | 'insecure'>;
  readonly records: Pick<NodeRecords, 'knownNodes' | 'knownAuth'>;
  readonly platform: Pick<NodePlatform, 'readSecret'>;
  readonly hasher: Pick<PasswordHasher, 'hash'>;
  readonly random: Pick<Random, 'bytes'>;
}

const TOKEN_KEY_BYTES = 32;
/** The revision of a cluster that has never had users. */
const FIRST_REVISION = 1;

/** @throws CommandError `usage` for a password that cannot be used (FN3). */
export async function foundingPlan({
  options,
  records,
  platform,
  hasher,
  random,
}: FoundingPlanDeps): Promise<FoundingPlan> {
  const { initialRootPasswordFile: file, insecure } = options;
  const tokenKey = random.bytes(TOKEN_KEY_BYTES);
  if (file === undefined) {
    const isOpen = exposedAddress(options) === undefined || insecure.includes('anonymous');
    return isOpen ? { kind: 'open' } : { kind: 'certificate', root: { passwordHash: '', tokenKey } };
  }
  const hasUsers = (records.knownAuth?.revision ?? 0) > FIRST_REVISION;
  if (hasUsers) return { kind: 'password', root: undefined };
  try {
    const passwordHash = await hasher.hash(await passwordIn(file, platform));
    return { kind: 'password', root: { passwordHash, tokenKey } };
  } catch (error) {
    if (isFresh(records)) throw error;
    return { kind: 'password', root: undefined };
  }
}

/** Whether the node has never heard from the masters of a cluster. */
export function isFresh({ knownNodes }: Pick<NodeRecords, 'knownNodes'>): boolean {
  return knownNodes.length === 0;
}

/** The first line of the file, which is all of it. */
async function passwordIn(file: string, { readSecret }: FoundingPlanDeps['platform']): Promise<string> {
  const given = `--initial-root-password-file ${file}`;
  let text: string;
  try {
    text = await readSecret(file);
  } catch (cause) {
    throw new CommandError('usage', `cannot read ${given}: ${(cause as Error).message}`, { cause });
  }
  const password = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(password)) throw new CommandError('usage', `${given} has several lines; a password is one line`);
  try {
    checkPassword(password);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new CommandError('usage', `${given} holds no password that can be used: ${error.message}`, { cause: error });
  }
  return password;
}
