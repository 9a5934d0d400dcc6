/** What the routes need, how every request about an account begins, and the JSON body of a request. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticate,
  applyVersion,
  invalidBody,
  type ParameterProblem,
  principalOf,
  quoted,
  type ResponseBudget,
  requireMembership,
  requireReader,
  requireScope,
  shortened,
} from '@meterline/api';
import { parseJson } from '@meterline/catalog';
import type { AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import type { AlertStore, AllowedHosts } from '@meterline/service/alerts';
import { z } from 'zod';
import type { Admission } from '../admission/admission.js';
import type { PagesDependencies } from '../metrics/pages.js';
import type { ResponseCache } from '../metrics/response-cache.js';
import type { CursorCodec } from './paging.js';

export interface RouteDependencies extends PagesDependencies {
  readonly accounts: AccountDirectory;
  readonly alerts: AlertStore;
  /** Private hosts that webhooks may go to. */
  readonly allowedHosts: AllowedHosts;
  /** Who may query how often, and how many at once. */
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly budget: ResponseBudget;
  readonly cache: ResponseCache;
  readonly cursors: CursorCodec;
  readonly keys: ApiKeyStore;
}

/**
 * The first steps of every request: who sends it, whether they may, and that it is counted. An operator's never count for the
 * account that they are about.
 * @param accountId undefined: it is about all accounts of the caller
 * @throws ApiError `unauthorized`, `invalid_api_version`, `insufficient_scope`, `forbidden`, `too_many_requests`
 */
export async function admitCaller(
  { admission, authenticate }: RouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  accountId?: string,
) {
  const caller = await authenticate(request);
  const version = applyVersion(request, response);
  requireScope(caller, 'admin');
  requireReader(caller);
  if (accountId !== undefined) requireMembership(caller, accountId);
  const isOfAccount = accountId !== undefined && !caller.isOperator;
  const principal = isOfAccount ? { account: accountId, caller: caller.id } : principalOf(caller);
  return { admitted: await admission.admit(principal, response), caller, principal, version };
}

/** The first steps of a request about one account. @throws as {@link admitCaller} */
export async function admitMember(
  dependencies: RouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
) {
  const admission = await admitCaller(dependencies, request, response, accountId);
  return { ...admission, role: requireMembership(admission.caller, accountId) };
}

const jsonObject = z.record(z.string(), z.unknown());

/**
 * @param body as the body parser leaves it: bytes, or nothing
 * @param example an example of a body, for messages
 * @throws ApiError `invalid_body` with every error
 */
export function parseBody<Schema extends z.ZodObject>(
  body: unknown,
  schema: Schema,
  example: unknown,
): z.output<Schema> {
  const sent = jsonObject.safeParse(Buffer.isBuffer(body) && isUtf8(body) ? parseJson(body.toString()) : undefined);
  if (!sent.success) {
    throw invalidBody([
      { parameter: 'body', message: `The body must be a JSON object in UTF-8, such as ${JSON.stringify(example)}.` },
    ]);
  }
  const parsed = schema.safeParse(sent.data);
  if (parsed.success) return parsed.data;
  throw invalidBody(parsed.error.issues.flatMap((issue) => problemsOf(issue, sent.data, Object.keys(schema.shape))));
}

function problemsOf(
  { path, ...issue }: z.core.$ZodIssue,
  sent: Readonly<Record<string, unknown>>,
  names: readonly string[],
): ParameterProblem[] {
  if (issue.code === 'unrecognized_keys' && path.length === 0) {
    return issue.keys.map((name) => ({
      parameter: name,
      message: `${quoted(name)} is not a member; the members are ${names.join(', ')}.`,
    }));
  }
  const parameter = path.join('.');
  const value = path.reduce<unknown>((object, name) => Object(object)[name], sent);
  if (value === undefined) return [{ parameter, message: `${parameter} is missing; it is required.` }];
  const got = typeof value === 'string' ? quoted(value) : shortened(JSON.stringify(value));
  return [{ parameter, message: `${parameter} ${issue.message} (got ${got}).` }];
}
