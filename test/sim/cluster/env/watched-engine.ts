/** A node's engine, with a digest of the rows that apply writes. */
import type { Bytes, Engine, Link, Rebuild, ResidentValue, ScanOptions, Span } from '@remora/base';
import { hashOfBytes, hashOfText } from '../../common/hash.ts';

/** Rows of a replica's own, written when a checkpoint begins, not by apply. */
const LOCAL_SPACE = 0;
/** Older versions of keys: apply adds to them, and each replica removes them in its own time. */
const HISTORY_SPACE = 4;

export class WatchedEngine implements Engine {
  readonly #inner: Engine;
  #digest = 0;

  constructor(inner: Engine) {
    this.#inner = inner;
  }

  /** The digest of everything written since the last call; 0 if nothing was. */
  takeDigest(): number {
    const digest = this.#digest;
    this.#digest = 0;
    return digest;
  }

  put(key: Bytes, value: Bytes): void {
    if (key[0] !== LOCAL_SPACE) this.#add(hashOfBytes(key), hashOfBytes(value));
    this.#inner.put(key, value);
  }

  delete(key: Bytes): void {
    if (key[0] !== LOCAL_SPACE && key[0] !== HISTORY_SPACE) this.#add(hashOfBytes(key), hashOfText('deleted'));
    this.#inner.delete(key);
  }

  getResident(name: string): ResidentValue | undefined {
    return this.#inner.getResident(name);
  }

  putResident(name: string, value: ResidentValue): void {
    if (name.charCodeAt(0) !== LOCAL_SPACE) {
      this.#add(hashOfText(name), hashOfBytes(value instanceof Uint8Array ? value : value.encode()));
    }
    this.#inner.putResident(name, value);
  }

  deleteResident(name: string): void {
    if (name.charCodeAt(0) !== LOCAL_SPACE) this.#add(hashOfText(name), hashOfText('deleted'));
    this.#inner.deleteResident(name);
  }

  link(link: Link, isNew: boolean): void {
    this.#addLink(link, 'linked');
    this.#inner.link(link, isNew);
  }

  unlink(link: Link): void {
    this.#addLink(link, 'deleted');
    this.#inner.unlink(link);
  }

  isLinked(link: Link): boolean {
    return this.#inner.isLinked(link);
  }

  #addLink({ from, to }: Link, how: string): void {
    if (from.charCodeAt(0) !== LOCAL_SPACE) this.#add(hashOfText(from + to), hashOfText(how));
  }

  #add(key: number, value: number): void {
    const digest = Math.imul(Math.imul(this.#digest ^ key, 0x01000193) ^ value, 0x01000193) >>> 0;
    this.#digest = Math.max(1, digest);
  }

  get(key: Bytes): Bytes | undefined {
    return this.#inner.get(key);
  }

  scanResident(options: ScanOptions) {
    return this.#inner.scanResident(options);
  }

  scan(options: ScanOptions) {
    return this.#inner.scan(options);
  }

  view() {
    return this.#inner.view();
  }

  clearSpan(span: Span): Promise<void> {
    return this.#inner.clearSpan(span);
  }

  rebuild(plan: Rebuild): Promise<void> {
    return this.#inner.rebuild(plan);
  }

  onCheckpoint(hook: () => void): () => void {
    return this.#inner.onCheckpoint(hook);
  }

  checkpoint(): Promise<void> {
    return this.#inner.checkpoint();
  }

  pending() {
    return this.#inner.pending();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
