/**
 * Generates code for frequent messages from their declarations: lists and objects are written as literals, so that V8
 * knows their shapes, and nothing is looked up by name. The code does the same as codec.ts, in about half the time.
 *
 * CC1. Only declarations become code, never received data. Names are quoted.
 * CC2. Compiled decoders accept what codec.ts accepts, and return the same. They do not explain errors: a value that
 *      they refuse is decoded again by codec.ts, which does.
 * CC3. If a process may not generate code from text (`--disallow-code-generation-from-strings`), codec.ts does
 *      everything.
 */
import type { Mode } from './decode.ts';
import type { AnyKind, Field, Fields, Shape, StructShape, UnionShape } from './shape.ts';

type Coder = (value: unknown) => unknown;
type OfShape<Is extends Shape['is']> = Extract<Shape, { readonly is: Is }>;

/** The codecs without compilation, for kinds that are not worth it. */
export interface Interpreter {
  encoder(kind: AnyKind): Coder;
  decoder(kind: AnyKind, mode: Mode): Coder;
  /** How many of the last fields, the added ones, a value needs. */
  addedNeeded(fields: Fields): (value: unknown) => number;
}

/** Undefined if code must not be generated (CC3). */
export function compileDecoder(kind: AnyKind, mode: Mode, interpreter: Interpreter): Coder | undefined {
  const code = new DecoderCode(interpreter);
  return code.make(code.functionOf(kind, mode));
}

export function compileEncoder(kind: AnyKind, interpreter: Interpreter): Coder | undefined {
  const code = new EncoderCode(interpreter);
  return code.make(code.functionOf(kind));
}

/** The error of compiled decoders (CC2). */
const REFUSED = new Error('refused by a compiled decoder');

const PRELUDE = `'use strict';
const refuse = () => { throw refused; };
const isList = Array.isArray;
const isSafe = Number.isSafeInteger;
const isFinite = Number.isFinite;
const uint = (x) => (isSafe(x) && x >= 0 ? x : refuse());
const int = (x) => (isSafe(x) ? x : refuse());
const ms = (x) => (isFinite(x) ? x : refuse());
const bool = (x) => (typeof x === 'boolean' ? x : refuse());
const text = (x) => (typeof x === 'string' ? x : refuse());
const bytes = (x) => (x instanceof Uint8Array ? x : refuse());
`;

class Code {
  readonly interpreter: Interpreter;
  readonly #constants: unknown[] = [];
  readonly #functions: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #ids = new Map<Shape, number>();

  constructor(interpreter: Interpreter) {
    this.interpreter = interpreter;
  }

  constant(value: unknown): string {
    this.#constants.push(value);
    return `c${this.#constants.length - 1}`;
  }

  /** Returns the name of the function for a shape, whose body is generated once; the shape may contain itself. */
  named(shape: Shape, variant: string, body: () => string): string {
    const id = this.#ids.get(shape) ?? this.#ids.size;
    this.#ids.set(shape, id);
    const key = `${id} ${variant}`;
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const name = `f${this.#names.size}`;
    this.#names.set(key, name);
    this.#functions.push(`function ${name}(x) {\n${body()}\n}`);
    return name;
  }

  make(root: string): Coder | undefined {
    const constants = this.#constants.map((_, i) => `const c${i} = constants[${i}];`).join('\n');
    const source = `${PRELUDE}${constants}\n${this.#functions.join('\n')}\nreturn ${root};`;
    try {
      return new Function('constants', 'refused', source)(this.#constants, REFUSED) as Coder;
    } catch (error) {
      if (error instanceof EvalError) return undefined; // CC3
      throw error;
    }
  }
}

// ------------------------------------------------------------------------------------------------ encoders

class EncoderCode extends Code {
  functionOf({ shape }: AnyKind): string {
    return this.named(shape, '', () => this.#body(shape));
  }

  #body(shape: Shape): string {
    switch (shape.is) {
      case 'struct':
        return this.#list([], shape.fields, 'x');
      case 'union':
        return this.#union(shape);
      case 'list':
        return `const n = x.length; const out = new Array(n);
for (let i = 0; i < n; i++) { const item = x[i]; out[i] = ${this.#expression(shape.of, 'item')}; }
return out;`;
      case 'choice': {
        const [first, second] = shape.of;
        const pick = this.constant(shape.ofValue);
        return `return ${pick}(x) === 0 ? ${this.#expression(first, 'x')} : ${this.#expression(second, 'x')};`;
      }
      case 'mapped':
        return `const plain = ${this.constant(shape.from)}(x); return ${this.#expression(shape.of, 'plain')};`;
      default:
        return `return ${this.#expression({ shape }, 'x')};`;
    }
  }

  /** `value` is the name of a variable, or a path from one. */
  #expression(kind: AnyKind, value: string): string {
    const { shape } = kind;
    switch (shape.is) {
      case 'uint':
      case 'int':
      case 'ms':
      case 'bool':
      case 'text':
      case 'bytes':
      case 'details':
        return value;
      case 'nothing':
        return 'null';
      case 'int64':
        return shape.wide ? value : `(${value} === 0n ? 0 : ${value})`;
      case 'flags':
        return `(${shape.names.map((name, i) => `(${value}[${quoted(name)}] ? ${1 << i} : 0)`).join(' | ')})`;
      case 'optional':
        return `(${value} === undefined ? null : ${this.#expression(shape.of, value)})`;
      case 'sealed':
        return this.#expression(shape.of, value);
      case 'recursive':
        return `${this.functionOf(shape.of())}(${value})`;
      case 'struct':
      case 'union':
      case 'list':
      case 'choice':
      case 'mapped':
        return `${this.functionOf(kind)}(${value})`;
      default:
        return `${this.constant(this.interpreter.encoder(kind))}(${value})`;
    }
  }

  #union({ by, variants, branches, name }: UnionShape): string {
    const cases = Object.entries(variants).map(
      ([type, { tag, fields }]) => `case ${quoted(type)}: {\n${this.#list([String(tag)], fields, 'x')}\n}`,
    );
    for (const { tag, of, types } of branches) {
      const labels = types.map((type) => `case ${quoted(type)}:`).join(' ');
      cases.push(`${labels} return [${tag}, ${this.#expression(of, 'x')}];`);
    }
    const otherwise = this.constant(this.interpreter.encoder({ shape: { is: 'union', by, variants, branches, name } }));
    return `switch (x[${quoted(by)}]) {\n${cases.join('\n')}\ndefault: return ${otherwise}(x);\n}`;
  }

  #list(before: readonly string[], fields: Fields, value: string): string {
    const entries = Object.entries(fields);
    const items = entries.filter(([, field]) => field.added === undefined);
    const written = [...before, ...items.flatMap(([name, field]) => this.#items(name, field, value))];
    const later = entries.filter(([, field]) => field.added !== undefined);
    if (later.length === 0) return `return [${written.join(', ')}];`;
    const pushes = later.map(
      ([name, field], i) => `if (n > ${i}) out.push(${this.#items(name, field, value).join(', ')});`,
    );
    const needed = this.constant(this.interpreter.addedNeeded(fields));
    return `const out = [${written.join(', ')}]; const n = ${needed}(${value});\n${pushes.join('\n')}\nreturn out;`;
  }

  #items(name: string, { kind, placing }: Field<unknown>, value: string): readonly string[] {
    const at = `${value}[${quoted(name)}]`;
    switch (placing) {
      case 'flat':
        if (kind.shape.is !== 'struct') return [this.#expression(kind, at)];
        return Object.entries(kind.shape.fields).flatMap(([inner, field]) => this.#items(inner, field, at));
      case 'spread':
        return [this.#expression(kind, value)];
      case 'flatSpread':
        return [`...${this.#expression(kind, value)}`];
      default:
        return [this.#expression(kind, at)];
    }
  }
}

// ------------------------------------------------------------------------------------------------ decoders

/** An object that is being generated: its literal, and the assignments that follow it. */
interface Literal {
  readonly fields: string[];
  readonly after: string[];
}

class DecoderCode extends Code {
  #variables = 0;

  functionOf(kind: AnyKind, mode: Mode): string {
    return this.named(kind.shape, mode, () => this.#body(kind, mode));
  }

  #body(kind: AnyKind, mode: Mode): string {
    const { shape } = kind;
    switch (shape.is) {
      case 'struct':
        return this.#struct(shape, mode);
      case 'union':
        return this.#union(shape, mode);
      case 'list':
        return this.#list(shape, mode);
      case 'choice': {
        const [first, second] = shape.of;
        const pick = this.constant(shape.ofRaw);
        return `if (!isList(x)) refuse();
return ${pick}(x) === 0 ? ${this.#expression(first, 'x', mode)} : ${this.#expression(second, 'x', mode)};`;
      }
      case 'mapped':
        return `return ${this.constant(shape.to)}(${this.#expression(shape.of, 'x', mode)});`;
      default:
        return `return ${this.#expression(kind, 'x', mode)};`;
    }
  }

  #expression(kind: AnyKind, raw: string, mode: Mode): string {
    const { shape } = kind;
    switch (shape.is) {
      case 'uint':
        if (shape.min === 0 && shape.max === Number.MAX_SAFE_INTEGER) return `uint(${raw})`;
        break;
      case 'int':
      case 'ms':
      case 'bool':
      case 'bytes':
        return `${shape.is}(${raw})`;
      case 'text':
        if (shape.min === 0 && shape.max === Number.MAX_SAFE_INTEGER) return `text(${raw})`;
        break;
      case 'optional':
        return `(${raw} === null ? undefined : ${this.#expression(shape.of, raw, mode)})`;
      case 'sealed':
        return this.#expression(shape.of, raw, 'closed');
      case 'struct':
      case 'union':
      case 'list':
      case 'choice':
      case 'mapped':
        return `${this.functionOf(kind, mode)}(${raw})`;
    }
    return `${this.constant(this.interpreter.decoder(kind, mode))}(${raw})`;
  }

  #list({ of, max, distinct }: OfShape<'list'>, mode: Mode): string {
    return `if (!isList(x)) refuse();
const n = x.length;${max === Number.MAX_SAFE_INTEGER ? '' : ` if (n > ${max}) refuse();`}
const out = new Array(n);
for (let i = 0; i < n; i++) { const item = x[i]; out[i] = ${this.#expression(of, 'item', mode)}; }
${distinct ? 'if (new Set(out).size !== n) refuse();' : ''}
return out;`;
  }

  #struct({ fields }: StructShape, mode: Mode): string {
    return this.#object(fields, { list: 'x', from: 0, first: [], mode });
  }

  #union({ by, variants, branches }: UnionShape, mode: Mode): string {
    const cases = Object.entries(variants).map(([type, { tag, fields }]) => {
      const first = [`${quoted(by)}: ${quoted(type)}`];
      return `case ${tag}: {\n${this.#object(fields, { list: 'x', from: 1, first, mode })}\n}`;
    });
    for (const { tag, of } of branches) {
      const other = mode === 'closed' ? '!==' : '<';
      cases.push(`case ${tag}: if (x.length ${other} 2) refuse(); return ${this.#expression(of, 'x[1]', mode)};`);
    }
    return `if (!isList(x)) refuse();\nswitch (x[0]) {\n${cases.join('\n')}\ndefault: refuse();\n}`;
  }

  /** Statements that return an object with the fields of a list, with `first` at its beginning. */
  #object(fields: Fields, { list, from, first, mode }: ObjectOf): string {
    const literal: Literal = { fields: [...first], after: [] };
    const { min, max } = this.#read(fields, { list, from, mode, literal });
    const surplus = mode === 'closed' ? ` || ${list}.length > ${max}` : '';
    const check = `if (!isList(${list}) || ${list}.length < ${min}${surplus}) refuse();`;
    if (literal.after.length === 0) return `${check}\nreturn { ${literal.fields.join(', ')} };`;
    return `${check}\nconst value = { ${literal.fields.join(', ')} };\n${literal.after.join('\n')}\nreturn value;`;
  }

  /** The minimum and maximum length of the list. */
  #read(fields: Fields, { list, from, mode, literal }: Reading): { readonly min: number; readonly max: number } {
    let [min, max] = [from, from];
    for (const [name, { kind, placing, added }] of Object.entries(fields)) {
      const raw = `${list}[${max}]`;
      if (placing === 'flat' && kind.shape.is === 'struct') {
        const inner: Literal = { fields: [], after: literal.after };
        const end = this.#read(kind.shape.fields, { list, from: max, mode, literal: inner });
        literal.fields.push(`${quoted(name)}: { ${inner.fields.join(', ')} }`);
        min += end.max - max;
        max = end.max;
        continue;
      }
      max += placing === 'flatSpread' ? 2 : 1;
      if (added === undefined) min = max;
      if (placing === 'spread') this.#spread(kind, raw, mode, literal);
      else if (placing === 'flatSpread') {
        const both = `[${raw}, ${list}[${max - 1}]]`;
        literal.after.push(`Object.assign(value, ${this.functionOf(kind, mode)}(${both}));`);
      } else {
        const read = this.#expression(kind, raw, mode);
        const found = added === undefined ? read : this.#later(read, `${list}.length > ${max - 1}`, added.absent);
        if (placing === 'own') literal.fields.push(`${quoted(name)}: ${found}`);
        else {
          const variable = `v${this.#variables++}`;
          literal.after.push(
            `const ${variable} = ${found}; if (${variable} !== undefined) value[${quoted(name)}] = ${variable};`,
          );
        }
      }
    }
    return { min, max };
  }

  #later(read: string, isThere: string, absent: unknown): string {
    return `(${isThere} ? ${read} : ${absent === undefined ? 'undefined' : this.constant(absent)})`;
  }

  #spread(kind: AnyKind, raw: string, mode: Mode, literal: Literal): void {
    const { shape } = kind;
    if (shape.is !== 'flags') {
      literal.after.push(`Object.assign(value, ${this.#expression(kind, raw, mode)});`);
      return;
    }
    const limit = 1 << shape.names.length;
    for (const [i, name] of shape.names.entries()) {
      const sum = i === 0 ? `(uint(${raw}) < ${limit} ? ${raw} : refuse())` : raw;
      literal.fields.push(`${quoted(name)}: (${sum} & ${1 << i}) !== 0`);
    }
  }
}

interface ObjectOf {
  readonly list: string;
  readonly from: number;
  readonly first: readonly string[];
  readonly mode: Mode;
}

interface Reading {
  readonly list: string;
  readonly from: number;
  readonly mode: Mode;
  readonly literal: Literal;
}

/** CC1. */
function quoted(name: string): string {
  return JSON.stringify(name);
}
