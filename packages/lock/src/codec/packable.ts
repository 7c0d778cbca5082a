/**
 * Commands and results of version 1 of the layout, which write themselves: `[VERSION, [variant, [fields…]]]` without
 * creating any list. The sender keeps the message itself until its bytes are needed.
 */
import { Packable, type Packer, unreachable } from '@remora/base';
import type { Holder, LockId, Owner } from '../types.ts';
import { type CommandV1, REFUSAL_CODES, type ResultV1, VERSION } from './layout.ts';

/** Variants of version 1 by number, in the order of the layout. */
export const COMMAND = { acquire: 0, release: 1, cancel: 2, forceRelease: 3 } as const;
export const RESULT = { granted: 0, queued: 1, busy: 2, released: 3, canceled: 4, refused: 5 } as const;

/** The approximate size of a command beside its texts and bytes. */
const COMMAND_BYTES = 60;
/** The approximate size of a result beside its texts and bytes. */
const RESULT_BYTES = 30;

export class PackableCommand extends Packable {
  readonly command: CommandV1;

  constructor(command: CommandV1) {
    super();
    this.command = command;
  }

  get size(): number {
    const { command } = this;
    const { namespace, name } = command.lock;
    const token = command.type === 'forceRelease' ? 0 : command.owner.token.length;
    const data = command.type === 'acquire' ? command.data.length : 0;
    return COMMAND_BYTES + namespace.length + name.length + token + data;
  }

  pack(out: Packer): void {
    const { command } = this;
    beginVariant(out, COMMAND[command.type]);
    packCommandFields(out, command);
  }
}

function packCommandFields(out: Packer, c: CommandV1): void {
  switch (c.type) {
    case 'acquire':
      out.list(8);
      packLock(out, c.lock);
      packOwner(out, c.owner);
      out.bool(c.wait);
      out.number(c.waitUntilMs);
      out.number(c.deadlineMs);
      out.number(c.depthMax);
      out.bytes(c.data);
      out.number(c.attempt ?? 0);
      return;
    case 'release':
      out.list(5);
      packLock(out, c.lock);
      packOwner(out, c.owner);
      out.bool(c.all);
      out.number(c.deadlineMs);
      out.number(c.attempt ?? 0);
      return;
    case 'cancel':
      out.list(4);
      packLock(out, c.lock);
      packOwner(out, c.owner);
      out.number(c.deadlineMs);
      out.number(c.attempt ?? 0);
      return;
    case 'forceRelease':
      out.list(1);
      packLock(out, c.lock);
      return;
    default:
      return unreachable(c);
  }
}

export class PackableResult extends Packable {
  readonly #result: ResultV1;

  constructor(result: ResultV1) {
    super();
    this.#result = result;
  }

  get size(): number {
    const result = this.#result;
    if (result.type === 'refused') return RESULT_BYTES + result.message.length;
    if (result.type === 'busy') return COMMAND_BYTES + result.holder.owner.id.length + result.holder.data.length;
    return RESULT_BYTES;
  }

  pack(out: Packer): void {
    const result = this.#result;
    beginVariant(out, RESULT[result.type]);
    packResultFields(out, result);
  }
}

function packResultFields(out: Packer, r: ResultV1): void {
  switch (r.type) {
    case 'granted':
      out.list(3);
      out.number(r.version);
      out.number(r.depth);
      out.number(r.lockTimeMs);
      return;
    case 'queued':
      out.list(1);
      out.number(r.position);
      return;
    case 'busy':
      out.list(1);
      packHolder(out, r.holder);
      return;
    case 'released':
      out.list(2);
      out.number(r.depth);
      out.number(r.version);
      return;
    case 'canceled':
      out.list(1);
      out.bool(r.released);
      return;
    case 'refused':
      out.list(2);
      out.number(REFUSAL_CODES.indexOf(r.code));
      out.text(r.message);
      return;
    default:
      return unreachable(r);
  }
}

/** `[VERSION, [variant, [fields…]]]`: the fields follow. */
function beginVariant(out: Packer, variant: number): void {
  out.list(2);
  out.number(VERSION);
  out.list(2);
  out.number(variant);
}

function packLock(out: Packer, { namespace, name }: LockId): void {
  out.list(2);
  out.text(namespace);
  out.bytes(name);
}

function packOwner(out: Packer, { session, token }: Owner): void {
  out.list(2);
  out.list(2);
  out.integer(session.lease);
  out.number(session.incarnation);
  out.text(token);
}

function packHolder(out: Packer, { owner, version, depth, lockTimeMs, data }: Holder): void {
  out.list(5);
  packOwner(out, { session: owner.session, token: owner.id });
  out.number(version);
  out.number(depth);
  out.number(lockTimeMs);
  out.bytes(data);
}
