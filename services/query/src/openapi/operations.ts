/** Every operation of the API. The contract tests compare this list with the routes. */
import { API_VERSIONS, EARLIEST_API_VERSION, MAX_NAME_LENGTH } from '@meterline/catalog';
import { ACCOUNT_LIST_PARAMETERS, METRICS_PARAMETERS, WINDOW_PARAMETERS } from '@meterline/catalog/api';
import type { z } from 'zod';
import {
  ACCOUNTS_EXAMPLES,
  type Examples,
  GROUP_BY_EXAMPLES,
  HEALTH_EXAMPLES,
  METRICS_EXAMPLES,
  READINESS_EXAMPLES,
  RESOURCE_TYPES_EXAMPLES,
  REVOCATION_EXAMPLES,
} from './examples.js';
import type { JsonSchema, Method, OpenApiDocument, Operation, Parameter, Response } from './model.js';
import { errorReference, headerReference } from './responses.js';
import { parameterSchema, reference } from './schemas.js';

/** What is particular about an operation; {@link operationOf} adds what follows from it. */
interface OperationSketch {
  /** With the parameters of {@link PATH_PARAMETERS}. */
  readonly path: string;
  readonly method: Method;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  /** Without a schema the answer has no body. */
  readonly success: { readonly description: string; readonly schema?: JsonSchema };
  readonly examples: Examples;
  readonly errors: Operation['responses'];
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  accountId: 'The account, as `GET /v0/accounts` names it.',
  clientId: 'The service account.',
  apiKeyId: 'The key’s id; not its text.',
};
const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH };
/** The query parameters that must be sent, and those that may be empty. */
const REQUIRED: readonly string[] = Object.keys(WINDOW_PARAMETERS);
const MAY_BE_EMPTY: readonly string[] = ['resourceUuid', 'cursor'];

const API_ERRORS = {
  '400': errorReference('BadRequest'),
  '401': errorReference('Unauthorized'),
  '403': errorReference('Forbidden'),
  '503': errorReference('Unavailable'),
  default: errorReference('Other'),
};
const HEALTH_ERRORS = { '4XX': errorReference('Other'), default: errorReference('Other') };

const OPERATIONS: readonly OperationSketch[] = [
  {
    path: '/v0/accounts/{accountId}/metrics',
    method: 'get',
    operationId: 'getAccountMetrics',
    tag: 'Usage and cost',
    summary: 'What an account used, and what it cost',
    description:
      'Sums up usage and cost over a window, as a whole or by up to three dimensions, with a series of hours, days, weeks ' +
      'or months. Events that arrive late, are corrected or are sent again count as they should from their arrival on.\n\n' +
      'A result with more groups than `limit` comes in pages: pass `meta.nextCursor` as `cursor` until `meta.hasMore` is ' +
      'false. `summary` is that of the whole window on every page. Only an admin of the account may group or filter by ' +
      'workspace.',
    query: METRICS_PARAMETERS,
    success: { description: 'A page of groups.', schema: reference('AccountMetricsResponse') },
    examples: METRICS_EXAMPLES,
    errors: { ...API_ERRORS, '429': errorReference('TooMany') },
  },
  {
    path: '/v0/accounts/{accountId}/metrics/enums/group-by',
    method: 'get',
    operationId: 'listGroupByDimensions',
    tag: 'Usage and cost',
    summary: 'What one can group by',
    description: 'The dimensions that `groupBy` may name, in canonical order. The same for every account.',
    success: { description: 'The dimensions.', schema: reference('GroupByValues') },
    examples: GROUP_BY_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts/{accountId}/metrics/enums/resource-types',
    method: 'get',
    operationId: 'listResourceTypes',
    tag: 'Usage and cost',
    summary: 'The resource types that were used',
    description: 'The resource types with at least one event of the account in the window.',
    query: WINDOW_PARAMETERS,
    success: { description: 'The resource types.', schema: reference('ResourceTypeValues') },
    examples: RESOURCE_TYPES_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts',
    method: 'get',
    operationId: 'listAccounts',
    tag: 'Access',
    summary: 'The caller’s accounts',
    description:
      'The accounts that the key or token belongs to, each with the caller’s role in it. An object with pages since version ' +
      '2026-04-28, and takes parameters since then; before, an array of everything.',
    query: ACCOUNT_LIST_PARAMETERS,
    success: {
      description: 'The accounts.',
      schema: { oneOf: [reference('AccountPage'), reference('AccountArray')] },
    },
    examples: ACCOUNTS_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/service_accounts/{clientId}/api_keys/{apiKeyId}',
    method: 'delete',
    operationId: 'revokeApiKey',
    tag: 'Access',
    summary: 'Revoke an API key',
    description:
      'Revokes a key of a service account, at once and everywhere, for an admin of the account that the key belongs to. ' +
      'Again is no error. A token needs the scope `apiKey:write`.',
    success: { description: 'The key is revoked. The answer has no body.' },
    examples: REVOCATION_EXAMPLES,
    errors: { ...API_ERRORS, '404': errorReference('NotFound') },
  },
  {
    path: '/healthz',
    method: 'get',
    operationId: 'getHealth',
    tag: 'Health',
    summary: 'Does the process run?',
    description: 'Asks no other server.',
    success: { description: 'It does.', schema: reference('Health') },
    examples: HEALTH_EXAMPLES,
    errors: HEALTH_ERRORS,
  },
  {
    path: '/readyz',
    method: 'get',
    operationId: 'getReadiness',
    tag: 'Health',
    summary: 'Can requests be answered?',
    description: 'Asks ClickHouse and Redis, and waits three seconds at most.',
    success: { description: 'They can.', schema: reference('Health') },
    examples: READINESS_EXAMPLES,
    errors: { ...HEALTH_ERRORS, '503': errorReference('NotReady') },
  },
];

export function apiPaths(): OpenApiDocument['paths'] {
  const paths: Record<string, Partial<Record<Method, Operation>>> = {};
  for (const sketch of OPERATIONS) {
    paths[sketch.path] = { ...paths[sketch.path], [sketch.method]: operationOf(sketch) };
  }
  return paths;
}

function operationOf({ path, operationId, tag, summary, description, ...sketch }: OperationSketch): Operation {
  const { query = {}, success, examples, errors } = sketch;
  // Health checks need no credentials, and have no versions.
  const isPublic = !path.startsWith('/v0/');
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(isPublic && { security: [] }),
    parameters: [
      ...pathParameters(path, examples),
      ...queryParameters(query, examples),
      ...(isPublic ? [] : [versionParameter(examples)]),
    ],
    responses: { '200': successResponse(success, examples), ...errors },
  };
}

function successResponse({ description, schema }: OperationSketch['success'], examples: Examples): Response {
  const headers = { 'X-Request-Id': headerReference('X-Request-Id'), 'Svc-Version': headerReference('Svc-Version') };
  if (!schema) return { description, headers };
  const values = Object.entries(examples).map(([id, { summary, answer }]) => [id, { summary, value: answer }]);
  return { description, headers, content: { 'application/json': { schema, examples: Object.fromEntries(values) } } };
}

function pathParameters(path: string, examples: Examples): Parameter[] {
  return Object.entries(PATH_PARAMETERS)
    .filter(([name]) => path.includes(`{${name}}`))
    .map(([name, description]) => ({
      name,
      in: 'path',
      required: true,
      description,
      schema: NAME,
      ...examplesOf(name, examples),
    }));
}

function queryParameters(schemas: Readonly<Record<string, z.ZodType>>, examples: Examples): Parameter[] {
  return Object.entries(schemas).map(([name, parameter]) => {
    const { description, schema } = parameterSchema(parameter);
    return {
      name,
      in: 'query',
      required: REQUIRED.includes(name),
      description,
      ...(schema['type'] === 'array' && { style: 'form', explode: false }),
      ...(MAY_BE_EMPTY.includes(name) && { allowEmptyValue: true }),
      schema,
      ...examplesOf(name, examples),
    };
  });
}

function versionParameter(examples: Examples): Parameter {
  return {
    name: 'Svc-Version',
    in: 'header',
    required: false,
    description: `The version of the API. Left out: ${EARLIEST_API_VERSION}.`,
    schema: { type: 'string', enum: API_VERSIONS, default: EARLIEST_API_VERSION },
    ...examplesOf('Svc-Version', examples),
  };
}

function examplesOf(name: string, examples: Examples): Pick<Parameter, 'examples'> {
  const given = Object.entries(examples).filter(([, { parameters }]) => name in parameters);
  if (given.length === 0) return {};
  const values = given.map(([id, { summary, parameters }]) => [id, { summary, value: parameters[name] }]);
  return { examples: Object.fromEntries(values) };
}
