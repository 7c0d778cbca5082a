/** Every declared message: what methods send, and what is stored. */
import * as protocol from '../../src/index.ts';
import type { DeclaredMethod } from '../../src/rpc/method.ts';
import type { Mode } from '../../src/schema/codec.ts';
import type { AnyKind } from '../../src/schema/shape.ts';

type AnyMethod = DeclaredMethod<unknown, unknown>;

export const METHODS: readonly AnyMethod[] = (Object.values(protocol) as unknown[]).filter(isDeclared);

function isDeclared(value: unknown): value is AnyMethod {
  return typeof value === 'object' && value !== null && 'declared' in value;
}

export interface Message {
  readonly name: string;
  readonly kind: AnyKind;
  readonly mode: Mode;
}

export const OPEN_MESSAGES: readonly Message[] = METHODS.flatMap(({ name, declared }) => [
  { name: `${name} request`, kind: declared.request, mode: 'open' as const },
  { name: `${name} ${declared.stream ? 'message' : 'answer'}`, kind: declared.reply, mode: 'open' as const },
]);

/** Parts of log entries and of stored rows. */
const STORED: Readonly<Record<string, AnyKind>> = {
  command: protocol.Command,
  'result of a command': protocol.CommandResult,
  query: protocol.Query,
  'range descriptor': protocol.RangeDescriptor,
  'node descriptor': protocol.NodeDescriptor,
  'configuration of a group': protocol.ConfFields,
  commit: protocol.TxnCommit,
  'block of revisions': protocol.RevisionBlock,
};

export const CLOSED_MESSAGES: readonly Message[] = Object.entries(STORED).map(([name, kind]) => ({
  name,
  kind,
  mode: 'closed',
}));

export const MESSAGES: readonly Message[] = [...OPEN_MESSAGES, ...CLOSED_MESSAGES];
