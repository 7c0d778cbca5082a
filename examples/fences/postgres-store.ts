import type { Pool } from 'pg';
import { type FencedStore, OutdatedError } from './fenced-store.ts';

const TABLE = 'CREATE TABLE IF NOT EXISTS stock (id text PRIMARY KEY, left_over int, fence bigint NOT NULL DEFAULT 0)';
const READ = 'UPDATE stock SET fence = $2 WHERE id = $1 AND fence <= $2 RETURNING left_over';
const WRITE = 'UPDATE stock SET left_over = $3, fence = $2 WHERE id = $1 AND fence <= $2';
const CREATE = `INSERT INTO stock (id, left_over) VALUES ($1, $2)
  ON CONFLICT (id) DO UPDATE SET left_over = $2, fence = 0`;

/** A column for the fence, and a condition in each statement. No affected row means that the version is too low. */
export class PostgresStore implements FencedStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async read(id: string, version: number): Promise<number> {
    const { rows } = await this.#pool.query<{ left_over: number }>(READ, [id, version]);
    if (rows[0] === undefined) throw new OutdatedError(id, version);
    return rows[0].left_over;
  }

  async write(id: string, value: number, version: number): Promise<void> {
    const { rowCount } = await this.#pool.query(WRITE, [id, version, value]);
    if (rowCount === 0) throw new OutdatedError(id, version);
  }

  async create(id: string, value: number): Promise<void> {
    await this.#pool.query(TABLE);
    await this.#pool.query(CREATE, [id, value]);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
