/**
 * Turns the compiled definitions of etcd's API into a table of messages, enums and services: what JSON in the form of
 * grpc-gateway needs to know, which the generated messages do not tell.
 */
const TYPES = {
  TYPE_BYTES: 'bytes',
  TYPE_STRING: 'string',
  TYPE_BOOL: 'bool',
  TYPE_INT64: 'int64',
  TYPE_UINT64: 'uint64',
  TYPE_INT32: 'int32',
  TYPE_UINT32: 'uint32',
  TYPE_ENUM: 'enum',
  TYPE_MESSAGE: 'message',
};

/** The source of a module that exports `ETCD_SCHEMA`. `image`: what `buf build -o -#format=json` writes. */
export function etcdSchema(image) {
  const schema = { messages: {}, enums: {}, services: {} };
  for (const file of image.file) {
    for (const message of file.messageType ?? []) addMessage(schema, file.package, message);
    for (const one of file.enumType ?? []) addEnum(schema, file.package, one);
    for (const service of file.service ?? []) addService(schema, file.package, service);
  }
  return [
    '// Made by scripts/etcd-schema.mjs.',
    "import type { EtcdSchema } from '../../public/etcd-schema.ts';",
    '',
    `export const ETCD_SCHEMA: EtcdSchema = ${JSON.stringify(schema, undefined, 2)};`,
    '',
  ].join('\n');
}

function addMessage(schema, scope, { name, field = [], oneofDecl = [], nestedType = [], enumType = [] }) {
  const fullName = `${scope}.${name}`;
  schema.messages[fullName] = field
    .slice()
    .sort((a, b) => a.number - b.number)
    .map((one) => fieldOf(one, oneofDecl));
  for (const nested of nestedType) addMessage(schema, fullName, nested);
  for (const one of enumType) addEnum(schema, fullName, one);
}

function fieldOf({ name, jsonName, type, typeName, label, oneofIndex, options }, oneofDecl) {
  const kind = TYPES[type];
  if (kind === undefined)
    throw new Error(`the field ${name} has the type ${type}, which JSON of etcd's API has not had`);
  return {
    name,
    key: jsonName,
    kind,
    ...(typeName === undefined ? {} : { of: typeName.slice(1) }),
    ...(label === 'LABEL_REPEATED' ? { repeated: true } : {}),
    ...(oneofIndex === undefined ? {} : { oneof: camelCase(oneofDecl[oneofIndex].name) }),
    ...(options?.jstype === 'JS_NUMBER' ? { asNumber: true } : {}),
  };
}

function addEnum(schema, scope, { name, value }) {
  schema.enums[`${scope}.${name}`] = value.map((one) => [one.name, one.number ?? 0]);
}

function addService(schema, scope, { name, method }) {
  schema.services[`${scope}.${name}`] = Object.fromEntries(
    method.map((one) => [
      methodKey(one.name),
      {
        request: one.inputType.slice(1),
        response: one.outputType.slice(1),
        ...(one.clientStreaming ? { requests: true } : {}),
        ...(one.serverStreaming ? { responses: true } : {}),
      },
    ]),
  );
}

/** As in the generated services: `HashKV` is `hashKv`. */
function methodKey(name) {
  const words = name.replaceAll(/[A-Z]+(?=[A-Z][a-z]|$)/g, (word) => word[0] + word.slice(1).toLowerCase());
  return words[0].toLowerCase() + words.slice(1);
}

function camelCase(name) {
  return name.replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}
