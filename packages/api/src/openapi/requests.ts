/** The requests of an operation's examples. */
import type { Operation, Parameter, Response } from './model.js';

export interface Place {
  readonly path: string;
  /** In lower case, as in the document. */
  readonly method: string;
  readonly operation: Operation;
}

export interface ExampleRequest {
  readonly summary: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Besides the credential. */
  readonly headers: Readonly<Record<string, string>>;
  readonly needsCredential: boolean;
  /** Of the path, the query and the headers, by name, before they are written as text. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Undefined for an answer without a body. */
  readonly answer?: unknown;
}

export function exampleRequests({ path, method, operation }: Place): ExampleRequest[] {
  const answers = answersOf(operation);
  return exampleNames(operation).map((name) => {
    const body = operation.requestBody?.content['application/json'].examples?.[name]?.value;
    return {
      summary: answers[name]?.summary ?? operation.summary,
      method: method.toUpperCase(),
      target: requestTarget(path, operation, name),
      headers: {
        ...Object.fromEntries(sent(operation, 'header', name).map(({ name: header, value }) => [header, value])),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      needsCredential: operation.security === undefined,
      parameters: valuesOf(operation, name),
      body,
      answer: answers[name]?.value,
    };
  });
}

/** Path and query of an example. */
export function requestTarget(path: string, operation: Operation, example: string): string {
  let target = path;
  for (const { name, value } of sent(operation, 'path', example))
    target = target.replace(`{${name}}`, encodeURIComponent(value));
  const query = sent(operation, 'query', example).map(({ name, value }) => `${name}=${value}`);
  return query.length === 0 ? target : `${target}?${query.join('&')}`;
}

/** The values of an example's parameters, by name. */
function valuesOf({ parameters }: Operation, example: string): Record<string, unknown> {
  const given = parameters.filter(({ examples }) => examples?.[example] !== undefined);
  return Object.fromEntries(given.map(({ name, examples }) => [name, examples?.[example]?.value]));
}

/** The answer to a request that succeeds. One that is a reference is that of a variant without examples. */
export function successOf({ responses }: Operation): Response | undefined {
  const [success] = Object.entries(responses).flatMap(([status, response]) =>
    status.startsWith('2') && !('$ref' in response) ? [response] : [],
  );
  return success;
}

function exampleNames(operation: Operation): string[] {
  const ofParameters = operation.parameters.flatMap(({ examples = {} }) => Object.keys(examples));
  return [...new Set([...Object.keys(answersOf(operation)), ...ofParameters])];
}

function answersOf(operation: Operation) {
  return successOf(operation)?.content?.['application/json'].examples ?? {};
}

function sent({ parameters }: Operation, place: Parameter['in'], example: string): { name: string; value: string }[] {
  return parameters.flatMap(({ name, in: where, explode, examples }) => {
    const value = where === place ? examples?.[example]?.value : undefined;
    if (value === undefined) return [];
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return (explode ? values : [values.join(',')]).map((text) => ({ name, value: String(text) }));
  });
}
