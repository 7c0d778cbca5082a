/** What the tables of calls are made of. */
import type { Schema } from './parts.ts';
import type { SCHEMAS } from './schemas.ts';

/** Server-sent events by their types, or JSON values, one a line. */
export type Stream = { readonly events: Readonly<Record<string, Schema>> } | { readonly lines: keyof typeof SCHEMAS };

/** One call, as the document describes it. */
export interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly Schema[];
  readonly body?: keyof typeof SCHEMAS;
  /** The schema of a line, if the body is JSON values, one a line. */
  readonly bodyLines?: keyof typeof SCHEMAS;
  readonly answer: keyof typeof SCHEMAS | Schema | Stream;
  /** Statuses of errors and their meaning for this operation, beside those that every operation may return. */
  readonly errors?: Readonly<Record<number, string>>;
}

export type Operations = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export function queryParameter(name: string, description: string, schema: Schema): Schema {
  return { name, in: 'query', description, schema };
}
