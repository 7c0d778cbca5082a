// etcd's own command manages users and roles here as at an etcd, and prints the same.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { Etcdctl, missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { hasEtcd, RealEtcd } from './etcd-twins/real-etcd.ts';
import { Cluster } from './harness.ts';

/**
 * In order. Without `prints`, both only have to print the same. `differs`: a known difference (docs/reference/etcd.md).
 */
const STEPS: readonly {
  readonly args: string;
  readonly input?: string;
  readonly prints?: RegExp;
  readonly differs?: true;
}[] = [
  { args: 'auth enable', prints: /root user does not exist/ },
  { args: 'user add root:rootpw', prints: /^User root created\n$/ },
  { args: 'user add root:again', prints: /user name already exists/ },
  { args: 'user add ada:adapw' },
  { args: 'user add bob --no-password' },
  { args: 'user list' },
  { args: 'user get nobody', prints: /user name not found/ },
  { args: 'role add root' },
  { args: 'role add app' },
  { args: 'role add app', prints: /role name already exists/ },
  { args: 'role grant-permission app readwrite a b', prints: /^Role app updated\n$/ },
  { args: 'role grant-permission app read r' },
  { args: 'role grant-permission app write w --prefix' },
  { args: 'role grant-permission app read z --from-key' },
  { args: 'role grant-permission none read x', prints: /role name not found/ },
  { args: 'role get app' },
  { args: 'role revoke-permission app nothing', prints: /permission is not granted to the role/ },
  { args: 'user grant-role root root' },
  { args: 'user grant-role ada app' },
  { args: 'user grant-role ada none', prints: /role name not found/ },
  { args: 'user revoke-role bob app', prints: /role is not granted to the user/ },
  { args: 'user get ada --detail' },
  { args: 'put a1 before' },
  { args: 'auth enable', prints: /^Authentication Enabled\n$/ },
  { args: 'get a1', prints: /user name is empty/ },
  { args: 'get a1 --user ada:wrong', prints: /authentication failed, invalid user ID or password/ },
  { args: 'get a1 --user bob:x', prints: /authentication failed, invalid user ID or password/, differs: true },
  { args: 'get a1 --user ada:adapw', prints: /^a1\nbefore\n$/ },
  { args: 'put a1 after --user ada:adapw', prints: /^OK\n$/ },
  { args: 'put b1 v --user ada:adapw', prints: /permission denied/ },
  { args: 'watch b1 --user ada:adapw', prints: /^watch was canceled .*desc = etcdserver: permission denied/ },
  { args: 'watch a1', prints: /^watch was canceled .*desc = etcdserver: user name is empty/ },
  { args: 'put r v --user ada:adapw', prints: /permission denied/ },
  { args: 'get r --user ada:adapw', prints: /^$/ },
  { args: 'put w1 v --user ada:adapw', prints: /^OK\n$/ },
  { args: 'put w1 v --prev-kv --user ada:adapw', prints: /permission denied/ },
  { args: 'get w1 --user ada:adapw', prints: /permission denied/ },
  { args: 'get a c --user ada:adapw', prints: /permission denied/ },
  { args: 'get z --from-key --user ada:adapw', prints: /^$/ },
  { args: 'get y --from-key --user ada:adapw', prints: /permission denied/ },
  { args: 'del a --prefix --user ada:adapw', prints: /^1\n$/ },
  {
    args: 'txn --user ada:adapw',
    input: 'version("a1") = "0"\n\nput a1 v\n\nput b1 v\n\n',
    prints: /permission denied/,
  },
  { args: 'txn --user ada:adapw', input: 'version("b1") = "0"\n\nput a1 v\n\n\n', prints: /permission denied/ },
  { args: 'txn --user ada:adapw', input: 'version("r") = "0"\n\nput a1 v\n\nget r\n\n', prints: /^SUCCESS/ },
  { args: 'user list --user ada:adapw', prints: /permission denied/ },
  { args: 'user get ada --user ada:adapw' },
  { args: 'user get root --user ada:adapw', prints: /permission denied/ },
  { args: 'role get app --user ada:adapw' },
  { args: 'role get root --user ada:adapw', prints: /permission denied/ },
  { args: 'role get root --user root:rootpw' },
  { args: 'role list --user root:rootpw' },
  { args: 'user delete root --user root:rootpw', prints: /invalid auth management/ },
  { args: 'user revoke-role root root --user root:rootpw', prints: /invalid auth management/ },
  { args: 'role revoke-permission app a b --user root:rootpw' },
  { args: 'get a1 --user ada:adapw', prints: /permission denied/ },
  { args: 'user passwd ada --interactive=false --user root:rootpw', input: 'newpw\n' },
  { args: 'get r --user ada:adapw', prints: /authentication failed/ },
  { args: 'get r --user ada:newpw', prints: /^$/ },
  { args: 'role delete app --user root:rootpw' },
  { args: 'get r --user ada:newpw', prints: /permission denied/ },
  { args: 'user delete ada --user root:rootpw' },
  { args: 'get r --user ada:newpw', prints: /authentication failed/ },
  { args: 'auth disable --user ada:newpw', prints: /authentication failed/ },
  { args: 'auth disable --user root:rootpw', prints: /^Authentication Disabled\n$/ },
  { args: 'get a1', prints: /^a1\n/ },
];

describeWith(missingEtcdctl(), 'etcdctl manages users and roles', () => {
  let cluster: Cluster;
  const etcd = new RealEtcd();
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 3, flags: { 'pre-split': 'f,m,y' } });
    if (hasEtcd) await etcd.start();
  });
  afterAll(async () => {
    etcd.stop();
    await cluster?.stop();
  });

  test.each(STEPS)('$args', async (step) => {
    const here = await said(cluster.endpoints.join(','), step);
    expect(here).toMatch(step.prints ?? /./);
    const there = hasEtcd ? await said(etcd.endpoint, step) : here;
    if (step.differs !== true) expect(here).toBe(there);
  });
});

/** What it prints on both outputs, without the words that the library adds to etcd's. */
async function said(endpoint: string, { args, input = '' }: { readonly args: string; readonly input?: string }) {
  const { out, err } = await new Etcdctl(endpoint, [...args.split(' '), ...PATIENT], input).end();
  return out + err;
}

/** A log-in takes long on a machine that is busy. */
const PATIENT = ['--dial-timeout=30s', '--command-timeout=30s'];
