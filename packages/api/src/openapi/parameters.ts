/** The parameters of operations: in the path, in the query, and the version. */
import { API_VERSIONS, EARLIEST_API_VERSION, MAX_NAME_LENGTH } from '@meterline/catalog';
import {
  FILTER_PARAMETERS,
  MAX_FILTER_VALUES,
  REPEATABLE_PARAMETERS,
  VALUE_FILTERS,
  WINDOW_PARAMETERS,
} from '@meterline/catalog/api';
import type { z } from 'zod';
import type { Examples, JsonSchema, Parameter } from './model.js';
import { parameterSchema } from './schemas.js';

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  accountId: 'The account, as `GET /v0/accounts` names it.',
  clientId: 'The service account, as `meterline keys list` names it, or a new name for the first key of one.',
  apiKeyId: 'The key’s id; not its text.',
};
const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH };
/** The query parameters that must be sent, those that may be empty, and those that the platform's API does not have. */
const REQUIRED: readonly string[] = Object.keys(WINDOW_PARAMETERS);
const MAY_BE_EMPTY: readonly string[] = ['cursor'];
const EXTENSIONS: readonly string[] = [
  ...Object.keys(FILTER_PARAMETERS).filter((name) => !Object.hasOwn(VALUE_FILTERS, name)),
  'includeVoided',
];

export function pathParameters(path: string, examples: Examples): Parameter[] {
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

export function queryParameters(schemas: Readonly<Record<string, z.ZodType>>, examples: Examples): Parameter[] {
  return Object.entries(schemas).map(([name, parameter]) => {
    const { description, schema } = parameterSchema(parameter);
    return {
      name,
      in: 'query',
      required: REQUIRED.includes(name),
      description,
      ...(EXTENSIONS.includes(name) && { 'x-extension': true }),
      ...(MAY_BE_EMPTY.includes(name) && { allowEmptyValue: true }),
      ...listOf(name, schema),
      ...examplesOf(name, examples),
    };
  });
}

/** How the values are written: with commas between them where the schema is a list, one by one where a value may repeat. */
function listOf(name: string, schema: JsonSchema): Pick<Parameter, 'style' | 'explode' | 'schema'> {
  if (schema['type'] === 'array') return { style: 'form', explode: false, schema };
  if (!REPEATABLE_PARAMETERS.includes(name)) return { schema };
  const values = { type: 'array', items: schema, minItems: 1, maxItems: MAX_FILTER_VALUES };
  return { style: 'form', explode: true, schema: values };
}

/** Accepted where the management API has it. */
export const IGNORED_WORKSPACE: Parameter = {
  name: 'workspace',
  in: 'query',
  required: false,
  description: 'Accepted and ignored, as the header `X-Svc-Workspace` is: accounts and keys belong to no workspace.',
  schema: { type: 'string' },
};

/** Source: RFC 9110, section 13.1.2. */
export const IF_NONE_MATCH: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of an answer that the client has: while it is the answer still, 304 comes instead of it.',
  schema: { type: 'string' },
};

export function versionParameter(examples: Examples): Parameter {
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
