/**
 * Decodes the header blocks of one connection: RFC 7541.
 *
 * C1. After a block, the dynamic table is what the peer's encoder believes it to be, whether its list was accepted or
 *     not. If that cannot be, decoding throws, and the connection must end.
 * C2. Work and memory are linear in the octets of a block. A reference costs no copy, and a list ends at its limits
 *     however much its block refers to.
 * C3. The capacity of the dynamic table changes only at the beginning of a block (§4.2), and never beyond our setting.
 */
import { BlockCache } from './block-cache.ts';
import { DynamicTable } from './dynamic-table.ts';
import { type DecodedField, decodedField, fieldBytes, HpackError, TABLE_BYTES_INITIAL } from './header-field.ts';
import { huffmanDecode, huffmanDecodedBytesMax } from './huffman.ts';
import { STATIC_COUNT, STATIC_FIELDS } from './static-table.ts';

export interface HeaderDecoderLimits {
  /** Our SETTINGS_HEADER_TABLE_SIZE. */
  readonly tableBytesMax: number;
  /** Our SETTINGS_MAX_HEADER_LIST_SIZE: names, values and 32 octets for each field. */
  readonly listBytesMax: number;
  /** Fields in a list. */
  readonly fieldsMax: number;
}

/** No length or index of a valid block is larger. */
const INTEGER_MAX = 2 ** 31 - 1;
/** Octets that follow the prefix of an integer; more of them could only be zeros. */
const CONTINUATIONS_MAX = 5;

/** Strings that decode to at most this many octets share one buffer. */
const SCRATCH_BYTES = 8_192;
const SCRATCH = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

export class HeaderDecoder {
  readonly #limits: HeaderDecoderLimits;
  readonly #table: DynamicTable;
  readonly #cache = new BlockCache();
  /** The largest capacity that the peer may choose now. */
  #capacityMax: number;
  /** The next block must begin with a smaller capacity (§4.2). */
  #isUpdateDue = false;
  /** The block that is being decoded, how far, and where it ends. */
  #block: Buffer = SCRATCH;
  #at = 0;
  #end = 0;

  constructor(limits: HeaderDecoderLimits) {
    this.#limits = limits;
    this.#capacityMax = Math.max(limits.tableBytesMax, TABLE_BYTES_INITIAL);
    this.#table = new DynamicTable({ bytesMax: TABLE_BYTES_INITIAL, capacityBytesMax: this.#capacityMax });
  }

  /** What the dynamic table holds now, by the measure of its capacity. */
  get tableBytes(): number {
    return this.#table.bytes;
  }

  /** The peer has acknowledged our settings. Before that it may use the initial capacity, if ours is smaller. */
  settingsAcknowledged(): void {
    this.#capacityMax = this.#limits.tableBytesMax;
    this.#isUpdateDue = this.#table.bytesMax > this.#capacityMax;
  }

  /**
   * Decodes `block[start, end)`, a whole header block. Returns undefined if the list is larger than allowed; the table
   * is up to date then, so the connection can go on. A repeated block may return the same frozen list.
   *
   * @throws {HpackError} the block is invalid; the connection must end with COMPRESSION_ERROR.
   */
  decode(block: Buffer, start: number, end: number): readonly DecodedField[] | undefined {
    const { generation } = this.#table;
    const known = this.#cache.find(block, start, end, generation);
    if (known !== undefined) return known;
    this.#block = block;
    this.#at = start;
    this.#end = end;
    try {
      this.#updateCapacity();
      const list = this.#fields();
      if (list !== undefined && this.#table.generation === generation) {
        this.#cache.store(block, start, end, generation, list);
      }
      return list;
    } finally {
      this.#block = SCRATCH;
    }
  }

  /** Size updates (§6.3). They stand before all fields (C3). */
  #updateCapacity(): void {
    const block = this.#block;
    while (this.#at < this.#end && ((block[this.#at] ?? 0) & 0xe0) === 0x20) {
      const capacity = this.#integer(0x1f);
      if (capacity > this.#capacityMax) {
        throw new HpackError(`a table size update to ${capacity}; the setting is ${this.#capacityMax}`);
      }
      if (capacity !== this.#table.bytesMax) this.#table.resize(capacity);
      this.#isUpdateDue = false;
    }
    if (this.#isUpdateDue) {
      throw new HpackError(`no table size update after the setting was lowered to ${this.#capacityMax}`);
    }
  }

  #fields(): readonly DecodedField[] | undefined {
    const { listBytesMax, fieldsMax } = this.#limits;
    const list: DecodedField[] = [];
    const block = this.#block;
    let bytes = 0;
    let isTooLarge = false;
    while (this.#at < this.#end) {
      const field = this.#field(block[this.#at] ?? 0);
      if (isTooLarge) continue;
      bytes += fieldBytes(field);
      if (bytes > listBytesMax || list.length === fieldsMax) isTooLarge = true;
      else list.push(field);
    }
    return isTooLarge ? undefined : list;
  }

  /** One representation (§6), which begins with the octet `first`. */
  #field(first: number): DecodedField {
    if ((first & 0x80) !== 0) return this.#reference(this.#integer(0x7f));
    if ((first & 0x40) !== 0) {
      const field = this.#literal(0x3f);
      this.#table.add(field);
      return field;
    }
    if ((first & 0x20) !== 0) throw new HpackError('a table size update behind a field');
    // Never indexed (0001) or not indexed (0000): the difference matters only to those who forward a field.
    return this.#literal(0x0f);
  }

  #literal(prefix: number): DecodedField {
    const index = this.#integer(prefix);
    const name = index === 0 ? this.#string() : this.#reference(index).name;
    return decodedField(name, this.#string());
  }

  /** The entry of the two tables at this index (§2.3.3). */
  #reference(index: number): DecodedField {
    const field = index <= STATIC_COUNT ? STATIC_FIELDS[index - 1] : this.#table.at(index - STATIC_COUNT - 1);
    if (field === undefined) throw new HpackError(`index ${index} is not in the tables`);
    return field;
  }

  /** An integer (§5.1) whose prefix has these bits of the next octet. */
  #integer(prefix: number): number {
    const low = this.#octet() & prefix;
    if (low < prefix) return low;
    let value = prefix;
    let unit = 1;
    for (let count = 0; count < CONTINUATIONS_MAX; count++) {
      const octet = this.#octet();
      value += (octet & 0x7f) * unit;
      if (value > INTEGER_MAX) break;
      if (octet < 0x80) return value;
      unit *= 128;
    }
    throw new HpackError('an integer is too large');
  }

  #octet(): number {
    if (this.#at >= this.#end) throw new HpackError('the block ends inside a field');
    return this.#block[this.#at++] ?? 0;
  }

  /** A string literal (§5.2). */
  #string(): string {
    const isHuffman = this.#at < this.#end && ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(0x7f);
    const start = this.#at;
    if (length > this.#end - start) throw new HpackError('the block ends inside a string');
    this.#at = start + length;
    if (!isHuffman) return this.#block.toString('latin1', start, this.#at);
    const roomBytes = huffmanDecodedBytesMax(length);
    const target = roomBytes <= SCRATCH_BYTES ? SCRATCH : Buffer.allocUnsafeSlow(roomBytes);
    return target.toString('latin1', 0, huffmanDecode(this.#block, start, this.#at, target));
  }
}
