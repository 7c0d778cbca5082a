/** The bodies of the HTTP API as types of Python and Go, for the clients in `examples/`. */
import type { SchemaNode } from './schema-node.ts';

export interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, SchemaNode>> };
}

/** What the clients send and receive, beside what these refer to. */
const ROOTS = [
  ...['Acquire', 'Grant', 'Renew', 'Release', 'Released', 'Session', 'Check', 'Checked'],
  ...['KvPut', 'KvPutDone', 'KvRead', 'KvEventLive', 'KvEventChanges', 'Error'],
];
/** An exception or an error is not what is meant. */
const RENAMED: Readonly<Record<string, string>> = { Error: 'Refusal' };
const LINE_MAX = 110;
const PYTHON_KEYWORDS = ['pass', 'from', 'in', 'is'];

interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly isRequired: boolean;
  readonly description: string;
}

type FieldType =
  | { readonly kind: 'text' | 'integer' | 'number' | 'flag' | 'bytes' | 'texts' }
  | { readonly kind: 'list'; readonly of: FieldType }
  | { readonly kind: 'object'; readonly name: string };

interface ObjectType {
  readonly name: string;
  readonly fields: readonly Field[];
}

/** Collects the objects that are reachable from the roots, each under one name. */
class Objects {
  readonly #api: OpenApi;
  readonly #found = new Map<string, ObjectType>();

  constructor(api: OpenApi) {
    this.#api = api;
    for (const root of ROOTS) this.#named(root);
  }

  get all(): readonly ObjectType[] {
    return [...this.#found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #named(schemaName: string): FieldType {
    const name = RENAMED[schemaName] ?? schemaName;
    return this.#object(name, [this.#schema(schemaName)]);
  }

  #schema(name: string): SchemaNode {
    const schema = this.#api.components.schemas[name];
    if (schema === undefined) throw new Error(`openapi.json has no schema ${name}`);
    return schema;
  }

  /** An object of one of these forms. A field that not all of them require is optional. */
  #object(name: string, forms: readonly SchemaNode[]): FieldType {
    if (!this.#found.has(name)) {
      this.#found.set(name, { name, fields: [] });
      const properties = new Map<string, SchemaNode>();
      for (const [field, schema] of forms.flatMap((form) => Object.entries(form.properties ?? {}))) {
        if (!properties.has(field)) properties.set(field, schema);
      }
      const fields = [...properties].map(([field, schema]) => ({
        name: field,
        type: this.#type(schema, `${name}${capital(field)}`),
        isRequired: forms.every(({ required }) => required?.includes(field) === true),
        description: descriptionOf(schema),
      }));
      this.#found.set(name, { name, fields });
    }
    return { kind: 'object', name };
  }

  #type(schema: SchemaNode, name: string): FieldType {
    if (schema.$ref !== undefined) return this.#named(lastPart(schema.$ref));
    if (schema.oneOf !== undefined) {
      return { kind: schema.oneOf.some(({ properties }) => properties?.base64 !== undefined) ? 'bytes' : 'number' };
    }
    if (schema.anyOf !== undefined) {
      const forms = schema.anyOf.flatMap(({ $ref }) => ($ref === undefined ? [] : [this.#schema(lastPart($ref))]));
      return this.#object(name, forms);
    }
    if (schema.type === 'array' && schema.items !== undefined) {
      return { kind: 'list', of: this.#type(schema.items, name.replace(/s$/, '')) };
    }
    if (schema.properties !== undefined) return this.#object(name, [schema]);
    if (typeof schema.additionalProperties === 'object') return { kind: 'texts' };
    const kinds = { string: 'text', integer: 'integer', number: 'number', boolean: 'flag' } as const;
    if (schema.const !== undefined) return { kind: 'text' };
    const kind = kinds[schema.type as keyof typeof kinds];
    if (kind === undefined) throw new Error(`no type for ${name}: ${JSON.stringify(schema)}`);
    return { kind };
  }
}

function descriptionOf(schema: SchemaNode): string {
  const isDuration = schema.oneOf?.some(({ type }) => type === 'number') === true;
  const choices = schema.enum === undefined ? '' : ` One of ${schema.enum.join(', ')}.`;
  return `${schema.description ?? ''}${isDuration ? ' In milliseconds.' : ''}${choices}`.trim();
}

export function pythonTypes(api: OpenApi): string {
  const classes = new Objects(api).all.map(pythonClass);
  return `"""The bodies of Remora's HTTP API. Generated from docs/reference/openapi.json by \`npm run docs\`."""

from __future__ import annotations

from typing import NotRequired, TypedDict, Union


class Base64(TypedDict):
    base64: str


Bytes = Union[str, Base64]  # text where the bytes are UTF-8


${classes.join('\n\n')}`;
}

/** A class cannot have a field whose name is a keyword; its base can. */
function pythonClass({ name, fields }: ObjectType): string {
  const isKeyword = (field: Field): boolean => PYTHON_KEYWORDS.includes(field.name);
  const keywords = fields.filter(isKeyword).map((field) => `"${field.name}": ${pythonFieldType(field)}`);
  const base = `${name}Keywords`;
  const declared = keywords.length === 0 ? '' : `${base} = TypedDict("${base}", {${keywords.join(', ')}})\n\n\n`;
  const body = fields.filter((field) => !isKeyword(field)).map(pythonField);
  return `${declared}class ${name}(${keywords.length === 0 ? 'TypedDict' : base}):\n${body.join('\n')}\n`;
}

function pythonFieldType({ type, isRequired }: Field): string {
  return isRequired ? pythonType(type) : `NotRequired[${pythonType(type)}]`;
}

function pythonField(field: Field): string {
  return `${comment('    # ', field.description)}    ${field.name}: ${pythonFieldType(field)}`;
}

function pythonType(type: FieldType): string {
  switch (type.kind) {
    case 'list':
      return `list[${pythonType(type.of)}]`;
    case 'object':
      return type.name;
    default:
      return { text: 'str', integer: 'int', number: 'float', flag: 'bool', bytes: 'Bytes', texts: 'dict[str, str]' }[
        type.kind
      ];
  }
}

export function goTypes(api: OpenApi): string {
  const structs = new Objects(api).all.map(
    ({ name, fields }) => `type ${name} struct {\n${fields.map(goField).join('\n')}\n}\n`,
  );
  return `// Code generated from docs/reference/openapi.json by \`npm run docs\`. DO NOT EDIT.

package remora

${structs.join('\n')}`;
}

/** gofmt aligns neighbours that neither a comment nor an empty line separates. */
function goField({ name, type, isRequired, description }: Field, at: number): string {
  const tag = `\`json:"${name}${isRequired ? '' : ',omitempty'}"\``;
  const gap = description === '' && at > 0 ? '\n' : '';
  return `${gap}${comment('\t// ', description)}\t${goName(name)} ${goType(type, isRequired)} ${tag}`;
}

/** An absent number is not 0, and an absent object or value is not an empty one. */
function goType(type: FieldType, isRequired: boolean): string {
  switch (type.kind) {
    case 'list':
      return `[]${goType(type.of, true)}`;
    case 'object':
      return `${isRequired ? '' : '*'}${type.name}`;
    case 'texts':
      return 'map[string]string';
    case 'text':
      return 'string';
    case 'flag':
      return 'bool';
    default:
      return `${isRequired ? '' : '*'}${{ integer: 'int64', number: 'float64', bytes: 'Bytes' }[type.kind]}`;
  }
}

/** Go writes initials in capitals. */
function goName(name: string): string {
  return capital(name)
    .replace(/^Ttl/, 'TTL')
    .replace(/Id(?=[A-Z]|$)/, 'ID');
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function lastPart(ref: string): string {
  return ref.split('/').at(-1) ?? '';
}

/** Lines of a comment, each of which begins with `lead`. */
function comment(lead: string, text: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ').filter(Boolean)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= LINE_MAX - lead.length) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => `${lead}${line}\n`).join('');
}
