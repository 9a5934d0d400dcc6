/** Generates the OpenAPI document of a service from its operations and from the zod schemas of its requests and responses. */
import {
  ACCOUNT_FILTERS,
  API_VERSIONS,
  EARLIEST_API_VERSION,
  FILTER_PARAMETERS,
  MAX_FILTER_VALUES,
  MAX_NAME_LENGTH,
  NEWEST_API_VERSION,
  REPEATABLE_PARAMETERS,
  VALUE_FILTERS,
  WINDOW_PARAMETERS,
} from '@meterline/catalog';
import { z } from 'zod';
import { errorBody } from '../http/errors.js';
import {
  type DocumentSketch,
  type ErrorSketch,
  type Example,
  HEADERS,
  type Header,
  headerReference,
  type JsonSchema,
  LIMIT_HEADERS,
  type MediaType,
  type Method,
  type Named,
  type OperationExample,
  type OperationSketch,
  OTHER_RESPONSE,
  type Parameter,
  REQUEST_HEADERS,
  type Reference,
  type Response,
} from './common.js';

/** Makes zod describe values as they are sent over HTTP, before a schema transforms them. */
const ON_THE_WIRE = { io: 'input', unrepresentable: 'any' } as const;
const REQUEST_ID = '7f0c1a52-3a8e-4c1d-9a2b-5d0f6e7a8b9c';
const REQUIRED: readonly string[] = Object.keys(WINDOW_PARAMETERS);
/** Query parameters that Meterline adds to the API that the platform has specified. */
const EXTENSIONS: readonly string[] = [
  ...Object.keys(FILTER_PARAMETERS).filter((name) => !Object.hasOwn(VALUE_FILTERS, name)),
  'includeVoided',
  'orderBy',
  'order',
  ...Object.keys(ACCOUNT_FILTERS),
];
const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  accountId: 'Account ID, as in `GET /v0/accounts`.',
  clientId: 'Service account, as in `meterline keys list`. A new name creates a service account with its first key.',
  apiKeyId: 'ID of the API key, not the key itself.',
  alertId: 'Alert ID, as in the list of alerts.',
  deliveryId: 'Delivery ID, as in the list of deliveries.',
};
const BEARER = 'An API key (`mlk_…`) or an OAuth2 access token (JWT).';
const SVC_BEARER = 'The same credentials, as `Bearer …`, if a proxy in front of the API uses `Authorization` itself.';

export type OpenApiDocument = ReturnType<typeof openApiDocument>;
export type OpenApiOperation = ReturnType<typeof operationOf>;

export function openApiDocument(sketch: DocumentSketch) {
  const { title, summary, description, tags, operations, schemas, errors, headers } = sketch;
  const paths: Record<string, Partial<Record<Method, OpenApiOperation>>> = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: operationOf(operation, errors) };
  }
  const responses: Record<string, Response> = {};
  for (const [name, error] of Object.entries({ ...errors, Other: OTHER_RESPONSE })) responses[name] = errorOf(error);
  const allHeaders: Named<Header> = { ...HEADERS, ...headers };
  const version = NEWEST_API_VERSION;
  return {
    openapi: '3.1.1',
    info: { title, version, summary, description, license: { name: 'Apache 2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '.', description: 'The service that serves this document' }],
    security: [{ bearer: [] }, { svcBearer: [] }],
    tags,
    paths,
    components: {
      schemas: schemasOf(schemas),
      responses,
      headers: allHeaders,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: BEARER },
        svcBearer: { type: 'apiKey', in: 'header', name: 'X-Svc-Authorization', description: SVC_BEARER },
      },
    },
  };
}

export const schemaReference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const responseReference = (name: string) => ({ $ref: `#/components/responses/${name}` });

function eitherSchema([first = '', ...others]: readonly string[]): JsonSchema {
  return others.length === 0 ? schemaReference(first) : { oneOf: [first, ...others].map(schemaReference) };
}

function operationOf(sketch: OperationSketch, errors: DocumentSketch['errors']) {
  const { method: _method, path, tag, isExtension, query = {}, body, success, examples, description, ...rest } = sketch;
  const { otherParameters = [], otherFormats = {}, otherResponses, errors: names, operationId, summary } = rest;
  // Health checks and metadata need no credentials and have no versions.
  const isPublic = !path.startsWith('/v0/');
  const responses: Named<Response | Reference> = {
    [success.status ?? '200']: {
      description: success.description,
      headers: { ...success.headers, ...REQUEST_HEADERS, ...LIMIT_HEADERS },
      ...(success.schemas.length > 0 && { content: json(success.schemas, examples, ({ response }) => response) }),
    },
    ...otherResponses,
    ...Object.fromEntries(names.map((name) => [errors[name]?.error.status, responseReference(name)])),
    default: responseReference('Other'),
  };
  return {
    operationId,
    tags: [tag],
    summary,
    description: isExtension
      ? `${description}\n\nThis operation is an extension that the platform’s API does not have.`
      : description,
    ...(isExtension && { 'x-extension': true }),
    ...(isPublic && { security: [] }),
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => pathParameter(name)),
      ...Object.entries(query).map(([name, schema]) => queryParameter(name, schema)),
      ...otherParameters,
      ...(isPublic ? [] : [VERSION]),
    ].map((parameter) => ({ ...parameter, ...parameterExamples(parameter.name, examples) })),
    ...(body && {
      requestBody: {
        required: true,
        content: { ...json(body, examples, ({ body: sent }) => sent), ...otherFormats },
      },
    }),
    responses,
  };
}

function errorOf({ description, error, members, schema = schemaReference('Error') }: ErrorSketch): Response {
  const value = { ...errorBody(error, REQUEST_ID), ...members };
  const headers = Object.keys(error.headers).map(headerReference);
  return {
    description,
    headers: Object.assign({}, headerReference('X-Request-Id'), ...headers, error.status === 429 && LIMIT_HEADERS),
    content: { 'application/json': { schema, examples: { [error.code]: { summary: error.message, value } } } },
  };
}

function json(
  schemas: readonly string[],
  examples: OperationSketch['examples'],
  content: (from: OperationExample) => unknown,
) {
  const values = Object.entries(examples).map(([id, example]) => [id, exampleOf(example, content(example))]);
  const media: MediaType = { schema: eitherSchema(schemas), examples: Object.fromEntries(values) };
  return { 'application/json': media };
}

function parameterExamples(name: string, examples: OperationSketch['examples']): Pick<Parameter, 'examples'> {
  const values = Object.entries(examples).flatMap(([id, example]) => {
    const value = example.parameters?.[name];
    return value === undefined ? [] : [[id, exampleOf(example, value)]];
  });
  return values.length === 0 ? {} : { examples: Object.fromEntries(values) };
}

const exampleOf = ({ summary }: OperationExample, value: unknown): Example => ({ summary, value });

function pathParameter(name: string): Parameter {
  const schema = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH };
  return { name, in: 'path', required: true, description: PATH_PARAMETERS[name] ?? '', schema };
}

const VERSION: Parameter = {
  name: 'Svc-Version',
  in: 'header',
  required: false,
  description: `API version. Default: ${EARLIEST_API_VERSION}.`,
  // Swagger UI sends the example instead of the default. This is intended, because the reference describes the newest version.
  schema: { type: 'string', enum: API_VERSIONS, default: EARLIEST_API_VERSION, example: NEWEST_API_VERSION },
};

/** Describes a parameter. The schema's `meta` is added, because zod omits parts of it, such as `default`, if the schema has a transform. */
function queryParameter(name: string, parameter: z.ZodType): Parameter {
  const { description = '', ...all } = { ...z.toJSONSchema(parameter, ON_THE_WIRE), ...parameter.meta() };
  return {
    name,
    in: 'query',
    required: REQUIRED.includes(name),
    description: String(description),
    ...(EXTENSIONS.includes(name) && { 'x-extension': true }),
    ...(name === 'cursor' && { allowEmptyValue: true }),
    ...serialization(name, withoutId(all)),
  };
}

/** A list takes its values separated by commas: `a=1,2`. Other parameters with several values are repeated: `a=1&a=2`. */
function serialization(name: string, schema: JsonSchema): Pick<Parameter, 'style' | 'explode' | 'schema'> {
  if (schema['type'] === 'array') return { style: 'form', explode: false, schema };
  if (!REPEATABLE_PARAMETERS.includes(name)) return { schema };
  const values = { type: 'array', items: schema, minItems: 1, maxItems: MAX_FILTER_VALUES };
  return { style: 'form', explode: true, schema: values };
}

function schemasOf(components: DocumentSketch['schemas']): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(components)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { ...ON_THE_WIRE, uri: (id) => schemaReference(id).$ref });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutId(schema)]));
}

/** Removes the identifiers of a schema, because the position of the schema in the document already identifies it. */
const withoutId = ({ $schema, $id, ...schema }: JsonSchema): JsonSchema => schema;
