import { silentLogger } from '@remora/base';
import type { FoundingKind } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import type { MasterCommand } from '../metadata/master-commands.ts';
import { MasterState } from '../metadata/master-state.ts';
import { Founding, type FoundingPlan } from './founding.ts';

const ROOT = { passwordHash: '$scrypt$of-root', tokenKey: Buffer.from('key') };
const PASSWORD: FoundingPlan = { kind: 'password', root: ROOT };

/** The leader, node 1, of founders 1, 2 and 3. */
class Bed {
  readonly state = new MasterState(CONF);
  readonly proposed: MasterCommand[] = [];
  readonly plans = new Map<number, FoundingKind>();
  readonly warnings: unknown[] = [];
  /** Whether proposals are applied. */
  replicates = true;
  readonly founding: Founding;

  constructor(plan: FoundingPlan) {
    for (const nodeId of [1, 2, 3]) this.state.apply({ type: 'registerNode', descriptor: descriptor(nodeId) });
    this.founding = new Founding({
      logger: { ...silentLogger, warn: (fields) => void this.warnings.push(fields) },
      ...{ state: this.state, plan },
      planOf: (nodeId) => this.plans.get(nodeId),
      propose: (command, done) => {
        this.proposed.push(command);
        if (this.replicates) done(undefined, this.state.apply(command));
      },
    });
  }
}

describe('a cluster', () => {
  test('that is founded with authentication has no range before authentication is on (FO1)', () => {
    const { founding, proposed, state } = new Bed(PASSWORD);
    expect(founding.mayCreateRanges()).toBe(false);
    expect(proposed).toEqual([{ type: 'foundAuth', ...ROOT }]);
    expect(state.auth).toMatchObject({
      ...{ enabled: true, revision: 2, tokenKey: ROOT.tokenKey },
      users: [{ name: 'root', passwordHash: ROOT.passwordHash, roles: ['root'] }],
    });
    expect(founding.mayCreateRanges()).toBe(true);
    expect(proposed).toHaveLength(1);
  });

  test('is founded by one proposal at a time', () => {
    const bed = new Bed(PASSWORD);
    bed.replicates = false;
    for (let i = 0; i < 3; i++) expect(bed.founding.mayCreateRanges()).toBe(false);
    expect(bed.proposed).toHaveLength(1);
  });

  test('that is founded without authentication has no users', () => {
    const { founding, proposed, state } = new Bed({ kind: 'open' });
    expect([founding.mayCreateRanges(), proposed, state.auth.enabled]).toEqual([true, [], false]);
  });

  test('is not founded while founders plan otherwise, and says who does, once (FO2)', () => {
    const bed = new Bed({ kind: 'open' });
    bed.plans.set(1, 'open').set(3, 'password');
    for (let i = 0; i < 3; i++) expect(bed.founding.mayCreateRanges()).toBe(false);
    expect(bed.warnings).toEqual([
      { why: expect.stringContaining('without authentication, and node n3 with --initial-root-password-file') },
    ]);
    bed.plans.set(3, 'open');
    expect(bed.founding.mayCreateRanges()).toBe(true);
  });

  test('is founded with the password of one founder, though each has another hash (FO3)', () => {
    const bed = new Bed(PASSWORD);
    bed.plans.set(2, 'password').set(3, 'password');
    bed.founding.mayCreateRanges();
    bed.state.apply({ type: 'foundAuth', passwordHash: 'another', tokenKey: Buffer.from('another') });
    expect(bed.state.auth.users).toMatchObject([{ passwordHash: ROOT.passwordHash }]);
    expect(bed.state.auth.revision).toBe(2);
  });

  test('with ranges is not founded again (FO4)', () => {
    const { state } = new Bed({ kind: 'open' });
    state.apply({ type: 'bootstrapRange', nodeIds: [1] });
    expect(() => state.apply({ type: 'foundAuth', ...ROOT })).toThrow('the cluster already has ranges');
    expect(state.auth.enabled).toBe(false);
  });

  test('tells nobody that authentication is off, and takes no users, before it is founded (FO5)', () => {
    const { founding, state } = new Bed(PASSWORD);
    expect(founding.isAuthTold).toBe(false);
    const early = () => state.apply({ type: 'changeAuth', change: { type: 'addUser', user: 'eve', passwordHash: '' } });
    expect(early).toThrow('before the cluster is founded');
    founding.mayCreateRanges();
    expect([founding.isAuthTold, state.auth.users.map(({ name }) => name)]).toEqual([true, ['root']]);
    expect(new Bed({ kind: 'open' }).founding.isAuthTold).toBe(true);
  });

  test('waits while the file with the password cannot be read', () => {
    const bed = new Bed({ kind: 'password', root: undefined });
    expect([bed.founding.mayCreateRanges(), bed.proposed]).toEqual([false, []]);
    expect(bed.warnings).toEqual([{ why: expect.stringContaining('--initial-root-password-file') }]);
  });
});
