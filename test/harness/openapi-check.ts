/** Compares every response of the contract tests with the OpenAPI document, so that a deviation fails the test that got it. */

import type { OpenApiDocument, OpenApiResponse } from '@meterline/api';
import { parseTimestamp } from '@meterline/catalog';
import { createOpenApiDocument } from '@meterline/query/openapi/document';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export interface CheckedResponse {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when the body is not JSON. */
  readonly body: unknown;
}

const ADDRESS = 'https://meterline.test/openapi.json';

/** As the document names them. */
const METHODS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The API. Pages for people and the document itself are not in the document. */
const API = /^\/(v0|healthz|readyz|\.well-known)(\/|$)/;

/** Checks a response of the query service. @throws Error that says how the response deviates */
export const checkResponse = responseCheck(createOpenApiDocument());

/** @returns what throws an Error that says how a response deviates from the document */
export function responseCheck(document: OpenApiDocument): (actual: CheckedResponse) => void {
  const { headers: headerComponents, responses: responseComponents, schemas } = document.components;
  // The documents are linted by tests of their own. To check them here costs every file the compilation of JSON Schema's schema.
  const ajv = new Ajv2020({ allErrors: true, validateSchema: false });
  ajv.addVocabulary(['components']);
  ajv.addFormat('date-time', (text) => parseTimestamp(text) !== undefined);
  ajv.addSchema({ $id: ADDRESS, components: { schemas: closed(schemas) } });
  const validators = new Map<string, ValidateFunction>();
  const paths = Object.entries(document.paths).map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
    methods,
  }));

  return (actual) => {
    const { method, path, status, headers, text, body } = actual;
    if (method === 'OPTIONS' || (status < 400 && !API.test(path))) return;
    const response = documented(actual);
    const place = `${method} ${path} answered ${status}`;
    for (const [name, header] of Object.entries(response.headers ?? {})) {
      const { required } = '$ref' in header ? component(headerComponents, header.$ref) : header;
      if (required && !headers.has(name)) throw new Error(`${place} without the header ${name}`);
    }
    if (method === 'HEAD') return;
    const media = response.content?.['application/json'];
    if (!media) {
      if (text !== '') throw new Error(`${place} with a body, and the document says that it has none`);
      return;
    }
    if (!headers.get('content-type')?.startsWith('application/json'))
      throw new Error(`${place} with a body that is not JSON`);
    const validate = validatorOf(media.schema);
    if (!validate(body)) throw new Error(`${place}, and the body deviates: ${ajv.errorsText(validate.errors)}`);
  };

  /** The document's entry for a response. For a path or method that it does not have, it is the one for other errors. */
  function documented({ method, path, status }: CheckedResponse): OpenApiResponse {
    const methods = paths.find(({ pattern }) => pattern.test(path))?.methods;
    const operation = Object.entries(methods ?? {}).find(([name]) => name === METHODS[method])?.[1];
    if (!operation) {
      if (status < 400) throw new Error(`${method} ${path} answered ${status} and is not in the document`);
      return component(responseComponents, 'Other');
    }
    const { responses } = operation;
    const response = responses[String(status)] ?? responses[`${Math.floor(status / 100)}XX`] ?? responses['default'];
    if (!response || (status < 400 && !responses[String(status)])) {
      throw new Error(`${method} ${path} answered ${status}, which is not in the document`);
    }
    return '$ref' in response ? component(responseComponents, response.$ref) : response;
  }

  function validatorOf(schema: object): ValidateFunction {
    const text = JSON.stringify(schema).replaceAll('"#/', `"${ADDRESS}#/`);
    const validate = validators.get(text) ?? ajv.compile(closed(JSON.parse(text)));
    validators.set(text, validate);
    return validate;
  }
}

function component<T>(components: Readonly<Record<string, T>>, reference: string): T {
  const found = components[reference.split('/').at(-1) ?? ''];
  if (found === undefined) throw new Error(`${reference} is not in the document`);
  return found;
}

/** The schemas, without room for other members: readers ignore those, but the document must name them all. */
function closed<T>(schema: T): T;
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((item) => closed(item));
  if (typeof schema !== 'object' || schema === null) return schema;
  const members = Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, closed(member)]));
  return 'properties' in schema && !('additionalProperties' in schema)
    ? { ...members, additionalProperties: false }
    : members;
}
