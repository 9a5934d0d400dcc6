/** Every operation of the API. The contract test holds this list to the routes that there are. */
import { API_VERSIONS, EARLIEST_API_VERSION, MAX_NAME_LENGTH } from '@meterline/catalog';
import { ACCOUNT_LIST_PARAMETERS, METRICS_PARAMETERS, WINDOW_PARAMETERS } from '@meterline/catalog/api';
import type { z } from 'zod';
import {
  ACCOUNTS_EXAMPLES,
  GROUP_BY_EXAMPLES,
  HEALTH_EXAMPLES,
  METRICS_EXAMPLES,
  type OperationExample,
  READINESS_EXAMPLES,
  RESOURCE_TYPES_EXAMPLES,
  REVOCATION_EXAMPLES,
} from './examples.js';
import type { JsonSchema, Method, Operation, Parameter, Response } from './model.js';
import { errorReference, headerReference } from './responses.js';
import { parameterSchema, reference } from './schemas.js';

export interface RoutedOperation {
  readonly path: string;
  readonly method: Method;
  readonly operation: Operation;
}

type Examples = Readonly<Record<string, OperationExample>>;

const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH };
/** Required parameters; the others may be left out. */
const REQUIRED: readonly string[] = Object.keys(WINDOW_PARAMETERS);
/** What means something when it is empty. */
const MAY_BE_EMPTY: readonly string[] = ['resourceUuid', 'cursor'];

const READ_ERRORS = {
  '400': errorReference('BadRequest'),
  '401': errorReference('Unauthorized'),
  '403': errorReference('Forbidden'),
  '503': errorReference('Unavailable'),
  default: errorReference('Other'),
};

export function operations(): RoutedOperation[] {
  return [metrics(), groupByEnum(), resourceTypesEnum(), accounts(), revocation(), health(), readiness()];
}

function metrics(): RoutedOperation {
  return {
    path: '/v0/accounts/{accountId}/metrics',
    method: 'get',
    operation: {
      operationId: 'getAccountMetrics',
      tags: ['Usage and cost'],
      summary: 'What an account used, and what it cost',
      description:
        'Sums up usage and cost over a window, as a whole or by up to three dimensions, with a series of hours, days, weeks ' +
        'or months. Events that arrive late, are corrected or are sent again count as they should from their arrival on.\n\n' +
        'A result with more groups than `limit` comes in pages: pass `meta.nextCursor` as `cursor` until `meta.hasMore` is ' +
        'false. `summary` is that of the whole window on every page. Only an admin of the account may group or filter by ' +
        'workspace.',
      parameters: [
        accountId(METRICS_EXAMPLES),
        ...queryParameters(METRICS_PARAMETERS, METRICS_EXAMPLES),
        version(METRICS_EXAMPLES),
      ],
      responses: {
        '200': success('A page of groups.', reference('AccountMetricsResponse'), METRICS_EXAMPLES),
        ...READ_ERRORS,
        '429': errorReference('TooMany'),
      },
    },
  };
}

function groupByEnum(): RoutedOperation {
  return {
    path: '/v0/accounts/{accountId}/metrics/enums/group-by',
    method: 'get',
    operation: {
      operationId: 'listGroupByDimensions',
      tags: ['Usage and cost'],
      summary: 'What one can group by',
      description: 'The dimensions that `groupBy` may name, in canonical order. The same for every account.',
      parameters: [accountId(GROUP_BY_EXAMPLES), version(GROUP_BY_EXAMPLES)],
      responses: { '200': success('The dimensions.', reference('GroupByValues'), GROUP_BY_EXAMPLES), ...READ_ERRORS },
    },
  };
}

function resourceTypesEnum(): RoutedOperation {
  return {
    path: '/v0/accounts/{accountId}/metrics/enums/resource-types',
    method: 'get',
    operation: {
      operationId: 'listResourceTypes',
      tags: ['Usage and cost'],
      summary: 'The resource types that were used',
      description: 'The resource types with at least one event of the account in the window.',
      parameters: [
        accountId(RESOURCE_TYPES_EXAMPLES),
        ...queryParameters(WINDOW_PARAMETERS, RESOURCE_TYPES_EXAMPLES),
        version(RESOURCE_TYPES_EXAMPLES),
      ],
      responses: {
        '200': success('The resource types.', reference('ResourceTypeValues'), RESOURCE_TYPES_EXAMPLES),
        ...READ_ERRORS,
      },
    },
  };
}

function accounts(): RoutedOperation {
  return {
    path: '/v0/accounts',
    method: 'get',
    operation: {
      operationId: 'listAccounts',
      tags: ['Access'],
      summary: 'The caller’s accounts',
      description:
        'The accounts that the key or token belongs to, each with the caller’s role in it. An object with pages since version ' +
        '2026-04-28, and takes parameters since then; before, an array of everything.',
      parameters: [...queryParameters(ACCOUNT_LIST_PARAMETERS, ACCOUNTS_EXAMPLES), version(ACCOUNTS_EXAMPLES)],
      responses: {
        '200': success(
          'The accounts.',
          { oneOf: [reference('AccountPage'), reference('AccountArray')] },
          ACCOUNTS_EXAMPLES,
        ),
        ...READ_ERRORS,
      },
    },
  };
}

function revocation(): RoutedOperation {
  return {
    path: '/v0/service_accounts/{clientId}/api_keys/{apiKeyId}',
    method: 'delete',
    operation: {
      operationId: 'revokeApiKey',
      tags: ['Access'],
      summary: 'Revoke an API key',
      description:
        'Revokes a key of a service account, at once and everywhere, for an admin of the account that the key belongs to. ' +
        'Again is no error. A token needs the scope `apiKey:write`.',
      parameters: [
        pathParameter('clientId', 'The service account.', REVOCATION_EXAMPLES),
        pathParameter('apiKeyId', 'The key’s id; not its text.', REVOCATION_EXAMPLES),
        version(REVOCATION_EXAMPLES),
      ],
      responses: {
        '200': { description: 'The key is revoked. The answer has no body.', headers: ANSWER_HEADERS },
        ...READ_ERRORS,
        '404': errorReference('NotFound'),
      },
    },
  };
}

function health(): RoutedOperation {
  return {
    path: '/healthz',
    method: 'get',
    operation: {
      operationId: 'getHealth',
      tags: ['Health'],
      summary: 'Does the process run?',
      description: 'Asks no other server.',
      security: [],
      parameters: [],
      responses: {
        '200': success('It does.', reference('Health'), HEALTH_EXAMPLES),
        '4XX': errorReference('Other'),
        default: errorReference('Other'),
      },
    },
  };
}

function readiness(): RoutedOperation {
  return {
    path: '/readyz',
    method: 'get',
    operation: {
      operationId: 'getReadiness',
      tags: ['Health'],
      summary: 'Can requests be answered?',
      description: 'Asks ClickHouse and Redis, and waits three seconds at most.',
      security: [],
      parameters: [],
      responses: {
        '200': success('They can.', reference('Health'), READINESS_EXAMPLES),
        '4XX': errorReference('Other'),
        '503': errorReference('NotReady'),
        default: errorReference('Other'),
      },
    },
  };
}

const ANSWER_HEADERS = {
  'X-Request-Id': headerReference('X-Request-Id'),
  'Svc-Version': headerReference('Svc-Version'),
};

function success(description: string, schema: JsonSchema, examples: Examples): Response {
  return {
    description,
    headers: ANSWER_HEADERS,
    content: {
      'application/json': {
        schema,
        examples: mapValues(examples, ({ summary, answer }) => ({ summary, value: answer })),
      },
    },
  };
}

function accountId(examples: Examples): Parameter {
  return pathParameter('accountId', 'The account, as `GET /v0/accounts` names it.', examples);
}

function pathParameter(name: string, description: string, examples: Examples): Parameter {
  return { name, in: 'path', required: true, description, schema: NAME, ...examplesOf(name, examples) };
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

function version(examples: Examples): Parameter {
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
  const having = Object.entries(examples).filter(([, { parameters }]) => name in parameters);
  if (having.length === 0) return {};
  return {
    examples: Object.fromEntries(
      having.map(([id, { summary, parameters }]) => [id, { summary, value: parameters[name] }]),
    ),
  };
}

function mapValues<From, To>(values: Readonly<Record<string, From>>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}
