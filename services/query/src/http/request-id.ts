/** The name by which caller, log and support speak of one request. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** 1 to 128 visible ASCII characters; anything else could forge log lines or headers. */
const SANE = /^[\x21-\x7e]{1,128}$/;

export function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

/** The id that {@link chooseRequestId} chose when the request came in. */
export function requestIdOf(request: IncomingMessage): string {
  return String(request.id);
}
