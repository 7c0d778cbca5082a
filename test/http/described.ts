/** Whether requests and answers match the OpenAPI document. */
import { type ApiAnswer, OPENAPI } from '@remora/gateway';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Described {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

interface Content {
  readonly content: {
    readonly 'application/json'?: { readonly schema: object };
    readonly 'application/jsonl'?: { readonly schema: object };
    readonly 'text/event-stream'?: { readonly 'x-event-data': Readonly<Record<string, object>> };
  };
}

const PATHS = OPENAPI.paths as unknown as Readonly<Record<string, Readonly<Record<string, Described>>>>;
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema({ ...OPENAPI, $id: 'openapi:' });
const validators = new Map<object, ValidateFunction>();
const seen = new Set<string>();

/** Answers of calls that kinds.test.ts covers, except immediate refusals. Each test file sees only its own. */
export const OF_KINDS = /\/(upgrade|downgrade|leave|capacity) (?!400)/;
/** Answers that cluster.test.ts covers. */
export const OF_CLUSTER = / \/v1\/cluster(?!\/(activity|heat|live))/;
/** Answers that history.test.ts covers. */
export const OF_HISTORY = / \/v1\/cluster\/(activity|heat|live)/;
/** Answers of calls that lock-lists.test.ts covers. */
export const OF_LISTS = / \/v1\/(namespaces|sessions\/\{session\}\/locks) /;
/** Answers that access.test.ts, users.test.ts and audit.test.ts cover. */
export const OF_ACCESS = / \/v1\/(log-in|log-out|whoami|users|roles|can|audit)(\/| )/;
/** Answers of calls about keys, which the tests of keys cover. */
export const OF_KEYS = / \/v1\/kv/;
/** Answers that the transport or an unhealthy cluster causes are tested with these. */
const ELSEWHERE = /(401|403|413|415|429|500|503|504)$/;

/** Answers in the document (`POST /v1/check 200`, and so on) that these tests have not seen. */
export function unseenAnswers(among: (answer: string) => boolean): readonly string[] {
  const described = Object.entries(PATHS).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
    ),
  );
  return described.filter((answer) => among(answer) && !ELSEWHERE.test(answer) && !seen.has(answer));
}

/** How an exchange differs from the document. Undefined: it does not. */
export function undescribed(
  request: {
    readonly method: string;
    readonly target: string;
    readonly body?: unknown;
    readonly lines?: readonly unknown[];
  },
  { status, body, events, lines }: ApiAnswer,
): string | undefined {
  const path = pathOf(request.target);
  if (path === undefined) return status === 404 ? undefined : `there is no path for ${request.target}`;
  const operation = PATHS[path]?.[request.method.toLowerCase()];
  if (operation === undefined) return status === 405 ? undefined : `${path} has no ${request.method}`;
  const response = operation.responses[status];
  if (response === undefined) return `${request.method} ${path} does not name ${status}: ${JSON.stringify(body)}`;
  seen.add(`${request.method} ${path} ${status}`);
  const { requestBody } = operation;
  const asked = status === 200 && requestBody !== undefined ? wrongBody(requestBody, request) : undefined;
  if (events !== undefined)
    return asked ?? (response.content['text/event-stream'] === undefined ? 'events' : undefined);
  if (lines !== undefined)
    return asked ?? (response.content['application/jsonl'] === undefined ? 'JSON lines' : undefined);
  return asked ?? invalid(response, body);
}

function wrongBody(
  described: Content,
  { body, lines }: { readonly body?: unknown; readonly lines?: readonly unknown[] },
): string | undefined {
  const schema = described.content['application/jsonl']?.schema;
  if (schema === undefined) return invalid(described, body ?? {});
  return (lines ?? []).map((line) => mismatch(schema, line)).find((problem) => problem !== undefined);
}

/** The same for a line of a stream of JSON lines. */
export function undescribedLine(target: string, line: unknown): string | undefined {
  const schema = PATHS[pathOf(target) ?? '']?.get?.responses[200]?.content['application/jsonl']?.schema;
  return schema === undefined ? 'there are no lines' : mismatch(schema, line);
}

/** The same for an event of a stream. */
export function undescribedEvent(target: string, type: string, data: unknown): string | undefined {
  const { content } = PATHS[pathOf(target) ?? '']?.get?.responses[200] ?? { content: {} };
  const schema = content['text/event-stream']?.['x-event-data'][type];
  return schema === undefined ? `there is no event ${type}` : mismatch(schema, data);
}

function pathOf(target: string): string | undefined {
  const segments = target.split('?')[0]?.split('/') ?? [];
  return Object.keys(PATHS).find((path) => {
    const parts = path.split('/');
    return parts.length === segments.length && parts.every((part, i) => part.startsWith('{') || part === segments[i]);
  });
}

function invalid({ content }: Content, value: unknown): string | undefined {
  const schema = content['application/json']?.schema;
  return schema === undefined ? 'this is not described as JSON' : mismatch(schema, value);
}

function mismatch(schema: object, value: unknown): string | undefined {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(absolute(schema));
    validators.set(schema, validate);
  }
  // In its form on the wire.
  const written: unknown = JSON.parse(JSON.stringify(value));
  return validate(written) ? undefined : `${JSON.stringify(written)}: ${ajv.errorsText(validate.errors)}`;
}

/** References in a part of the document refer to the whole document. */
function absolute(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi:#/')) as object;
}
