/** The OpenAPI document of this service, built from the schemas that check requests and that clients read answers with. */
import { API_VERSIONS } from '@meterline/catalog';
import type { Examples, OperationExample } from './examples.js';
import type { JsonSchema, Method, OpenApiDocument, Operation, RequestBody, Response } from './model.js';
import { OPERATIONS, type OperationSketch } from './operations.js';
import { IGNORED_WORKSPACE, pathParameters, queryParameters, versionParameter } from './parameters.js';
import { ERROR_RESPONSES, HEADERS, headerReference } from './responses.js';
import { componentSchemas } from './schemas.js';

const DESCRIPTION = `What accounts of a workload platform used, and what that cost.

**Credentials.** Send an API key or an OAuth2 access token as \`Authorization: Bearer …\` or
\`X-Svc-Authorization: Bearer …\`. Where \`Authorization\` has another scheme, such as a proxy's \`Basic\`, the other header
counts; two different bearer tokens are refused. A token needs the scope \`admin\`, and for keys \`apiKey:list\` or \`apiKey:write\`.

**Versions.** The header \`Svc-Version\` pins the behaviour; without it, ${API_VERSIONS[0]} applies.

**Figures.** Money and usage are exact decimals, written as JSON numbers of as many digits as they have. Read them as
decimals: a double keeps about 15 digits. Costs are in USD.

**Times.** RFC 3339 in UTC, and so are all buckets: hours, days, ISO weeks and months.

**Parameters** are read strictly: one that is unknown or empty is refused, so that a typo does not read as "everything", and
so is one given twice, but for \`groupBy\` and the filters.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

export function createOpenApiDocument(): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Meterline',
      version: API_VERSIONS[API_VERSIONS.length - 1] ?? API_VERSIONS[0],
      summary: 'Billing metrics: exact usage and cost of an account.',
      description: DESCRIPTION,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that this document comes from' }],
    security: [{ bearer: [] }, { svcBearer: [] }],
    tags: [
      { name: 'Usage and cost', description: 'What was used, and what it cost.' },
      { name: 'Access', description: 'The caller’s accounts, and API keys.' },
      { name: 'Health', description: 'For load balancers and supervisors; needs no credentials.' },
    ],
    paths: apiPaths(),
    components: {
      schemas: componentSchemas(),
      responses: ERROR_RESPONSES,
      headers: HEADERS,
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

function apiPaths(): OpenApiDocument['paths'] {
  const paths: Record<string, Partial<Record<Method, Operation>>> = {};
  for (const sketch of OPERATIONS) {
    paths[sketch.path] = { ...paths[sketch.path], [sketch.method]: operationOf(sketch) };
  }
  return paths;
}

function operationOf({ path, operationId, tag, summary, description, ...sketch }: OperationSketch): Operation {
  const { isExtension, ignoresWorkspace, query = {}, body, success, examples, errors } = sketch;
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
      ...(isPublic ? [] : [versionParameter(examples)]),
    ],
    ...(body && { requestBody: requestBody(body, examples) }),
    responses: { '200': successResponse(success, examples), ...errors },
  };
}

function requestBody(schema: JsonSchema, examples: Examples): RequestBody {
  return { required: true, content: mediaType(schema, examples, ({ body }) => body) };
}

function successResponse({ description, schema }: OperationSketch['success'], examples: Examples): Response {
  const headers = {
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
