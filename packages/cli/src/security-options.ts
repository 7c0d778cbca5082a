/** Options of a node about users and the audit log. */
import { bool, string } from '@remora/base';

const file = () => string({ placeholder: '<file>' });

export const foundingOptions = {
  initialRootPasswordFile: {
    type: file(),
    desc: 'File with the password of the first user, root, of a new cluster, which then has authentication from the beginning. Give it to all founding members. Ignored once the cluster is founded. Beyond loopback, a cluster founded without it has a root who logs in with a client certificate.',
    group: 'Cluster',
  },
} as const;

export const auditOptions = {
  auditLog: {
    type: file(),
    desc: 'File for the audit log: a line of JSON for each log-in, refusal, change of users or roles, administration and steering of locks, without values and secrets. Opened again on SIGHUP. /dev/stdout works where that is a pipe.',
    group: 'Logging',
  },
  auditWrites: {
    type: bool(),
    default: false,
    desc: 'Record successful writes in the audit log too. Each costs a line.',
    group: 'Logging',
  },
} as const;

interface SecurityValues {
  readonly initialRootPasswordFile?: string | undefined;
  readonly join: readonly unknown[];
  readonly auditLog?: string | undefined;
  readonly auditWrites: boolean;
}

interface SecurityRelation {
  readonly between: readonly (keyof SecurityValues)[];
  readonly holds: (values: SecurityValues) => boolean;
  readonly must: string;
}

export const SECURITY_RELATIONS: readonly SecurityRelation[] = [
  {
    between: ['initialRootPasswordFile', 'join'],
    holds: ({ initialRootPasswordFile, join }) => initialRootPasswordFile === undefined || join.length === 0,
    must: 'not be given together with --join: the cluster that the node joins has its users already',
  },
  {
    between: ['auditWrites', 'auditLog'],
    holds: ({ auditWrites, auditLog }) => !auditWrites || auditLog !== undefined,
    must: 'be given together with --audit-log',
  },
];
