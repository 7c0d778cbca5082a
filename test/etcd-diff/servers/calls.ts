/** Calls of a generated client as promises: how a call fails is an answer too. */
import { type ClientReadableStream, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { Answer } from '../judge/answers.ts';

/** Above what servers give themselves for a request. */
const DEADLINE_MS = 30_000;

/** What comes between the request and the callback in the calls of generated clients. */
export type Method<Request, Reply> = (
  request: Request,
  metadata: Metadata,
  options: { readonly deadline: number },
  done: (error: ServiceError | null, reply: Reply) => void,
) => unknown;

/** Never rejects. */
export function call<Request, Reply>(
  method: Method<Request, Reply>,
  request: Request,
  read: (reply: Reply) => Answer,
): Promise<Answer> {
  return new Promise((resolve) => {
    method(request, new Metadata(), { deadline: Date.now() + DEADLINE_MS }, (error, reply) =>
      resolve(error === null ? read(reply) : { error: statusOf(error) }),
    );
  });
}

/** The first message of a stream, or how it ends without one. */
export function firstOf<Reply>(stream: ClientReadableStream<Reply>, read: (reply: Reply) => Answer): Promise<Answer> {
  return new Promise((resolve) => {
    stream.once('data', (reply: Reply) => resolve(read(reply)));
    onEnd(stream, (error) => resolve({ error: error ?? 'the stream ended without an answer' }));
  });
}

/** Calls `ended` once; without an error when the server has ended the stream in good order. */
export function onEnd(stream: ClientReadableStream<unknown>, ended: (error: string | undefined) => void): void {
  let over = false;
  const end = (error: string | undefined): void => {
    if (over) return;
    over = true;
    ended(error);
  };
  stream.on('error', (error: ServiceError) => end(statusOf(error)));
  stream.on('end', () => end(undefined));
}

/** Code and text: clients tell errors apart by both. */
function statusOf({ code, details }: ServiceError): string {
  return `${code} ${details}`;
}
