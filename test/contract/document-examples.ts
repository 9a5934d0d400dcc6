/** The requests that the examples of an OpenAPI document stand for. */
import type { OpenApiDocument, OpenApiOperation, OpenApiParameter } from '@meterline/api';

export interface ExampleRequest {
  /** `getAccountMetrics byWorkspace` */
  readonly name: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Besides the credential. */
  readonly headers: Readonly<Record<string, string>>;
  readonly needsCredential: boolean;
  /** As JSON. */
  readonly body?: string;
  /** Undefined for a response without a body. */
  readonly response: unknown;
}

export interface DocumentedOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: OpenApiOperation;
}

export function operationsOf({ paths }: OpenApiDocument): DocumentedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

export function examplesOf(document: OpenApiDocument): ExampleRequest[] {
  return operationsOf(document).flatMap(({ path, method, operation }) => {
    const responses = successfulExamples(operation);
    const names = [responses, ...operation.parameters.map(({ examples = {} }) => examples)].flatMap(Object.keys);
    return [...new Set(names)].map((name) => {
      const body = operation.requestBody?.content['application/json'].examples?.[name]?.value;
      const headers = sent(operation, 'header', name).map((header) => [header.name, header.value]);
      return {
        name: `${operation.operationId} ${name}`,
        method: method.toUpperCase(),
        target: targetOf(path, operation, name),
        headers: { ...Object.fromEntries(headers), ...(body !== undefined && { 'Content-Type': 'application/json' }) },
        needsCredential: operation.security === undefined,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        response: responses[name]?.value,
      };
    });
  });
}

function successfulExamples({ responses }: OpenApiOperation) {
  const successes = Object.entries(responses).flatMap(([status, response]) =>
    status.startsWith('2') && !('$ref' in response) ? [response.content?.['application/json'].examples ?? {}] : [],
  );
  return successes.find((examples) => Object.keys(examples).length > 0) ?? {};
}

function targetOf(path: string, operation: OpenApiOperation, example: string): string {
  const filled = sent(operation, 'path', example).reduce(
    (target, { name, value }) => target.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  );
  const query = sent(operation, 'query', example).map(({ name, value }) => `${name}=${value}`);
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}

function sent({ parameters }: OpenApiOperation, place: OpenApiParameter['in'], example: string) {
  return parameters.flatMap(({ name, in: where, explode, examples }) => {
    const value = where === place ? examples?.[example]?.value : undefined;
    if (value === undefined) return [];
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return (explode ? values : [values.join(',')]).map((text) => ({ name, value: String(text) }));
  });
}
