import { type Bytes, type ClusterVersion, FIRST_VERSION, type Packer } from '@remora/base';
import { closedCodec } from '../../schema/codec.ts';
import type { Command } from '../command.ts';
import type { Epoch } from '../descriptor.ts';
import { RequestId } from '../range-api.ts';
import { RevisionBlock } from '../revision-api.ts';
import { isTxnCommand } from '../transaction-api.ts';
import { asCount, asFields, asMs, invalid } from './check.ts';
import { packWith } from './pack.ts';
import { decodeCommand, encodeCommand } from './parts.ts';
import { unpackVersioned } from './wire.ts';

/** The version of the log-entry format; the first byte of every entry. */
export const ENTRY_FORMAT_VERSION = 1;
/**
 * The same with a block of revisions in its header. Only ranges that the master numbers write it, and no range is
 * numbered before its first split: until then programs without this format can read the log.
 */
export const BLOCK_ENTRY_FORMAT_VERSION = 2;
/**
 * Like the first format, for an entry that is a split: a program without splits refuses it by its version. Programs
 * that read it also know splits in entries of the second format.
 */
export const SPLIT_ENTRY_FORMAT_VERSION = 3;
/** The same for an entry that begins a restore. */
export const RESTORE_ENTRY_FORMAT_VERSION = 4;
/**
 * Like the first format, for an entry with commands of transactions over several ranges; they need no revision, so such
 * an entry has no block.
 */
export const TXN_ENTRY_FORMAT_VERSION = 5;
/** The same for an entry that is a step of a merge. */
export const MERGE_ENTRY_FORMAT_VERSION = 6;
/**
 * The same for an entry with commands about leases of other ranges, or about leases that have a condition, are changed,
 * have a checkpoint, or end if they are empty; the next version is the same with a block.
 */
export const LEASE_ENTRY_FORMAT_VERSION = 7;
export const LEASE_BLOCK_ENTRY_FORMAT_VERSION = 8;
/** Like the first format, for an entry that corrects the counts: there are none before the first split. */
export const RECOUNT_ENTRY_FORMAT_VERSION = 9;
/**
 * An entry of any kind that names its cluster version (docs/decisions/0100). All entries have this format from version
 * 0.2 on, and none before: the formats above have the meaning of version 0.1 for good.
 */
export const VERSIONED_ENTRY_FORMAT_VERSION = 10;
const VERSIONS = [
  ENTRY_FORMAT_VERSION,
  BLOCK_ENTRY_FORMAT_VERSION,
  SPLIT_ENTRY_FORMAT_VERSION,
  RESTORE_ENTRY_FORMAT_VERSION,
  TXN_ENTRY_FORMAT_VERSION,
  MERGE_ENTRY_FORMAT_VERSION,
  LEASE_ENTRY_FORMAT_VERSION,
  LEASE_BLOCK_ENTRY_FORMAT_VERSION,
  RECOUNT_ENTRY_FORMAT_VERSION,
  VERSIONED_ENTRY_FORMAT_VERSION,
];
const WITH_BLOCK: readonly number[] = [BLOCK_ENTRY_FORMAT_VERSION, LEASE_BLOCK_ENTRY_FORMAT_VERSION];

const requestIds = closedCodec(RequestId);
const blocks = closedCodec(RevisionBlock);

/** One command in the log. */
export interface BatchedCommand {
  /** Empty for commands that the leader itself proposes. */
  readonly requestId: string;
  /** Range time in ms after which apply refuses the command; 0: never. */
  readonly deadlineMs: number;
  readonly command: Command;
}

/** The contents of one log entry: all commands that a range's leader queued in one turn. */
export interface CommandBatch {
  /**
   * The version in force for the leader that proposed it, which decides what apply makes of it. Absent:
   * `FIRST_VERSION`.
   */
  readonly version?: ClusterVersion;
  /** The range's time when the leader proposed the batch (see `LockView.timeMs`). */
  readonly rangeTimeMs: number;
  /** The leader's wall time, for display only. */
  readonly wallMs: number;
  /** The range's epoch when it was proposed; checked again at apply (traps 14). */
  readonly epoch: Epoch;
  /** The revisions for its changes, in a range that the master numbers; absent if no command needs any. */
  readonly block?: RevisionBlock;
  readonly commands: readonly BatchedCommand[];
}

const HEADER_FIELDS = 4;
const BLOCK_FIELDS = 2;
/** The version, the fields of every header, and those of a block; no block is written as one without revisions. */
const VERSIONED_HEADER_FIELDS = 1 + HEADER_FIELDS + BLOCK_FIELDS;
const NO_BLOCK: RevisionBlock = { first: 0, count: 0 };
const COMMAND_FIELDS = 3;

/** Flat: a header of four fields, two more for a block, then three per command. */
export function encodeEntry(batch: CommandBatch): Buffer {
  const { version = FIRST_VERSION } = batch;
  if (version === FIRST_VERSION) return packWith(formatOf(batch), batch, packBatch);
  return packWith(VERSIONED_ENTRY_FORMAT_VERSION, batch, packVersionedBatch);
}

function packVersionedBatch(out: Packer, batch: CommandBatch): void {
  const { version = FIRST_VERSION, rangeTimeMs, wallMs, epoch, block = NO_BLOCK, commands } = batch;
  out.list(VERSIONED_HEADER_FIELDS + commands.length * COMMAND_FIELDS);
  out.number(version);
  out.number(rangeTimeMs);
  out.number(wallMs);
  out.number(epoch.confVersion);
  out.number(epoch.version);
  out.number(block.first);
  out.number(block.count);
  packCommands(out, commands);
}

function packBatch(out: Packer, { rangeTimeMs, wallMs, epoch, block, commands }: CommandBatch): void {
  const headerFields = block === undefined ? HEADER_FIELDS : HEADER_FIELDS + BLOCK_FIELDS;
  out.list(headerFields + commands.length * COMMAND_FIELDS);
  out.number(rangeTimeMs);
  out.number(wallMs);
  out.number(epoch.confVersion);
  out.number(epoch.version);
  if (block !== undefined) {
    out.number(block.first);
    out.number(block.count);
  }
  packCommands(out, commands);
}

function packCommands(out: Packer, commands: CommandBatch['commands']): void {
  for (const { requestId, deadlineMs, command } of commands) {
    out.text(requestId);
    out.number(deadlineMs);
    out.value(encodeCommand(command));
  }
}

/** Whether an entry with this command has a format for leases. */
function needsLeaseFormat(command: Command): boolean {
  switch (command.type) {
    case 'leaseGrant':
      return command.condition !== undefined || command.owner !== undefined;
    case 'leaseRevoke':
      return command.ifEmpty === true;
    case 'leaseChange':
    case 'leaseCheckpoint':
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseEnd':
    case 'leaseSettle':
      return true;
    default:
      return false;
  }
}

function formatOf({ block, commands }: CommandBatch): number {
  const aboutLeases = commands.some(({ command }) => needsLeaseFormat(command));
  if (block !== undefined) return aboutLeases ? LEASE_BLOCK_ENTRY_FORMAT_VERSION : BLOCK_ENTRY_FORMAT_VERSION;
  if (aboutLeases) return LEASE_ENTRY_FORMAT_VERSION;
  // These commands are alone in their entry.
  switch (commands[0]?.command.type) {
    case 'split':
      return SPLIT_ENTRY_FORMAT_VERSION;
    case 'raiseRevision':
      return RESTORE_ENTRY_FORMAT_VERSION;
    case 'recount':
      return RECOUNT_ENTRY_FORMAT_VERSION;
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
      return MERGE_ENTRY_FORMAT_VERSION;
    default:
      return commands.some(({ command }) => isTxnCommand(command)) ? TXN_ENTRY_FORMAT_VERSION : ENTRY_FORMAT_VERSION;
  }
}

/** Byte fields of the result are slices of `bytes`: copy what outlives the entry (conventions 7). */
export function decodeEntry(bytes: Bytes): CommandBatch {
  const format = VERSIONS.find((known) => known === bytes[0]) ?? ENTRY_FORMAT_VERSION;
  const raw = unpackVersioned(format, bytes, 'log entry');
  if (format === VERSIONED_ENTRY_FORMAT_VERSION) return decodeVersioned(raw);
  const withBlock = WITH_BLOCK.includes(format);
  const headerFields = withBlock ? HEADER_FIELDS + BLOCK_FIELDS : HEADER_FIELDS;
  const fields = entryFields(raw, headerFields);
  const batch = headerOf(fields, 0, decodeCommands(fields, headerFields));
  return withBlock ? { ...batch, block: blocks.decode(fields.slice(HEADER_FIELDS, headerFields)) } : batch;
}

function decodeVersioned(raw: unknown): CommandBatch {
  const fields = entryFields(raw, VERSIONED_HEADER_FIELDS);
  const version = asCount(fields[0], 'version');
  // Version 0.1 has formats of its own: no entry has two forms.
  if (version <= FIRST_VERSION) throw invalid('log entry');
  const batch = { version, ...headerOf(fields, 1, decodeCommands(fields, VERSIONED_HEADER_FIELDS)) };
  const block = fields.slice(1 + HEADER_FIELDS, VERSIONED_HEADER_FIELDS);
  return block[0] === 0 && block[1] === 0 ? batch : { ...batch, block: blocks.decode(block) };
}

function entryFields(raw: unknown, headerFields: number): readonly unknown[] {
  if (!Array.isArray(raw) || raw.length < headerFields || (raw.length - headerFields) % COMMAND_FIELDS !== 0) {
    throw invalid('log entry');
  }
  return asFields(raw, raw.length, 'log entry');
}

function headerOf(fields: readonly unknown[], at: number, commands: CommandBatch['commands']): CommandBatch {
  return {
    rangeTimeMs: asMs(fields[at], 'rangeTimeMs'),
    wallMs: asMs(fields[at + 1], 'wallMs'),
    epoch: {
      confVersion: asCount(fields[at + 2], 'epoch.confVersion'),
      version: asCount(fields[at + 3], 'epoch.version'),
    },
    commands,
  };
}

function decodeCommands(fields: readonly unknown[], headerFields: number): CommandBatch['commands'] {
  const count = (fields.length - headerFields) / COMMAND_FIELDS;
  const commands = new Array<BatchedCommand>(count);
  for (let i = 0, at = headerFields; i < count; i++, at += COMMAND_FIELDS) {
    commands[i] = {
      requestId: requestIds.decode(fields[at]),
      deadlineMs: asMs(fields[at + 1], 'deadlineMs'),
      command: decodeCommand(fields[at + 2]),
    };
  }
  return commands;
}
