/** Parts of which the schemas are made. */

/** As much of JSON Schema as is used here. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

/** The media type of JSON values, one a line. */
export const JSON_LINES = 'application/jsonl';

/** A schema of the document, by its name. */
export function refTo(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

export function object(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** An answer whose `properties` are always present. */
export function answer(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  return object(
    properties,
    Object.keys(properties).filter((name) => !optional.includes(name)),
  );
}

export function event(types: string, properties: Readonly<Record<string, Schema>>): Schema {
  return answer({ type: { type: 'string', enum: types.split(', ') }, ...properties });
}

export function text(description: string, more: Schema = {}): Schema {
  return { type: 'string', description, ...more };
}

export function count(description: string, more: Schema = {}): Schema {
  return { type: 'integer', minimum: 0, description, ...more };
}

export function duration(description: string, { min, max }: { readonly min: number; readonly max: number }): Schema {
  return {
    description,
    oneOf: [
      { type: 'string', pattern: '^(0|(\\d+(\\.\\d+)?(ms|s|m|h|d))+)$', examples: ['5s', '1m30s', '250ms'] },
      { type: 'number', minimum: min, maximum: max, description: 'In milliseconds.' },
    ],
  };
}

export function bytes(description: string, more: Schema = {}): Schema {
  return {
    description,
    ...more,
    oneOf: [
      { type: 'string', description: 'Text, sent as its UTF-8 bytes.' },
      object({ base64: { type: 'string', contentEncoding: 'base64' } }, ['base64']),
    ],
  };
}
