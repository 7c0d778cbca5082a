/** The answers of the HTTP API about plain keys. Types only: the console imports them. */
import type { JsonBytes } from '@remora/base';

/** What is known of a key without its value. */
export interface KeyJson {
  readonly key: JsonBytes;
  readonly createRevision: number;
  readonly modRevision: number;
  /** 1 for a key just created; it grows with each put. */
  readonly version: number;
  /** The lease that the key belongs to, in hexadecimal: `/v1/sessions/{lease}.0` shows it. Absent: none. */
  readonly lease?: string;
  /** The length of the value. Absent: it was not read, as the list has no values. */
  readonly valueBytes?: number;
}

export interface KeyValueJson extends KeyJson {
  readonly value: JsonBytes;
  readonly valueBytes: number;
}

/** `GET /v1/kv/{key}` */
export interface KvAnswer extends KeyValueJson {
  /** The revision at which the key was read. `since` of `/v1/kv-events` continues from here without a gap. */
  readonly revision: number;
}

/** `GET /v1/kv` */
export interface KvListAnswer {
  /** In the order of the keys; without values if `values=false`. */
  readonly kvs: readonly (KeyJson | KeyValueJson)[];
  /** All pages of a list are read at this revision. */
  readonly revision: number;
  /**
   * The cursor of the next page; absent at the end. A page may be short, or empty, although there is a next one: with
   * `contains`, each request looks at a bounded number of keys.
   */
  readonly next?: string;
}

/** Everything below the folder has its name as a prefix. */
export interface FolderJson {
  readonly kind: 'folder';
  /** The part of its keys behind the prefix that was asked for, with the separator at its end. */
  readonly name: JsonBytes;
  /** The prefix of its keys: pass it as `prefix` to open it. */
  readonly key: JsonBytes;
}

export interface LeafJson extends KeyJson {
  readonly kind: 'key';
  /** The part of the key behind the prefix; empty if the key is the prefix itself. */
  readonly name: JsonBytes;
}

/** `GET /v1/kv-tree` */
export interface KvTreeAnswer {
  /** In the order of the keys. `a` and the folder `a/` are two entries. */
  readonly entries: readonly (FolderJson | LeafJson)[];
  readonly revision: number;
  /** The cursor of the next page; absent at the end. */
  readonly next?: string;
}

/** One version of a key: what a put wrote, or that the key was deleted. */
export type KeyVersionJson =
  | ({ readonly type: 'put' } & KeyValueJson)
  | { readonly type: 'delete'; readonly key: JsonBytes; readonly modRevision: number };

/** `GET /v1/kv-history/{key}` */
export interface KvHistoryAnswer {
  /** The newest first, deletions included. */
  readonly versions: readonly KeyVersionJson[];
  readonly revision: number;
  /** Versions that were replaced or deleted up to this revision are gone; 0: nothing was compacted. */
  readonly compactRevision: number;
  /** The cursor of the next page; absent: no older version is kept. */
  readonly next?: string;
}

/** `PUT /v1/kv/{key}` */
export interface KvPutAnswer {
  /** The revision of the change. */
  readonly modRevision: number;
}

/** `DELETE /v1/kv/{key}` and `DELETE /v1/kv` */
export interface KvDeleteAnswer {
  /** How many keys were deleted; 0 if there was none. */
  readonly deleted: number;
  /** The revision after the call. */
  readonly revision: number;
}

/** In the body of the error KEY_CHANGED (409), beside `code`, `message` and `retry`. */
export interface KeyChangedDetails {
  /** The key as it is; null: it is absent. Not there for `DELETE /v1/kv`. Values above 64 KiB are left out. */
  readonly current?: KeyJson | KeyValueJson | null;
}

/**
 * The data of the event `live` of `GET /v1/kv-events`, the first one: changes above this revision follow. And of
 * `progress`: no change up to this revision is missing. Each event has its revision as its id.
 */
export interface KvStreamLive {
  readonly revision: number;
}

/** The data of `events`: all changes of one revision. */
export interface KvStreamChanges {
  readonly revision: number;
  /** Puts have no value if the stream was opened with `values=false`. */
  readonly events: readonly KvStreamChange[];
}

export type KvStreamChange =
  | ({ readonly type: 'put' } & (KeyJson | KeyValueJson))
  | { readonly type: 'delete'; readonly key: JsonBytes; readonly modRevision: number };

/** A line of `GET /v1/kv-export`; the last one is a `KvExportEnd`, or the body of an error. */
export type KvExportLine = KeyValueJson;

export interface KvExportEnd {
  readonly end: { readonly keys: number; readonly revision: number };
}

/** `POST /v1/kv-import` */
export interface KvImportAnswer {
  readonly written: number;
  /** Keys that were there already (`mode=ifAbsent`). */
  readonly skipped: number;
}
