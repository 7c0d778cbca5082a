import { printableText } from '../format/bytes-text.ts';
import { counted, sizeText } from '../format/sizes.ts';
import type { EtcdSnapshot } from './etcd-snapshot.ts';
import type { Imported } from './import.ts';

/** What a snapshot holds, below the prefix that was asked for. */
export interface SnapshotSummary {
  readonly keys: number;
  /** Of keys and values, as etcd stores them. */
  readonly bytes: number;
  /** The largest pair. */
  readonly largestBytes: number;
  readonly keysOfLeases: number;
}

export async function summaryOf(snapshot: EtcdSnapshot): Promise<SnapshotSummary> {
  let [keys, bytes, largestBytes, keysOfLeases] = [0, 0, 0, 0];
  for await (const { length, lease } of snapshot.keys()) {
    keys++;
    bytes += length;
    largestBytes = Math.max(largestBytes, length);
    if (lease !== 0n) keysOfLeases++;
  }
  return { keys, bytes, largestBytes, keysOfLeases };
}

export function summaryText(snapshot: EtcdSnapshot, summary: SnapshotSummary): string {
  const { storageVersion, revision, compacted, authEnabled, members, alarms } = snapshot.facts;
  const { keys, bytes, largestBytes, keysOfLeases } = summary;
  const rows: readonly (readonly [string, string])[] = [
    [
      'written by',
      storageVersion === undefined ? 'etcd 3.5 or older' : `etcd, storage version ${printableText(storageVersion)}`,
    ],
    ['revision', `${revision}${compacted === 0 ? '' : `, compacted at ${compacted}`}`],
    ['keys', `${keys}, ${sizeText(bytes)}; the largest has ${sizeText(largestBytes)}`],
    ['of leases', `${counted(keysOfLeases, 'key')} of ${counted(snapshot.leases.size, 'lease')}`],
    ['users', `${usersText(snapshot)}; authentication is ${authEnabled ? 'on' : 'off'}`],
    ['ignored', ignoredText(members, alarms)],
  ];
  return rows.map(([name, text]) => `${name.padEnd(12)}${text}`).join('\n');
}

export function summaryJson(snapshot: EtcdSnapshot, summary: SnapshotSummary) {
  const { facts, leases, users, roles } = snapshot;
  const { storageVersion = null, ...rest } = facts;
  return {
    ...{ storageVersion, ...rest, ...summary, leases: leases.size },
    ...{ users: users.map(({ name }) => name), roles: roles.map(({ name }) => name) },
  };
}

/** What an import did, and what the operator should know about it, one statement each. */
export function importedNotes(snapshot: EtcdSnapshot, imported: Imported): readonly string[] {
  const { present, overwritten, leftOut, leases, leasesLost, unleased, above } = imported;
  return [
    ...(present > 0 ? [`${present} were already present`] : []),
    ...(overwritten > 0 ? [`${overwritten} had another value and were overwritten`] : []),
    ...(leftOut > 0 ? [`skipped ${leftOut} that belong to leases`] : []),
    ...(leases > 0 ? [`granted ${counted(leases, 'lease')} again, with the whole TTL from now on`] : []),
    ...(leasesLost > 0 ? [`${counted(leasesLost, 'lease')} ended during the import, with their keys`] : []),
    ...(unleased > 0 ? [`${unleased} named a lease that etcd no longer had, and are kept without one`] : []),
    above === undefined
      ? 'revisions are not above those of etcd, because the cluster was in use: clients must open their watches again'
      : `revisions continue above ${above}`,
    `ignored ${ignoredText(snapshot.facts.members, snapshot.facts.alarms)}`,
  ];
}

function ignoredText(members: number, alarms: number): string {
  return `${counted(members, 'member')}, ${counted(alarms, 'alarm')} and history`;
}

function usersText({ users, roles }: EtcdSnapshot): string {
  return `${counted(users.length, 'user')}, ${counted(roles.length, 'role')}`;
}
