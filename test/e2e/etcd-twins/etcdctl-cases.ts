/** What people do with `etcdctl`, with what it prints in a form that can be compared between two clusters. */
import { eventually } from '../eventually.ts';
import { Etcdctl, type Said } from './etcdctl.ts';

export interface CommandCase {
  readonly name: string;
  run(session: EtcdctlSession): Promise<void>;
}

/** Borders of ranges of the second cluster: each case has keys on both sides of some. */
export const COMMAND_BORDERS: readonly string[] = [
  ...['c/', 'c/b', 'c/c', 'c/e', 'd/m', 'l/', 'l/m', 'w/b', 'x/', 'x/b', 'x/c'],
  // Keys of locks and elections are their names, a slash, and their leases in hexadecimal.
  ...['a lock/', 'a lock/4', 'a lock/6', 'an election/', 'an election/4', 'an election/6'],
];

/** Commands against one server, and what they said. */
export class EtcdctlSession {
  readonly told: unknown[] = [];
  readonly #endpoint: string;
  /** Ids of leases, which differ between servers. */
  readonly #leases: string[] = [];

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** Runs a command to its end, and keeps what it said. */
  async run(args: readonly string[], input?: string): Promise<Said> {
    const said = await this.begin(args, input).end();
    this.keep(args, said);
    return said;
  }

  begin(args: readonly string[], input?: string): Etcdctl {
    return new Etcdctl(this.#endpoint, args, input);
  }

  keep(args: readonly string[], { code, out, err }: Said): void {
    const json = args.includes('json') && code === 0;
    this.told.push([this.#plain(args.join(' ')), code, json ? withoutHeader(JSON.parse(out)) : this.#plain(out + err)]);
  }

  /** The revision of a pair. */
  async revisionOf(key: string): Promise<number> {
    const { out } = await this.begin(['get', key, '-w', 'json']).end();
    const { kvs } = JSON.parse(out) as { readonly kvs: readonly { readonly mod_revision: number }[] };
    return kvs[0]?.mod_revision ?? 0;
  }

  /** The id of a new lease. */
  async grant(seconds: number): Promise<string> {
    const { out } = await this.begin(['lease', 'grant', String(seconds)]).end();
    const [, id = ''] = /^lease ([0-9a-f]+) granted with TTL/.exec(out) ?? [];
    this.#leases.push(id);
    return id;
  }

  /** Ids of leases and times that go by are a server's own. */
  #plain(text: string): string {
    const named = this.#leases.reduce((rest, id, i) => rest.replaceAll(id, `lease ${i}`), text);
    return named.replaceAll(/remaining\(\d+s\)/g, 'remaining').replaceAll(/\/[0-9a-f]{8,16}\b/g, '/lease');
  }
}

/** Revisions of the servers themselves may be any later ones. A lease's id does not fit into a number. */
function withoutHeader(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (name, value) => (name === 'header' ? undefined : name === 'lease' ? '…' : value)),
  );
}

const put = async (session: EtcdctlSession, ...pairs: readonly (readonly [string, string])[]): Promise<void> => {
  for (const [key, value] of pairs) await session.run(['put', key, value, '--prev-kv']);
};

export const COMMAND_CASES: readonly CommandCase[] = [
  {
    name: 'put and get: a prefix, from a key, limits, orders, revisions, counts',
    async run(session) {
      await put(session, ['c/c', '1'], ['c/a', '3'], ['c/e', '2'], ['c/b', '4'], ['c/a', '5']);
      const then = await session.revisionOf('c/e');
      await put(session, ['c/b', '6'], ['c/d', '0']);
      await session.run(['get', 'c/', '--prefix']);
      await session.run(['get', 'c/', '--prefix', '-w', 'json']);
      await session.run(['get', 'c/b', 'c/e', '-w', 'json']);
      await session.run(['get', 'c/c', '--from-key', '--limit', '2']);
      await session.run(['get', 'c/', '--prefix', '--limit', '3', '-w', 'json']);
      await session.run(['get', 'c/', '--prefix', '--keys-only']);
      await session.run(['get', 'c/', '--prefix', '--print-value-only', '--consistency', 's']);
      for (const target of ['KEY', 'VERSION', 'CREATE', 'MODIFY', 'VALUE']) {
        for (const order of ['ASCEND', 'DESCEND']) {
          await session.run([
            'get',
            'c/',
            '--prefix',
            '--sort-by',
            target,
            '--order',
            order,
            '--limit',
            '4',
            '-w',
            'json',
          ]);
        }
      }
      const past = await session.begin(['get', 'c/', '--prefix', '--rev', String(then)]).end();
      session.keep(['get', '--rev'], past);
    },
  },
  {
    name: 'del: a prefix with what was there, from a key, a span',
    async run(session) {
      await put(session, ['d/a', '1'], ['d/k', '2'], ['d/n', '3'], ['d/z', '4']);
      await session.run(['del', 'd/b', 'd/o', '--prev-kv']);
      await session.run(['del', 'd/', '--prefix', '--prev-kv']);
      await session.run(['del', 'd/', '--prefix']);
      await session.run(['get', 'd/', '--prefix']);
    },
  },
  {
    name: 'lease: keys over ranges, kept alive, looked at, revoked, and refused when it is gone',
    async run(session) {
      const lease = await session.grant(100);
      for (const key of ['l/a', 'l/n', 'c/l']) await session.run(['put', key, 'x', '--lease', lease]);
      await session.run(['lease', 'timetolive', lease, '--keys']);
      await session.run(['lease', 'keep-alive', lease, '--once']);
      await session.run(['put', 'l/a', 'y', '--ignore-lease']);
      await session.run(['lease', 'list']);
      await session.run(['lease', 'revoke', lease]);
      await session.run(['get', 'l/', '--prefix']);
      await session.run(['get', 'c/l']);
      await session.run(['put', 'l/a', 'x', '--lease', lease]);
      await session.run(['lease', 'timetolive', lease]);
      await session.run(['lease', 'revoke', lease]);
    },
  },
  {
    name: 'lease: expires, and takes its keys in all ranges along',
    async run(session) {
      const lease = await session.grant(2);
      const watch = session.begin(['watch', 'l/', '--prefix']);
      for (const key of ['l/b', 'l/o']) await session.run(['put', key, 'x', '--lease', lease]);
      await watch.says(/DELETE\nl\/b(.|\n)*DELETE\nl\/o|DELETE\nl\/o(.|\n)*DELETE\nl\/b/);
      await watch.interrupt();
      await session.run(['get', 'l/', '--prefix']);
    },
  },
  {
    name: 'txn: compares of several ranges, and both branches',
    async run(session) {
      await put(session, ['x/a', '1'], ['x/b', '2'], ['x/c', '3']);
      const txn = (...compares: readonly string[]) =>
        `${compares.join('\n')}\n\nput x/a "won"\nget x/ --prefix\ndel x/c\n\nget x/b x/d\nput x/d "lost"\n\n`;
      await session.run(['txn'], txn('ver("x/a") = "1"', 'value("x/b") = "2"', 'mod("x/c") > "0"'));
      await session.run(['txn'], txn('ver("x/a") = "1"', 'value("x/b") = "2"'));
      await session.run(['txn', '-w', 'json'], txn('create("x/c") = "0"', 'value("x/b") < "3"'));
      await session.run(['txn'], txn('value("x/a") = "won"', 'value("x/d") = "won"'));
      await session.run(['txn'], '\nput x/a 1\nput x/a 2\n\n\n');
      await session.run(['get', 'x/', '--prefix']);
    },
  },
  {
    name: 'watch: a prefix from a revision of the past on, and what comes',
    async run(session) {
      await put(session, ['w/a', '1'], ['w/b', '1'], ['w/c', '1']);
      const from = await session.revisionOf('w/b');
      const watch = session.begin(['watch', 'w/', '--prefix', '--prev-kv', '--rev', String(from)]);
      await watch.says(/w\/c/);
      await put(session, ['w/a', '2'], ['w/c', '2']);
      await session.run(['del', 'w/', '--prefix']);
      await put(session, ['w/z', 'the last']);
      await watch.says(/the last/);
      session.keep(['watch', '--rev'], await watch.interrupt());
    },
  },
  {
    name: 'lock: one after another',
    async run(session) {
      const holder = session.begin(['lock', 'a lock']);
      await holder.says(/a lock\/[0-9a-f]+/);
      const waiter = session.begin(['lock', 'a lock', 'echo', 'has it now']);
      const keys = async () => (await session.begin(['get', 'a lock', '--prefix', '--keys-only']).end()).out;
      await eventually('the other one waits', async () => (await keys()).match(/a lock\//g)?.length === 2);
      session.keep(['lock'], await holder.interrupt());
      session.keep(['lock'], await waiter.end());
      await session.run(['get', 'a lock', '--prefix']);
    },
  },
  {
    name: 'elect: a leader, and who observes it',
    async run(session) {
      const leader = session.begin(['elect', 'an election', 'me']);
      await leader.says(/me/);
      const observer = session.begin(['elect', '-l', 'an election']);
      await observer.says(/me/);
      session.keep(['elect', '-l'], await observer.interrupt());
      session.keep(['elect'], await leader.interrupt());
    },
  },
  {
    name: 'compaction: what is gone is refused, what is left is read',
    async run(session) {
      await put(session, ['c/x', '1'], ['c/c', '1'], ['c/x', '2'], ['c/c', '2']);
      const kept = await session.revisionOf('c/x');
      const refused = async (...args: readonly string[]): Promise<void> => {
        const { code, out, err } = await session.begin(args).end();
        session.told.push([code, (out + err).replaceAll(/\d+/g, '…')]);
      };
      await refused('compaction', String(kept));
      await refused('compaction', String(kept));
      await refused('get', 'c/x', '--rev', String(kept - 1));
      await refused('get', 'c/', '--prefix', '--rev', String(kept));
      await refused('compaction', '1000000000');
      await refused('watch', 'c/', '--prefix', '--rev', '1');
    },
  },
  {
    name: 'what is not offered is refused with the same words',
    async run(session) {
      for (const args of [
        ['user', 'list'],
        ['role', 'list'],
        ['auth', 'enable'],
      ]) {
        await session.run(args);
      }
    },
  },
];
