/** The page of the messages between nodes and of the Pipe, made from their declarations. */
import type { AnyKind, Field, Fields, Shape, StructShape, UnionShape } from '../../src/schema/shape.ts';
import { METHODS, type Message } from './messages.ts';

const INTRO = `# Messages between nodes

This page is generated from the declarations in \`packages/protocol/src\` by \`npm run docs\`.

Calls travel in frames (\`packages/protocol/src/rpc/frame.ts\`). A frame is MessagePack without extensions. A struct is a list
of its fields in the order of the tables below; a union is a list that begins with the tag of its variant. Absent optional
values are \`null\`. Words are their positions, from 0. Commands and queries in a request refuse unknown fields. Everywhere
else a reader passes over fields behind those that it knows, and fills in those that an earlier release did not have
([decision 80](../decisions/0080-messages-are-declared.md)).
`;

export function wirePage(stored: readonly Message[]): string {
  const page = new Page();
  const methods = METHODS.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((method) => page.method(method));
  const rows = stored.map(({ name, kind }) => `- ${name}: ${page.type(kind)}`);
  const parts = [
    INTRO,
    '## Methods\n',
    ...methods,
    '## Parts of log entries and stored rows\n\nReaders refuse unknown fields in these.\n',
    `${rows.join('\n')}\n`,
    '## Types\n',
    ...page.types(),
  ];
  return `${parts.join('\n').trimEnd()}\n`;
}

class Page {
  readonly #named = new Map<string, Shape>();
  readonly #texts = new Map<string, string>();

  method({ name, callers, declared }: (typeof METHODS)[number]): string {
    const { meaning, request, reply, stream } = declared;
    const answer = stream ? 'Messages of the stream' : 'Answer';
    const lines = [`- Callers: ${callers}`, `- Request: ${this.type(request)}`, `- ${answer}: ${this.type(reply)}`];
    return `### \`${name}\`\n\n${meaning}\n\n${lines.join('\n')}\n`;
  }

  types(): readonly string[] {
    return [...this.#texts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, text]) => `### ${capital(name)}\n\n${text}`);
  }

  /** How a kind is named in a table; the shapes with a name are described once. */
  type({ shape }: AnyKind): string {
    switch (shape.is) {
      case 'uint':
        return shape.min === 0 && shape.max === Number.MAX_SAFE_INTEGER ? 'uint' : `uint ${bounds(shape)}`;
      case 'int':
        return 'int';
      case 'ms':
        return 'number';
      case 'text':
        return shape.max === Number.MAX_SAFE_INTEGER ? 'text' : `text ${bounds(shape)} characters${pattern(shape)}`;
      case 'words': {
        const shown = shape.words.map((word) => `\`${word}\``).join(', ');
        return shape.asText ? `text: the name of a ${shape.name}` : shown;
      }
      case 'flags':
        return `bits: ${shape.names.map((name) => `\`${name}\``).join(', ')}`;
      case 'textMap':
        return 'names and values by turns';
      case 'details':
        return 'map';
      case 'nothing':
        return 'null';
      case 'optional':
        return `${this.type(shape.of)} or null`;
      case 'list':
        return `list${shape.max === Number.MAX_SAFE_INTEGER ? '' : ` of at most ${shape.max}`}: ${this.type(shape.of)}`;
      case 'tuple':
        return `[${shape.of.map((of) => this.type(of)).join(', ')}]`;
      case 'struct':
      case 'union':
        return this.#link(shape);
      case 'choice':
        return shape.of.map((of) => this.type(of)).join(' or ');
      case 'mapped':
      case 'sealed':
        return this.type(shape.of);
      case 'recursive':
        return `${this.type(shape.of())}, nested at most ${shape.depthMax} deep`;
      case 'byHand':
        return `${shape.name}: ${shape.description}`;
      default:
        return shape.is;
    }
  }

  #link(shape: StructShape | UnionShape): string {
    const { name } = shape;
    const known = this.#named.get(name);
    if (known === undefined) {
      this.#named.set(name, shape);
      this.#texts.set(name, ''); // Its fields may name it.
      this.#texts.set(name, shape.is === 'struct' ? this.#struct(shape) : this.#union(shape));
    } else if (known !== shape) throw new Error(`two kinds of message are called "${name}"`);
    return `[${name}](#${name.toLowerCase().replaceAll(' ', '-')})`;
  }

  #struct({ fields }: StructShape): string {
    return this.#table(fields, 0);
  }

  #union({ variants, branches, by }: UnionShape): string {
    const own = Object.entries(variants).map(([type, { tag, fields }]) => {
      const head = `**${tag}**: \`${by}\` is \`${type}\``;
      return Object.keys(fields).length === 0 ? `${head}\n` : `${head}\n\n${this.#table(fields, 1)}`;
    });
    const others = branches.map(({ tag, of }) => `**${tag}**: ${this.type(of)}\n`);
    return [...own, ...others].join('\n');
  }

  #table(fields: Fields, from: number): string {
    const rows: string[] = [];
    let at = from;
    for (const [name, field] of Object.entries(fields)) at = this.#rows(name, field, at, rows);
    return `| Position | Field | Type | Meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
  }

  /** The position behind the field. */
  #rows(name: string, { kind, placing, meaning, added }: Field<unknown>, at: number, rows: string[]): number {
    if (placing === 'flat' && kind.shape.is === 'struct') {
      let next = at;
      for (const [inner, field] of Object.entries(kind.shape.fields)) {
        next = this.#rows(`${name}.${inner}`, field, next, rows);
      }
      return next;
    }
    const width = placing === 'flatSpread' ? 2 : 1;
    const place = width === 2 ? `${at}, ${at + 1}` : String(at);
    const shown = placing === 'own' || placing === 'leftOut' ? `\`${name}\`` : '';
    const text = added === undefined ? meaning : `${meaning} May be missing at the end.`;
    const cells = [place, shown, this.type(kind), text].map((cell) => cell.replaceAll('|', '\\|'));
    rows.push(`| ${cells.join(' | ')} |`);
    return at + width;
  }
}

function bounds({ min, max }: { readonly min: number; readonly max: number }): string {
  return min === 0 ? `up to ${max}` : `${min} to ${max}`;
}

function pattern({ pattern: found }: { readonly pattern: RegExp | undefined }): string {
  return found === undefined ? '' : ` that match \`${found.source}\``;
}

function capital(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
