import type { SchemaNode } from './schema-node.ts';
import { code, table } from './table.ts';

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: SchemaNode }>> };
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content?: Readonly<Record<string, { readonly schema: SchemaNode }>> }
    >
  >;
}

export interface OpenApi {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, SchemaNode>> };
}

/** What every call may answer, told once. */
const EVERYWHERE = ['400', '401', '403', '413', '415', '429', '500', '503', '504'];

export function httpPage(api: OpenApi): string {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, operation })),
  );
  const common = new Map<string, string>();
  for (const { operation } of operations) {
    for (const status of EVERYWHERE) {
      const description = operation.responses[status]?.description;
      if (description !== undefined) common.set(status, description);
    }
  }
  const schemas = Object.entries(api.components.schemas).map(([name, schema]) => schemaSection(name, schema));
  return `# HTTP API

${api.info.description} [openapi.json](openapi.json) is this page for machines. To begin, see
[Lock over HTTP](../how-to/locks/lock-over-http.md) and [Keys over HTTP](../how-to/keys/keys-over-http.md).

## Answers of every call

${table(
  ['Status', 'Meaning'],
  [...common].sort().map(([status, text]) => [status, text]),
)}

## Calls

${operations.map(({ title, operation }) => operationSection(title, operation)).join('\n\n')}

## Bodies

${schemas.join('\n\n')}
`;
}

function operationSection(title: string, operation: Operation): string {
  const parts = [`### ${title}`, [operation.summary, operation.description].filter(Boolean).join(' ')];
  const query = (operation.parameters ?? []).filter((each) => each.in === 'query');
  if (query.length > 0) {
    parts.push(
      table(
        ['Parameter', 'Meaning'],
        query.map(({ name, description = '' }) => [code(name), description]),
      ),
    );
  }
  const body = schemaOf(operation.requestBody?.content);
  if (body !== undefined) parts.push(`Body: ${nameOf(body)}`);
  const rows = Object.entries(operation.responses).flatMap(([status, { description, content }]) => {
    const schema = schemaOf(content);
    if (EVERYWHERE.includes(status)) return [];
    return [[status, `${description}${schema === undefined || Number(status) >= 400 ? '' : ` ${nameOf(schema)}`}`]];
  });
  parts.push(table(['Status', 'Answer'], rows));
  return parts.join('\n\n');
}

function schemaSection(name: string, schema: SchemaNode): string {
  const parts = [`### ${name}`];
  if (schema.description !== undefined) parts.push(schema.description);
  const rows = Object.entries(schema.properties ?? {}).map(([field, of]) => {
    const required = schema.required?.includes(field) === true ? ' (required)' : '';
    return [`${code(field)}${required}`, nameOf(of), of.description ?? ''];
  });
  if (rows.length > 0) parts.push(table(['Field', 'Type', 'Meaning'], rows));
  else parts.push(nameOf(schema));
  return parts.join('\n\n');
}

function schemaOf(
  content: Readonly<Record<string, { readonly schema: SchemaNode }>> | undefined,
): SchemaNode | undefined {
  return Object.values(content ?? {})[0]?.schema;
}

function nameOf(schema: SchemaNode): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return `[${name}](#${name.toLowerCase()})`;
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return choices.map(nameOf).join(' or ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((each) => code(JSON.stringify(each))).join(', ');
  if (schema.items !== undefined) return `array of ${nameOf(schema.items)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}
