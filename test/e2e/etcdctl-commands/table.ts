/** Every command of etcdctl that talks to a server, with what it prints against Remora. */

/** What a row may use of the cluster: `$KEY` in arguments and patterns stands for the value. */
export interface Places {
  /** The endpoints of all nodes, and of one. */
  readonly ALL: string;
  readonly ONE: string;
  /** The endpoint of another cluster. */
  readonly OTHER: string;
  readonly LEADER: string;
  readonly FOLLOWER_ID: string;
  readonly LEASE: string;
  readonly DIR: string;
}

export interface Row {
  /** The arguments, divided by spaces. Without `--endpoints`, the command gets those of all nodes. */
  readonly args: string;
  readonly input?: string;
  /** What it prints, on standard output and standard error. */
  readonly prints: RegExp;
  readonly fails?: true;
  /** It runs until it is interrupted, which happens when it has printed this. */
  readonly until?: RegExp;
}

const unsupported = (method: string): RegExp => new RegExp(`remora: ${method} is not supported; \\S`);

export const ROWS: readonly Row[] = [
  { args: 'put foo bar', prints: /^OK\n$/ },
  { args: 'put foo baz --prev-kv', prints: /^OK\nfoo\nbar\n$/ },
  { args: 'put z/1 one --lease $LEASE', prints: /^OK\n$/ },
  { args: 'get foo', prints: /^foo\nbaz\n$/ },
  { args: 'get --from-key foo --keys-only', prints: /^foo\n\nz\/1\n\n$/ },
  { args: 'get none', prints: /^$/ },
  {
    args: 'txn',
    input: 'value("foo") = "baz"\n\nput foo txn\nget z/1\n\n\n',
    prints: /^SUCCESS\n\nOK\n\nz\/1\none\n$/,
  },
  { args: 'watch foo --rev 1', until: /txn/, prints: /^PUT\nfoo\nbar\nPUT\nfoo\nbaz\nPUT\nfoo\ntxn\n$/ },
  { args: 'watch foo --rev=-5', fails: true, prints: /required revision has been compacted/ },
  { args: 'del foo --prev-kv', prints: /^1\nfoo\ntxn\n$/ },
  { args: 'del foo', prints: /^0\n$/ },
  { args: 'compaction 0', prints: /^compacted revision 0\n$/ },
  { args: 'compaction 2', prints: /^compacted revision 2\n$/ },
  { args: 'compaction 2', fails: true, prints: /^Error: etcdserver: mvcc: required revision has been compacted\n$/ },
  { args: 'compaction 0', fails: true, prints: /^Error: etcdserver: mvcc: required revision has been compacted\n$/ },
  { args: 'compaction 1000000000', fails: true, prints: /required revision is a future revision\n$/ },

  { args: 'lease grant 100', prints: /^lease [0-9a-f]+ granted with TTL\(100s\)\n$/ },
  {
    args: 'lease timetolive $LEASE --keys',
    prints: /^lease $LEASE granted with TTL\(500s\), .*attached keys\(\[z\/1\]\)\n$/,
  },
  { args: 'lease keep-alive --once $LEASE', prints: /^lease $LEASE keepalived with TTL\(500\)\n$/ },
  { args: 'lease list', prints: /^found \d leases\n(.*\n)*$LEASE\n/ },
  { args: 'lease revoke $LEASE', prints: /^lease $LEASE revoked\n$/ },
  { args: 'lease timetolive $LEASE', prints: /^lease $LEASE already expired\n$/ },
  { args: 'lease revoke $LEASE', fails: true, prints: /\(etcdserver: requested lease not found\)\n$/ },

  { args: 'lock jobs echo held', prints: /^held\n$/ },
  { args: 'elect jobs me', until: /\nme\n/, prints: /^jobs\/[0-9a-f]+\nme\n/ },

  { args: 'member list', prints: /^(\d, started, n\d, http:\/\/\S+, http:\/\/\S+, false\n){3}$/ },
  { args: 'member add n9 --peer-urls=http://127.0.0.1:1', fails: true, prints: unsupported('MemberAdd') },
  { args: 'member remove 1', fails: true, prints: unsupported('MemberRemove') },
  { args: 'member remove 99', fails: true, prints: /etcdserver: member not found\n$/ },
  { args: 'member update 1 --peer-urls=http://127.0.0.1:1', fails: true, prints: unsupported('MemberUpdate') },
  { args: 'member promote 1', fails: true, prints: /etcdserver: can only promote a learner member\n$/ },

  { args: 'endpoint health', prints: /^(\S+ is healthy: successfully committed proposal: took = .*\n){3}$/ },
  { args: 'endpoint health --cluster', prints: /^(http:\/\/\S+ is healthy: .*\n){3}$/ },
  { args: 'endpoint status', prints: /^(\S+, \d, 3\.6\.0, .* (true|false), false, \d+, \d+, \d+, \n){3}$/ },
  { args: 'endpoint hashkv', prints: /^\S+, (\d+)\n\S+, \1\n\S+, \1\n$/ },
  { args: 'endpoint hashkv --rev 3', prints: /^\S+, (\d+)\n\S+, \1\n\S+, \1\n$/ },
  { args: 'endpoint hashkv --rev 1', fails: true, prints: /required revision has been compacted/ },
  { args: 'endpoint hashkv --rev 1000000000', fails: true, prints: /required revision is a future revision/ },
  { args: 'alarm list', prints: /^$/ },
  { args: 'alarm disarm', prints: /^$/ },
  { args: 'defrag', prints: /^(Finished defragmenting etcd member\[\S+\]\n){3}$/ },
  { args: 'put kept/1 one', prints: /^OK\n$/ },
  { args: 'put z/kept two', prints: /^OK\n$/ },
  { args: '--endpoints $ONE snapshot save $DIR/image', prints: /Snapshot saved at \S+\/image\n/ },
  { args: '--endpoints $LEADER move-leader 99', fails: true, prints: /etcdserver: bad leader transferee\n$/ },
  { args: 'move-leader $FOLLOWER_ID', prints: /^Leadership transferred from \d to $FOLLOWER_ID\n$/ },

  { args: '--endpoints $ONE check datascale --load=s', prints: /PASS: Approximate system memory used : [\d.]+ MB/ },

  { args: 'make-mirror $OTHER --prefix none/', until: /\d/, prints: /^\d+\n/ },

  { args: 'user list', prints: /^$/ },
  { args: 'role list', prints: /^$/ },
  { args: 'auth disable', prints: /^Authentication Disabled\n$/ },
  { args: 'auth enable', fails: true, prints: /etcdserver: root user does not exist\n$/ },
  { args: 'user add me:secret', prints: /^User me created\n$/ },
  { args: 'user get me', prints: /^User: me\nRoles:\n$/ },
  { args: 'user passwd me --interactive=false', input: 'other\n', prints: /^Password updated\n$/ },
  { args: 'role add r', prints: /^Role r created\n$/ },
  { args: 'user grant-role me r', prints: /^Role r is granted to user me\n$/ },
  { args: 'role grant-permission r read k', prints: /^Role r updated\n$/ },
  { args: 'role get r', prints: /^Role r\nKV Read:\n\tk\nKV Write:\n$/ },
  { args: 'role revoke-permission r k', prints: /^Permission of key k is revoked from role r\n$/ },
  { args: 'user revoke-role me r', prints: /^Role r is revoked from user me\n$/ },
  { args: 'role delete r', prints: /^Role r deleted\n$/ },
  { args: 'user delete me', prints: /^User me deleted\n$/ },
];

/** Commands that ask no server, and `check perf`, which has a long test of its own. */
export const NO_ROW: readonly string[] = [
  ...['completion bash', 'completion fish', 'completion powershell', 'completion zsh', 'help', 'version', 'migrate'],
  ...['snapshot restore', 'snapshot status', 'check perf'],
];
