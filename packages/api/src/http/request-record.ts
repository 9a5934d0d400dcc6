/** The record of a request: its id, and what its log line says about it. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

interface RequestRecord {
  readonly id: string;
  readonly facts: LoggedFacts;
  failure?: Error;
}

interface LoggedFacts {
  caller?: string;
  account?: string;
  /** The id of the API key that was created. */
  keyId?: string;
}

const records = new WeakMap<IncomingMessage, RequestRecord>();

export function recordOf(request: IncomingMessage): RequestRecord {
  const known = records.get(request);
  if (known) return known;
  const record = { id: chooseRequestId(request), facts: {} };
  records.set(request, record);
  return record;
}

/** Adds the caller, the account or the id of a created API key to the log line of a request. */
export function noteInLog(request: IncomingMessage, facts: LoggedFacts): void {
  const { facts: known } = recordOf(request);
  if (facts.caller !== undefined) known.caller = shortened(facts.caller);
  if (facts.account !== undefined) known.account = shortened(facts.account);
  if (facts.keyId !== undefined) known.keyId = shortened(facts.keyId);
}

/** Makes the log line of a request an error with this cause. */
export function noteFailure(request: IncomingMessage, failure: Error): void {
  recordOf(request).failure = failure;
}

/** 1 to 128 visible ASCII characters; anything else could forge log lines or headers. */
const SANE = /^[\x21-\x7e]{1,128}$/;

function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

/** The id that the caller sent, or a new one. */
export function requestIdOf(request: IncomingMessage): string {
  return recordOf(request).id;
}

/** In characters, of a text that the client chose. A name has at most 256 code points. */
const LONGEST_TEXT = 512;

export function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
