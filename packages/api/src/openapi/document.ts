/** The OpenAPI document of a service, built from what is particular about it. */
import type { z } from 'zod';
import type {
  Examples,
  JsonSchema,
  Method,
  OpenApiDocument,
  Operation,
  OperationExample,
  Parameter,
  RequestBody,
  Response,
} from './model.js';
import { IF_NONE_MATCH, IGNORED_WORKSPACE, pathParameters, queryParameters, versionParameter } from './parameters.js';
import { ENTITY_TAG, HEADERS, headerReference, NOT_MODIFIED } from './responses.js';

/** What is particular about an operation; the document adds what follows from it. */
export interface OperationSketch {
  /** With the parameters that `pathParameters` describes. */
  readonly path: string;
  readonly method: Method;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The platform's API does not have it. */
  readonly isExtension?: true;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  /** Takes a workspace, and does not look at it. */
  readonly ignoresWorkspace?: true;
  /** Of the request's body; none: there is no body. */
  readonly body?: JsonSchema;
  /** Its schemas in other formats, by media type. */
  readonly otherFormats?: Readonly<Record<string, JsonSchema>>;
  /** The answer has an entity tag, and comes without a body if the client has it already. */
  readonly isConditional?: true;
  /** Headers besides the version's. */
  readonly headers?: readonly Parameter[];
  /** Without a schema the answer has no body. */
  readonly success: { readonly status?: '202'; readonly description: string; readonly schema?: JsonSchema };
  readonly examples: Examples;
  readonly errors: Operation['responses'];
}

/** What is particular about a service. */
export interface DocumentSketch {
  readonly info: Pick<OpenApiDocument['info'], 'title' | 'version' | 'summary' | 'description'>;
  readonly tags: OpenApiDocument['tags'];
  readonly operations: readonly OperationSketch[];
  readonly schemas: OpenApiDocument['components']['schemas'];
  readonly responses: OpenApiDocument['components']['responses'];
}

export function openApiDocument({ info, tags, operations, schemas, responses }: DocumentSketch): OpenApiDocument {
  const { ETag, ...headers } = HEADERS;
  const isConditional = operations.some((operation) => operation.isConditional);
  return {
    openapi: '3.1.1',
    info: { ...info, license: { name: 'Apache 2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The service that this document comes from' }],
    security: [{ bearer: [] }, { svcBearer: [] }],
    tags,
    paths: pathsOf(operations),
    components: {
      schemas,
      responses,
      headers: isConditional ? { ...headers, ETag } : headers,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key (`mlk_…`) or an OAuth2 access token (JWT).',
        },
        svcBearer: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Svc-Authorization',
          description: 'The same, as `Bearer …`, where something before the API uses Authorization for itself.',
        },
      },
    },
  };
}

function pathsOf(operations: readonly OperationSketch[]): OpenApiDocument['paths'] {
  const paths: Record<string, Partial<Record<Method, Operation>>> = {};
  for (const sketch of operations) {
    paths[sketch.path] = { ...paths[sketch.path], [sketch.method]: operationOf(sketch) };
  }
  return paths;
}

function operationOf({ path, operationId, tag, summary, description, ...sketch }: OperationSketch): Operation {
  const {
    isExtension,
    ignoresWorkspace,
    query = {},
    body,
    otherFormats,
    isConditional,
    headers = [],
    success,
    examples,
    errors,
  } = sketch;
  // Health checks need no credentials, and have no versions.
  const isPublic = !path.startsWith('/v0/');
  return {
    operationId,
    tags: [tag],
    summary,
    description: isExtension
      ? `${description}\n\nAn extension: the platform’s API does not have this operation.`
      : description,
    ...(isExtension && { 'x-extension': true }),
    ...(isPublic && { security: [] }),
    parameters: [
      ...pathParameters(path, examples),
      ...queryParameters(query, examples),
      ...(ignoresWorkspace ? [IGNORED_WORKSPACE] : []),
      ...(isConditional ? [IF_NONE_MATCH] : []),
      ...headers,
      ...(isPublic ? [] : [versionParameter(examples)]),
    ],
    ...(body && { requestBody: requestBody(body, otherFormats, examples) }),
    responses: {
      [success.status ?? '200']: successResponse(success, isConditional ? ENTITY_TAG : {}, examples),
      ...(isConditional && { '304': NOT_MODIFIED }),
      ...errors,
    },
  };
}

function requestBody(
  schema: JsonSchema,
  otherFormats: OperationSketch['otherFormats'] = {},
  examples: Examples,
): RequestBody {
  const others = Object.entries(otherFormats).map(([type, other]) => [type, { schema: other }]);
  const json = mediaType(schema, examples, ({ body }) => body);
  return { required: true, content: { ...json, ...Object.fromEntries(others) } };
}

function successResponse(
  { description, schema }: OperationSketch['success'],
  others: Response['headers'],
  examples: Examples,
): Response {
  const headers = {
    ...others,
    'X-Request-Id': headerReference('X-Request-Id'),
    'Svc-Version': headerReference('Svc-Version'),
    'RateLimit-Policy': headerReference('RateLimit-Policy'),
    RateLimit: headerReference('RateLimit'),
  };
  if (!schema) return { description, headers };
  return { description, headers, content: mediaType(schema, examples, ({ answer }) => answer) };
}

function mediaType(schema: JsonSchema, examples: Examples, contentOf: (example: OperationExample) => unknown) {
  const values = Object.entries(examples).map(([id, example]) => {
    return [id, { summary: example.summary, value: contentOf(example) }];
  });
  return { 'application/json': { schema, examples: Object.fromEntries(values) } };
}
