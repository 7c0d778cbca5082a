/**
 * STMs over a few accounts per round: transfers, looks at several accounts or all, and changes of one account depending
 * on others. Each run of a function is recorded as well: it reads, at one moment.
 */
import { ServiceError } from '@remora/base';
import type { RemoraClient, Stm } from 'remora';
import {
  type Bank,
  type BankWork,
  bankOf,
  drawWork,
  opsOf,
  readAll,
  type Statement,
  statementOf,
  writeAll,
} from '../../support/bank.ts';
import { type Client, type MakeWorkers, namesFor } from './workload.ts';

const ACCOUNTS = 5;

/** The prefix of all keys of a round that belong to accounts, or to their copies (`mirrors.ts`). */
export function bankPrefix(r: number): string {
  return `bank/${r}/`;
}

export function bankIn(r: number): Bank {
  return bankOf(`${bankPrefix(r)}a`, ACCOUNTS);
}

export const bank: MakeWorkers = (client) => {
  const name = namesFor(client, 'b');
  return [client.remora, client.hasty].map((remora, i) => async () => {
    const r = client.journal.round;
    const work = drawWork({ random: client.random, bank: bankIn(r), name: name() });
    await perform({ client, remora, r, c: `${client.name}.stm${i}` }, work);
  });
};

interface Session {
  readonly client: Client;
  readonly remora: RemoraClient;
  readonly r: number;
  readonly c: string;
}

async function perform(session: Session, work: BankWork): Promise<void> {
  const { client, remora, r, c } = session;
  const operation = client.journal.begin('bank', r, { c, ops: opsOf(work) });
  try {
    const statement = await remora.kv.stm((t) => run(t, session, work));
    operation.end('done', { a: told(statement) });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    operation.end(error.mayBeApplied ? 'unknown' : 'refused', { code: error.code });
  }
}

/** One run, which is repeated if something that it has read was changed. */
async function run(t: Stm, { client, r, c }: Session, work: BankWork): Promise<Statement> {
  const q = { c: `${c}.runs`, ops: opsOf({ ...work, changes: [] }) };
  const operation = client.journal.begin('bank', r, q);
  try {
    const pairs = await readAll(t, work);
    const statement = statementOf(work.bank, pairs);
    operation.end('done', { a: told(statement) });
    writeAll(t, work, pairs);
    return statement;
  } catch (error) {
    operation.end('refused'); // It has written nothing.
    throw error;
  }
}

/** The form of answers in the journal. */
export function told({ lists: reads, wrong }: Statement): object {
  return { ok: true, reads, ...(wrong !== '' && { wrong }) };
}
