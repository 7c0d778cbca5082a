/** Answers of a server in a form in which two of them can be compared. */
import type {
  DeleteRangeResponse,
  Event,
  KeyValue,
  PutResponse,
  RangeResponse,
  ResponseHeader,
  ResponseOp,
  TxnResponse,
} from '@remora/protocol/etcd';

/** A revision at which something changed (RevisionMap RM1). */
export class Exact {
  readonly revision: number;

  constructor(revision: number) {
    this.revision = revision;
  }
}

/** A revision that names a moment (RevisionMap RM2). */
export class Moment {
  readonly revision: number;

  constructor(revision: number) {
    this.revision = revision;
  }
}

/** Seconds that pass while servers answer. */
export class Remaining {
  readonly seconds: number;

  constructor(seconds: number) {
    this.seconds = seconds;
  }
}

export type Answer =
  | null
  | boolean
  | number
  | string
  | Exact
  | Moment
  | Remaining
  | readonly Answer[]
  | { readonly [name: string]: Answer };

/** How a lease is called, by its id. */
export type LeaseName = (id: bigint) => string;

export function failed(answer: Answer): string | undefined {
  const { error } = (answer ?? {}) as { readonly error?: unknown };
  return typeof error === 'string' ? error : undefined;
}

/** As text, for people: revisions as numbers. */
export function shown(answer: Answer): string {
  return JSON.stringify(answer, (_, value) => {
    if (value instanceof Exact || value instanceof Moment) return value.revision;
    return value instanceof Remaining ? value.seconds : value;
  });
}

export function headerOf(header: ResponseHeader | undefined): Answer {
  return { ...namesOf(header), revision: new Moment(header?.revision ?? 0) };
}

/** The header of a request that changed something. */
export function changedHeader(header: ResponseHeader | undefined): Answer {
  return { ...namesOf(header), revision: new Exact(header?.revision ?? 0) };
}

/** Whether cluster and member are named: each server has its own. Terms of several ranges cannot be compared. */
function namesOf(header: ResponseHeader | undefined): { readonly cluster: boolean; readonly member: boolean } {
  return { cluster: (header?.clusterId ?? 0n) !== 0n, member: (header?.memberId ?? 0) !== 0 };
}

export function rangeAnswer(answer: RangeResponse, nameOf: LeaseName): Answer {
  const { kvs, more, count } = answer;
  return { kvs: kvs.map((kv) => pairAnswer(kv, nameOf)), more, count };
}

export function putAnswer({ prevKv }: PutResponse, nameOf: LeaseName): Answer {
  return { prev: prevKv === undefined ? null : pairAnswer(prevKv, nameOf) };
}

export function deleteAnswer({ deleted, prevKvs }: DeleteRangeResponse, nameOf: LeaseName): Answer {
  return { deleted: Number(deleted), prev: prevKvs.map((kv) => pairAnswer(kv, nameOf)) };
}

/** `header` is that of the whole: those of its parts name revisions only. */
export function txnAnswer({ succeeded, responses }: TxnResponse, nameOf: LeaseName): Answer {
  return { succeeded, responses: responses.map((part) => partAnswer(part, nameOf)) };
}

function partAnswer({ response }: ResponseOp, nameOf: LeaseName): Answer {
  const at = { at: new Moment(response?.value.header?.revision ?? 0) };
  switch (response?.$case) {
    case 'responseRange':
      return { range: rangeAnswer(response.value, nameOf), ...at };
    case 'responsePut':
      return { put: putAnswer(response.value, nameOf), ...at };
    case 'responseDeleteRange':
      return { delete: deleteAnswer(response.value, nameOf), ...at };
    case 'responseTxn':
      return { txn: txnAnswer(response.value, nameOf), ...at };
    case undefined:
      return { nothing: true };
  }
}

function pairAnswer(kv: KeyValue, nameOf: LeaseName): Answer {
  return {
    key: shortened(kv.key),
    value: shortened(kv.value),
    create: new Exact(kv.createRevision),
    mod: new Exact(kv.modRevision),
    version: Number(kv.version),
    lease: nameOf(kv.lease),
  };
}

export function eventAnswer({ type, kv, prevKv }: Event, nameOf: LeaseName): Answer {
  return {
    type: type === 0 ? 'put' : 'delete',
    kv: kv === undefined ? null : pairAnswer(kv, nameOf),
    prev: prevKv === undefined ? null : pairAnswer(prevKv, nameOf),
  };
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

const VALUE_SHOWN_MAX = 64;

function shortened(bytes: Uint8Array): string {
  const text = textOf(bytes);
  return text.length <= VALUE_SHOWN_MAX ? text : `${text.slice(0, VALUE_SHOWN_MAX)}… (${text.length} bytes)`;
}
