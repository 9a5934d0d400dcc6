/** Stores, for each request, its ID and the facts for its log line. */
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
  keyId?: string;
  rejected?: RejectedFacts;
}

/** The rejected events of a request: their number, the first reasons, and the first accounts, each with its number. */
interface RejectedFacts {
  readonly events: number;
  readonly reasons: readonly string[];
  readonly accounts: readonly { readonly account: string; readonly events: number }[];
}

const records = new WeakMap<IncomingMessage, RequestRecord>();

export function recordOf(request: IncomingMessage): RequestRecord {
  const known = records.get(request);
  if (known) return known;
  const record = { id: chooseRequestId(request), facts: {} };
  records.set(request, record);
  return record;
}

export function noteInLog(request: IncomingMessage, facts: LoggedFacts): void {
  const { facts: known } = recordOf(request);
  if (facts.caller !== undefined) known.caller = shortened(facts.caller);
  if (facts.account !== undefined) known.account = shortened(facts.account);
  if (facts.keyId !== undefined) known.keyId = shortened(facts.keyId);
  if (facts.rejected) {
    const accounts = facts.rejected.accounts.map(({ account, events }) => ({ account: shortened(account), events }));
    known.rejected = { ...facts.rejected, accounts };
  }
}

export function noteFailure(request: IncomingMessage, failure: Error): void {
  recordOf(request).failure = failure;
}

/** Allows 1 to 128 visible ASCII characters. Other characters could be used to forge log lines or headers. */
const SANE = /^[\x21-\x7e]{1,128}$/;

function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

export function requestIdOf(request: IncomingMessage): string {
  return recordOf(request).id;
}

/** The maximum length of a client's string in the log. Every valid name fits: it has at most 256 code points, each with a length of 1 or 2. */
const MAX_TEXT_LENGTH = 512;

export function shortened(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}
