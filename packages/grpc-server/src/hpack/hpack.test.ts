// The examples of RFC 7541 appendix C, as the RFC prints them.
import { describe, expect, test } from 'vitest';
import { HeaderDecoder } from './header-decoder.ts';
import { encodeFields, HeaderEncoder } from './header-encoder.ts';
import { type HeaderField, HpackError } from './header-field.ts';

const LIMITS = { tableBytesMax: 4_096, listBytesMax: 8_192, fieldsMax: 100 };

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replace(/\s/g, ''), 'hex');
}

function decode(decoder: HeaderDecoder, hex: string): readonly string[] | undefined {
  const block = bytes(hex);
  return decoder.decode(block, 0, block.length)?.map(({ name, value }) => `${name}: ${value}`);
}

const REQUESTS = [
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com', 'cache-control: no-cache'],
  [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com', 'custom-key: custom-value'],
];
const DATE_21 = 'date: Mon, 21 Oct 2013 20:13:21 GMT';
const DATE_22 = 'date: Mon, 21 Oct 2013 20:13:22 GMT';
const LOCATION = 'location: https://www.example.com';
const COOKIE = 'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const RESPONSES = [
  [':status: 302', 'cache-control: private', DATE_21, LOCATION],
  [':status: 307', 'cache-control: private', DATE_21, LOCATION],
  [':status: 200', 'cache-control: private', DATE_22, LOCATION, 'content-encoding: gzip', COOKIE],
];

interface Example {
  readonly name: string;
  readonly capacity?: number;
  /** Blocks in hex, what each decodes to, and the size of the dynamic table behind it. */
  readonly blocks: readonly (readonly [hex: string, list: readonly string[] | undefined, tableBytes: number])[];
}

const EXAMPLES: readonly Example[] = [
  {
    name: 'C.2.1 a literal field with indexing',
    blocks: [['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', ['custom-key: custom-header'], 55]],
  },
  {
    name: 'C.2.2 a literal field without indexing',
    blocks: [['040c 2f73 616d 706c 652f 7061 7468', [':path: /sample/path'], 0]],
  },
  {
    name: 'C.2.3 a literal field never indexed',
    blocks: [['1008 7061 7373 776f 7264 0673 6563 7265 74', ['password: secret'], 0]],
  },
  { name: 'C.2.4 an indexed field', blocks: [['82', [':method: GET'], 0]] },
  {
    name: 'C.3 requests without the Huffman code',
    blocks: [
      ['8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d', REQUESTS[0], 57],
      ['8286 84be 5808 6e6f 2d63 6163 6865', REQUESTS[1], 110],
      ['8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65', REQUESTS[2], 164],
    ],
  },
  {
    name: 'C.4 requests with the Huffman code',
    blocks: [
      ['8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff', REQUESTS[0], 57],
      ['8286 84be 5886 a8eb 1064 9cbf', REQUESTS[1], 110],
      ['8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf', REQUESTS[2], 164],
    ],
  },
  {
    name: 'C.5 responses without the Huffman code, in a table of 256 octets',
    capacity: 256,
    blocks: [
      [
        `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        RESPONSES[0],
        222,
      ],
      ['4803 3330 37c1 c0bf', RESPONSES[1], 222],
      [
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
        RESPONSES[2],
        215,
      ],
    ],
  },
  {
    name: 'C.6 responses with the Huffman code, in a table of 256 octets',
    capacity: 256,
    blocks: [
      [
        `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        RESPONSES[0],
        222,
      ],
      ['4883 640e ffc1 c0bf', RESPONSES[1], 222],
      [
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
        RESPONSES[2],
        215,
      ],
    ],
  },
];

test.each(EXAMPLES)('RFC 7541 $name', ({ capacity = 4_096, blocks }) => {
  const decoder = new HeaderDecoder({ ...LIMITS, tableBytesMax: capacity });
  decoder.settingsAcknowledged();
  blocks.forEach(([hex, list, tableBytes], index) => {
    // A table smaller than the initial one is agreed on at the beginning of the first block: 256 = 31 + 225.
    const update = capacity < 4_096 && index === 0 ? '3fe101' : '';
    expect(decode(decoder, update + hex)).toEqual(list);
    expect(decoder.tableBytes).toBe(tableBytes);
  });
});

describe('integers', () => {
  test.each([
    { name: 'C.1.1 10 fits into a prefix of 5 bits', hex: '2a', expect: [] },
    { name: 'C.1.2 1337 in a prefix of 5 bits takes three octets', hex: '3f9a0a', expect: [] },
    { name: 'zeros behind the value', hex: '3f808000', expect: [] },
    { name: 'as many zeros as fit', hex: '3f8080808000', expect: [] },
    { name: 'more continuations than any value needs', hex: '3f808080808000', expect: HpackError },
    { name: 'an integer beyond 2^31', hex: 'ffffffffff7f', expect: HpackError },
    { name: 'an integer that does not end', hex: '3f80', expect: HpackError },
    { name: 'a string longer than the block by an integer of 2^31 - 1', hex: '007f80ffffff07', expect: HpackError },
  ])('$name', ({ hex, expect: expected }) => {
    const decoder = new HeaderDecoder(LIMITS);
    if (expected === HpackError) expect(() => decode(decoder, hex)).toThrow(HpackError);
    else expect(decode(decoder, hex)).toEqual(expected);
  });
});

describe('a block is refused that', () => {
  test.each([
    { name: 'refers to index 0', hex: '80' },
    { name: 'refers to an entry that the dynamic table does not have', hex: 'be' },
    { name: 'takes a name from an entry that is not there', hex: '7f00 0161' },
    { name: 'ends behind the index of a literal', hex: '44' },
    { name: 'ends inside a name', hex: '400a 6375' },
    { name: 'ends behind a name', hex: '4001 61' },
    { name: 'pads the Huffman code with zeros', hex: '4081 18 0161' },
    { name: 'pads the Huffman code with 8 bits', hex: '4082 1fff 0161' },
    { name: 'pads an empty Huffman string with 8 bits', hex: '4081 ff 0161' },
    { name: 'contains EOS', hex: '4084 ffff ffff 0161' },
    { name: 'changes the capacity behind a field', hex: '82 20' },
    { name: 'sets a capacity beyond the setting', hex: '3fe2 1f 82' },
  ])('$name', ({ hex }) => {
    expect(() => decode(new HeaderDecoder(LIMITS), hex)).toThrow(HpackError);
  });
});

describe('the capacity of the dynamic table', () => {
  test('may be lowered and raised at the beginning of one block', () => {
    const decoder = new HeaderDecoder(LIMITS);
    decode(decoder, '4001610162');
    expect(decoder.tableBytes).toBe(34);
    expect(decode(decoder, '20 3fe11f 82')).toEqual([':method: GET']);
    expect(decoder.tableBytes).toBe(0);
  });

  test('must be lowered by the first block after a smaller setting was acknowledged', () => {
    const decoder = new HeaderDecoder({ ...LIMITS, tableBytesMax: 100 });
    expect(decode(decoder, '4001610162 be')).toEqual(['a: b', 'a: b']);
    decoder.settingsAcknowledged();
    expect(() => decode(decoder, 'be')).toThrow(HpackError);
    const other = new HeaderDecoder({ ...LIMITS, tableBytesMax: 100 });
    other.settingsAcknowledged();
    expect(decode(other, '3f45 82')).toEqual([':method: GET']);
    expect(decode(other, '82')).toEqual([':method: GET']);
  });

  test('an entry larger than the capacity empties the table, and is in the list', () => {
    const decoder = new HeaderDecoder(LIMITS);
    decode(decoder, '4001610162');
    const value = 'x'.repeat(4_100);
    const block = Buffer.concat([bytes('4001617f'), bytes('851f'), Buffer.from(value)]);
    expect(decoder.decode(block, 0, block.length)).toEqual([{ name: 'a', value, malformed: false }]);
    expect(decoder.tableBytes).toBe(0);
  });

  test('an entry may take its name from the entry that it evicts', () => {
    const decoder = new HeaderDecoder(LIMITS);
    const old = Buffer.concat([bytes('4001617f d11e'), Buffer.alloc(4_048, 'y')]);
    decoder.decode(old, 0, old.length);
    expect(decode(decoder, '7e 0162')).toEqual(['a: b']);
    expect(decoder.tableBytes).toBe(34);
  });
});

describe('a list beyond its limits', () => {
  test.each([
    { name: 'by its octets', limits: { ...LIMITS, listBytesMax: 100 } },
    { name: 'by its fields', limits: { ...LIMITS, fieldsMax: 2 } },
  ])('$name is not returned, and the table goes on with it', ({ limits }) => {
    const decoder = new HeaderDecoder(limits);
    expect(decode(decoder, '4001610162 4001630164 4001650166')).toBeUndefined();
    expect(decode(decoder, 'c0 be')).toEqual(['a: b', 'e: f']);
  });

  test('is refused all the same if it is invalid', () => {
    const decoder = new HeaderDecoder({ ...LIMITS, fieldsMax: 1 });
    expect(() => decode(decoder, '8282 ff00')).toThrow(HpackError);
  });
});

test.each([
  ['A', 'b'],
  ['', 'b'],
  ['a b', 'b'],
  ['a:b', 'b'],
  ['a\x7f', 'b'],
  ['a\xe9', 'b'],
  ['a', '\0'],
  ['a', 'b\r'],
  ['a', 'b\nc'],
  ['a', ' b'],
  ['a', 'b\t'],
])('the field %j: %j is malformed (RFC 9113 §8.2.1)', (name, value) => {
  const block = encodeFields([
    { name, value },
    { name: ':a', value: '\xe9 \t~' },
  ]);
  const list = new HeaderDecoder(LIMITS).decode(block, 0, block.length) ?? [];
  expect(list.map(({ malformed }) => malformed)).toEqual([true, false]);
});

describe('the encoder', () => {
  const ANSWER: readonly HeaderField[] = [
    { name: ':status', value: '200' },
    { name: 'content-type', value: 'application/grpc' },
  ];

  test('encodes constant fields the same in every state', () => {
    const encoder = new HeaderEncoder();
    expect(encoder.encode(ANSWER)).toEqual(encodeFields(ANSWER));
    expect(encodeFields(ANSWER).toString('hex')).toBe('880f108b1d75d0620d263d4c4d6564');
  });

  test('says once that it uses no table after the peer has lowered its setting', () => {
    const encoder = new HeaderEncoder();
    encoder.setTableBytesMax(8_192);
    expect(encoder.takePrefix().length).toBe(0);
    encoder.setTableBytesMax(100);
    expect(encoder.encode([{ name: ':status', value: '200' }])).toEqual(bytes('2088'));
    encoder.setTableBytesMax(4_096);
    encoder.setTableBytesMax(0);
    expect(encoder.encode([{ name: ':status', value: '200' }])).toEqual(bytes('88'));
  });
});

describe('the cache of blocks', () => {
  test('returns one list for one block under one state of the table', () => {
    const decoder = new HeaderDecoder(LIMITS);
    const block = bytes('82 86 84 0401 61');
    const first = decoder.decode(block, 0, block.length);
    expect(Object.isFrozen(first)).toBe(true);
    const within = Buffer.concat([bytes('ffff'), block, bytes('ff')]);
    expect(decoder.decode(within, 2, 2 + block.length)).toBe(first);
  });

  test('never returns a list of another state of the table', () => {
    const decoder = new HeaderDecoder(LIMITS);
    decode(decoder, '4001610162');
    expect(decode(decoder, 'be')).toEqual(['a: b']);
    expect(decode(decoder, 'be')).toEqual(['a: b']);
    decode(decoder, '4001630164');
    expect(decode(decoder, 'be')).toEqual(['c: d']);
    expect(() => decode(decoder, '20 be')).toThrow(HpackError);
    expect(() => decode(decoder, 'be')).toThrow(HpackError);
  });

  test('does not keep blocks that change the table', () => {
    const decoder = new HeaderDecoder(LIMITS);
    for (let count = 1; count < 4; count++) {
      expect(decode(decoder, '4001610162')).toEqual(['a: b']);
      expect(decoder.tableBytes).toBe(count * 34);
    }
  });
});
